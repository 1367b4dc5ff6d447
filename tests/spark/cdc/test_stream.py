"""ls.sync_cdc on streams: several tables from one stream, exactly once whatever fails; the quarantine replayed once too."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import lakelet
from lakelet import InvalidError
from lakelet.spark.cdc import batch as cdc_batch
from lakelet.spark.cdc import replay as cdc_replay
from lakelet.spark.cdc.replay import replay_cdc
from lakelet.spark.cdc.sync import sync_cdc
from tests.spark.cdc.cdc_frames import reasons, rows, synced
from tests.spark.cdc.sample_events import debezium, text

FIELDS: list[dict[str, Any]] = [{"field": "id", "type": "int32"}, {"field": "qty", "type": "int32", "optional": True}]
WIDER: list[dict[str, Any]] = [
    {"field": "id", "type": "int32"},
    {"field": "qty", "type": "int64", "optional": True},
    {"field": "note, new", "type": "string", "optional": True},
]


class Lost(Exception):
    """What a test raises in place of a lost driver."""


@pytest.fixture
def warehouse(tmp_path: Path) -> str:
    return str(tmp_path / "wh")


def arrive(folder: Path, name: str, events: list[object]) -> None:
    """A file of events appears in the folder of a stream."""
    folder.mkdir(exist_ok=True)
    (folder / f".{name}").write_text("\n".join(one if isinstance(one, str) else text(one) for one in events))
    (folder / f".{name}").rename(folder / name)


def run(spark: SparkSession, warehouse: str, folder: Path, **how: Any) -> None:
    """Applies what has arrived."""
    given: dict[str, Any] = {
        "database": "shop",
        "primary_key": ["id"],
        "checkpoint": folder.parent / "checkpoint",
        **how,
    }
    query = sync_cdc(spark.readStream.text(str(folder)), warehouse, **given)
    assert isinstance(query, StreamingQuery)
    query.awaitTermination()


def quantities(warehouse: str, name: str) -> dict[int, Any]:
    return {row["id"]: row["qty"] for row in rows(warehouse, name)}


def event(op: str, id: int, qty: int | None, table: str, lsn: int, **more: Any) -> dict[str, Any]:
    row = {"id": id, "qty": qty, **more}
    fields = WIDER if more else FIELDS
    return debezium(op, row if op == "d" else None, None if op == "d" else row, fields=fields, table=table, lsn=lsn)


def failing_at(call: int, then: Callable[..., Any], *, after: bool) -> Callable[..., Any]:
    """`then`, which is lost before or after its n-th call."""
    calls = 0

    def called(*given: Any, **more: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == call and not after:
            raise Lost
        made = then(*given, **more)
        if calls == call:
            raise Lost
        return made

    return called


def test_tables_of_a_database_follow_their_stream(spark: SparkSession, warehouse: str, tmp_path: Path) -> None:
    """New tables, new columns and wider types come with the stream; a dropped target stops it."""
    folder = tmp_path / "events"
    arrive(folder, "1", [event("c", 1, 1, "item", 1), event("c", 1, 9, "Item", 2), event("c", 1, 1, "secret", 3)])
    run(spark, warehouse, folder, excluding="sec.*", table_prefix="ods_", table_mapping={"Item": "other"})
    assert lakelet.connect(warehouse).tables("shop") == ["ods_item", "other"]
    how: dict[str, Any] = {"excluding": "sec.*", "table_prefix": "ods_", "table_mapping": {"Item": "other"}}
    arrive(folder, "2", [event("c", 2, 2**40, "item", 4, **{"note, new": "ä"}), event("d", 1, 9, "Item", 5), "junk"])
    run(spark, warehouse, folder, **how)
    assert rows(warehouse, "shop.ods_item") == [
        {"id": 1, "qty": 1, "note, new": None},
        {"id": 2, "qty": 2**40, "note, new": "ä"},
    ]
    assert quantities(warehouse, "shop.other") == {}
    assert len(reasons(warehouse)) == 1
    lakelet.connect(warehouse).drop_table("shop.other")
    arrive(folder, "3", [event("c", 5, 5, "Item", 6)])
    with pytest.raises(StreamingQueryException, match="was dropped"):
        run(spark, warehouse, folder, **how)


@pytest.mark.deep
@pytest.mark.parametrize(("call", "after"), [(1, False), (1, True), (2, False), (2, True), (3, True)])
def test_a_batch_cut_short_anywhere_is_applied_once(
    spark: SparkSession, warehouse: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: int, after: bool
) -> None:
    """The commits of a batch: the quarantine's, then those of two tables; Spark's own log comes last."""
    folder = tmp_path / "events"
    arrive(folder, "1", [event("c", 1, 1, "a", 1), event("c", 1, 1, "b", 2), event("c", 2, 2**40, "b", 3)])
    with monkeypatch.context() as patched:
        patched.setattr(cdc_batch, "upsert_rows", failing_at(call, cdc_batch.upsert_rows, after=after))
        with pytest.raises(StreamingQueryException):
            run(spark, warehouse, folder)
    arrive(folder, "2", [event("u", 1, 5, "a", 4)])
    run(spark, warehouse, folder)
    assert (quantities(warehouse, "shop.a"), quantities(warehouse, "shop.b")) == ({1: 5}, {1: 1})
    lake = lakelet.connect(warehouse)
    commits = [one.commit_kind.value for one in lake.table("shop.b").snapshots() if one.total_record_count]
    assert commits.count("APPEND") == 1
    assert len(reasons(warehouse)) == 1


def test_a_stream_needs_a_checkpoint(spark: SparkSession, warehouse: str, tmp_path: Path) -> None:
    (tmp_path / "events").mkdir()
    with pytest.raises(InvalidError, match="checkpoint"):
        sync_cdc(spark.readStream.text(str(tmp_path / "events")), warehouse, database="shop")


def test_a_checkpoint_without_a_scheme_is_of_the_default_file_system(
    spark: SparkSession, warehouse: str, tmp_path: Path
) -> None:
    """Spark looks for the folder there: a mark on the local disk would be of no query, and the next one's would differ."""
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()
    before = hadoop.get("fs.defaultFS")
    stream = spark.readStream.format("rate").load().selectExpr("CAST(value AS STRING) AS value")
    hadoop.set("fs.defaultFS", "nosuchfs://host/")
    try:
        with pytest.raises(Exception, match="nosuchfs"):
            sync_cdc(stream, warehouse, table="shop.item", checkpoint=tmp_path / "checkpoint")
    finally:
        hadoop.set("fs.defaultFS", before)
    assert not (tmp_path / "checkpoint").exists()


@pytest.mark.parametrize("window", ["none", "marked", "written"])
def test_a_replay_applies_what_fits_now_once(
    spark: SparkSession, warehouse: str, monkeypatch: pytest.MonkeyPatch, window: str
) -> None:
    """The column is widened, then the event fits; a newer row of another key stays, for its sequence is higher."""
    how: dict[str, Any] = {"metadata": ["source_position"], "table_options": {"sequence.field": "source_position"}}
    bad: list[object] = [event("c", 1, 2**40, "item", 1), event("c", 2, 2**41, "item", 2), "junk"]
    synced(spark, warehouse, [*bad, event("c", 2, 7, "item", 3)], **how)
    assert quantities(warehouse, "shop.item") == {2: 7}
    given: dict[str, Any] = {"table": "shop.item", "primary_key": ["id"], **how}
    assert replay_cdc(spark, warehouse, **given).applied == 0
    lakelet.connect(warehouse).table("shop.item").change_type("qty", "BIGINT")
    with monkeypatch.context() as patched:
        if window == "marked":
            patched.setattr(cdc_replay, "write_targets", failing_at(1, cdc_replay.write_targets, after=False))
        elif window == "written":
            patched.setattr(cdc_replay, "write_targets", failing_at(1, cdc_replay.write_targets, after=True))
        if window != "none":
            with pytest.raises(Lost):
                replay_cdc(spark, warehouse, **given)
    counts = replay_cdc(spark, warehouse, **given)
    assert (counts.applied, counts.remaining) == (2, 1)
    assert quantities(warehouse, "shop.item") == {1: 2**40, 2: 7}
    snapshots = lakelet.connect(warehouse).table("shop.item").snapshots()
    assert (
        sum(one.commit_user.startswith("cdc-replay-") and one.commit_kind.value == "APPEND" for one in snapshots) == 1
    )


@pytest.mark.deep
def test_a_replay_over_newer_rows_must_be_asked_for(spark: SparkSession, warehouse: str) -> None:
    synced(spark, warehouse, [event("c", 1, 2**40, "item", 1), event("u", 1, 7, "item", 2)])
    lakelet.connect(warehouse).table("shop.item").change_type("qty", "BIGINT")
    with pytest.raises(InvalidError, match=r"sequence\.field"):
        replay_cdc(spark, warehouse, table="shop.item")
    assert replay_cdc(spark, warehouse, table="shop.item", overwrite=True).applied == 1
    assert quantities(warehouse, "shop.item") == {1: 2**40}
