"""The examples of docs/streaming-writes.md run as they are written."""

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

PAGE = Path(__file__).parents[3] / "docs" / "streaming-writes.md"
_BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
# A reader's session is in the folder of the example, and a test need not wait as long.
_WAITS = re.compile(r"query\.awaitTermination\(\d+\)")


def test_the_examples_run(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    known: dict[str, object] = {}
    for number, block in enumerate(_BLOCK.findall(PAGE.read_text(encoding="utf-8"))):
        text = _WAITS.sub("query.awaitTermination(6)", block).replace('"./', f'"{tmp_path}/')
        exec(compile(text, f"{PAGE.name}, block {number}", "exec"), known)
    assert len(known) > 3
