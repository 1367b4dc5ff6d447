"""The examples of docs/streaming-writes.md and docs/streaming-reads.md run as they are written."""

import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import lakelet

PAGE = Path(__file__).parents[3] / "docs" / "streaming-writes.md"
_BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
# A reader's session is in the folder of the example, and a test need not wait as long.
_WAITS = re.compile(r"query\.awaitTermination\(\d+\)")
READS = PAGE.with_name("streaming-reads.md")
# A loop that waits for ever, and the same with an end.
_FOLLOWS = ("orders.follow(start=3)", "orders.follow(start=3, end=4)")


def test_the_examples_run(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    known: dict[str, object] = {}
    for number, block in enumerate(_BLOCK.findall(PAGE.read_text(encoding="utf-8"))):
        text = _WAITS.sub("query.awaitTermination(6)", block).replace('"./', f'"{tmp_path}/')
        exec(compile(text, f"{PAGE.name}, block {number}", "exec"), known)
    assert len(known) > 3


def test_the_examples_of_reads_run(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    lake = lakelet.connect(str(tmp_path / "warehouse"))
    columns = [("order_id", "BIGINT NOT NULL"), ("amount", "INT")]
    lake.sql("CREATE DATABASE shop")
    lake.sql("CREATE DATABASE iceberg.shop")
    orders = lake.create_table("shop.orders", columns, primary_key=["order_id"], options={"bucket": "1"})
    lake.sql("CREATE TABLE iceberg.shop.orders (order_id BIGINT, amount INT)")
    for number in range(4):
        orders.write([{"order_id": number, "amount": number}])
    known: dict[str, Any] = {"spark": spark}
    for number, block in enumerate(_BLOCK.findall(READS.read_text(encoding="utf-8"))):
        text = block.replace(*_FOLLOWS).replace('"./', f'"{tmp_path}/')
        exec(compile(text, f"{READS.name}, block {number}", "exec"), known)
        if "query" in known:
            known["query"].awaitTermination(60)
    assert "+I" in capsys.readouterr().out
    assert known["lag"].snapshots_behind == 0
    assert known["appended"].isStreaming
