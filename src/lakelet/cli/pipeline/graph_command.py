"""`lakelet pipeline graph`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from lakelet.cli.call import Call
from lakelet.errors import InvalidError
from lakelet.pipeline import Graph, load
from lakelet.pipeline.picture.layout import drawing_of
from lakelet.pipeline.picture.mermaid import mermaid
from lakelet.pipeline.picture.svg import svg
from lakelet.pipeline.picture.terminal import terminal

_FORMS = {"text": terminal, "mermaid": mermaid, "svg": svg}


def graph_command(
    call: Call, file: str, parameters: Mapping[str, str], environment: str | None, form: str, to: str | None
) -> None:
    """Prints the picture, or writes it to a file; for programs the lines between datasets."""
    graph = Graph.of(load(file, parameters, environment))
    text = _FORMS[form](graph)
    if to is not None:
        try:
            Path(to).write_text(text, encoding="utf-8")
        except OSError as error:
            raise InvalidError(f"{to} cannot be written: {error.strerror}") from error
        call.output.note(f"written to {to}")
    elif call.output.for_programs:
        lines = [(line.start, line.end, line.streaming, line.flow) for line in drawing_of(graph).lines]
        call.output.rows(graph.pipeline.name, ("from", "to", "streaming", "flow"), lines)
    else:
        print(text, end="")
