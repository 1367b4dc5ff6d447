"""`lakelet pipeline init`."""

from __future__ import annotations

from lakelet.cli.call import Call
from lakelet.errors import InvalidError
from lakelet.pipeline.example import write_example


def init_command(call: Call, file: str) -> None:
    """Writes the example and says how it is run."""
    if not file.endswith((".yaml", ".yml")):
        raise InvalidError(f"{file}: expected the name of a YAML file, such as shop.yaml")
    written = write_example(file)
    call.output.rows("written", ("file",), [(str(one),) for one in written])
    call.output.note(f"Try: lakelet pipeline run {file}, then add files below raw and run it again")
