"""The examples of the pages about streams, change events and pipelines run as they are written."""

import re
import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from lakelet import connect
from lakelet.pipeline import defined
from lakelet.pipeline.registry import CURRENT, Registry
from tests.spark.cdc.sample_events import debezium, text

DOCS = Path(__file__).parents[3] / "docs"
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.DOTALL | re.MULTILINE)
# A reader waits for some seconds, in which a busy machine may not come to its first batch.
_WAITS = re.compile(r"query\.awaitTermination\(\d+\)")
_WAIT_SECONDS = 600
# A loop that waits for ever, and the same with an end.
_FOLLOWS = ("orders.follow(start=3)", "orders.follow(start=3, end=4)")


def blocks(page: str, language: str = "python") -> list[str]:
    return [body for kind, body in _BLOCK.findall((DOCS / page).read_text(encoding="utf-8")) if kind == language]


def wait_for_a_batch(query: StreamingQuery) -> None:
    """Until a batch with rows has ended; the failure of the query, if it has one."""
    ends = time.monotonic() + _WAIT_SECONDS
    while not any(progress.numInputRows for progress in query.recentProgress):
        assert time.monotonic() < ends, "the query had no batch"
        assert not query.awaitTermination(0.1), "the query ended without a batch"


def run(page: str, folder: Path, known: dict[str, Any]) -> None:
    """Executes the blocks of a page one after the other, as a reader who is in the folder would."""
    known["wait_for_a_batch"] = wait_for_a_batch
    for number, block in enumerate(blocks(page)):
        body = _WAITS.sub("wait_for_a_batch(query)", block).replace('"./', f'"{folder}/')
        exec(compile(body, f"{page}, block {number}", "exec"), known)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_examples_of_streams_run(spark: SparkSession, folder: Path) -> None:
    known: dict[str, Any] = {}
    run("streaming-writes.md", folder, known)
    assert len(known) > 4


def test_the_examples_of_reads_run(spark: SparkSession, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lake = connect(str(folder / "warehouse"))
    columns = [("order_id", "BIGINT NOT NULL"), ("amount", "INT")]
    lake.sql("CREATE DATABASE shop")
    lake.sql("CREATE DATABASE iceberg.shop")
    orders = lake.create_table("shop.orders", columns, primary_key=["order_id"], options={"bucket": "1"})
    lake.sql("CREATE TABLE iceberg.shop.orders (order_id BIGINT, amount INT)")
    for number in range(4):
        orders.write([{"order_id": number, "amount": number}])
    known: dict[str, Any] = {"spark": spark}
    for number, block in enumerate(blocks("streaming-reads.md")):
        body = block.replace(*_FOLLOWS).replace('"./', f'"{folder}/')
        exec(compile(body, f"streaming-reads.md, block {number}", "exec"), known)
        if "query" in known:
            known["query"].awaitTermination(_WAIT_SECONDS)
    assert "+I" in capsys.readouterr().out
    assert known["lag"].snapshots_behind == 0
    assert known["appended"].isStreaming


def test_the_examples_of_change_events_run(spark: SparkSession, folder: Path) -> None:
    (folder / "events").mkdir()
    event = debezium(
        "c", None, {"id": 7, "name": "nut"}, fields=[{"field": one, "type": "string"} for one in ("id", "name")]
    )
    (folder / "events" / "1.json").write_text(text(event) + "\nno JSON\n")
    run("cdc.md", folder, {})
    lake = connect(str(folder / "warehouse"))
    assert [row["name"] for row in lake.table("shop.item").scan().to_arrow().to_pylist()] == ["nut"]
    assert lake.table("ods.item").scan().count() == 1
    assert lake.table("shop.cdc_quarantine").scan().count() == 1


def test_the_examples_of_pipelines_run(spark: SparkSession, folder: Path) -> None:
    from lakelet.spark import run_pipeline

    for name, line in (
        ("orders", '{"id": 1, "country": "DE", "amount": 2.5, "day": "2026-01-01"}'),
        ("customers", '{"id": 1, "name": "Ada", "op": "insert", "at": "2026-01-01T08:00:00Z"}'),
    ):
        (folder / "raw" / name).mkdir(parents=True)
        (folder / "raw" / name / "1.json").write_text(line + "\n")
    (folder / "shop.yaml").write_text(blocks("pipelines.md", "yaml")[0])
    definition, use = blocks("pipelines.md")
    token = CURRENT.set(Registry("docs", "<docs>"))
    try:
        exec(compile(definition, "pipelines.md", "exec"), {})
        made = run_pipeline(spark, defined(), folder / "other")
    finally:
        CURRENT.reset(token)
    assert [(one.flow, one.outcome.value, one.rows) for one in made.flows] == [
        ("orders", "completed", 1),
        ("totals", "completed", 1),
    ]
    known: dict[str, Any] = {"spark": spark}
    exec(
        compile(use.replace('"/data"', f'"{folder}/raw"').replace('"./', f'"{folder}/'), "pipelines.md", "exec"), known
    )
    assert [(one.flow, one.rows) for one in known["made"].flows] == [("orders", 1), ("revenue", 1)]
    # The parts of a file that the page shows besides are read, too.
    for part in blocks("pipelines.md", "yaml")[1:]:
        assert set(re.findall(r"^(\w+):", part, re.MULTILINE)) <= {"parameters", "environments"}


@pytest.mark.parametrize("page", ["kafka.md", "scheduling.md"])
def test_the_examples_that_need_a_server_are_python(page: str) -> None:
    found = blocks(page)
    assert found
    for number, block in enumerate(found):
        compile(block, f"{page}, block {number}", "exec")
