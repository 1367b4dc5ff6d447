"""A batch that is repeated over tables that were altered meanwhile: each event is in its table or in the quarantine, once."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import lakelet
from lakelet.spark.cdc import batch as cdc_batch
from lakelet.spark.cdc import replay as cdc_replay
from lakelet.spark.cdc.batch import CdcCounts
from lakelet.spark.cdc.replay import replay_cdc
from lakelet.spark.cdc.sync import sync_cdc
from tests.spark.cdc.cdc_frames import frame, rows
from tests.spark.cdc.sample_events import debezium
from tests.spark.cdc.test_stream import Lost, failing_at

FIELDS: list[dict[str, Any]] = [{"field": "id", "type": "int32"}, {"field": "qty", "type": "int32", "optional": True}]
QUARANTINE = "shop.cdc_quarantine"


@pytest.fixture
def warehouse(tmp_path: Path) -> str:
    return str(tmp_path / "wh")


def event(id: int, qty: int | None, table: str, lsn: int) -> dict[str, Any]:
    return debezium("c", None, {"id": id, "qty": qty}, fields=FIELDS, table=table, lsn=lsn)


# In each of two tables a row that always fits, one that fits until its column is narrow, and one that does once it is wide.
EVENTS: list[object] = [
    event(id, qty, table, 10 * place + id)
    for place, table in enumerate(("a", "b"))
    for id, qty in ((1, 1), (2, 300), (3, 2**40))
]


def apply(spark: SparkSession, warehouse: str, events: list[object] = EVENTS, **how: Any) -> CdcCounts:
    given: dict[str, Any] = {"database": "shop", "primary_key": ["id"], "commit_user": "mirror", "batch_id": 5}
    given |= {"evolve": False, **how}
    counts = sync_cdc(frame(spark, events), warehouse, **given)
    assert isinstance(counts, CdcCounts)
    return counts


def lose(
    monkeypatch: pytest.MonkeyPatch,
    spark: SparkSession,
    warehouse: str,
    call: int,
    events: list[object] = EVENTS,
    *,
    after: bool = True,
) -> None:
    """The driver is lost before or after the n-th commit of the batch: the quarantine's, then those of the tables."""
    with monkeypatch.context() as patched:
        patched.setattr(cdc_batch, "upsert_rows", failing_at(call, cdc_batch.upsert_rows, after=after))
        with pytest.raises(Lost):
            apply(spark, warehouse, events)


def narrow(warehouse: str, *tables: str) -> None:
    for name in tables:
        table = lakelet.connect(warehouse).table(f"shop.{name}")
        table.drop_column("qty")
        table.add_column("qty", "TINYINT")


def widen(warehouse: str, *tables: str) -> None:
    for name in tables:
        lakelet.connect(warehouse).table(f"shop.{name}").change_type("qty", "BIGINT")


def places(warehouse: str) -> dict[str, list[str]]:
    """Where the rows of each table are: ids in the table, and ids in the quarantine by the places in the log."""
    lake = lakelet.connect(warehouse)
    aside = rows(warehouse, QUARANTINE) if lake.table_exists(QUARANTINE) else []
    found = {}
    for place, table in enumerate(("a", "b")):
        put = [str(row["id"]) for row in rows(warehouse, f"shop.{table}")]
        numbers = sorted(int(row["position"]) for row in aside if row["target"] == f"shop.{table}")
        found[table] = [*put, *(f"q{number - 10 * place}" for number in numbers)]
    return found


def test_a_row_that_became_poison_is_not_lost(
    spark: SparkSession, warehouse: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The quarantine is committed, both tables are not; then a column is narrowed: the row goes to the quarantine as well."""
    lose(monkeypatch, spark, warehouse, 1)
    narrow(warehouse, "a", "b")
    counts = apply(spark, warehouse)
    assert places(warehouse) == {"a": ["1", "q2", "q3"], "b": ["1", "q2", "q3"]}
    assert (counts.rows, counts.quarantined) == (6, 4)
    # And once more: nothing is doubled, nothing comes back.
    apply(spark, warehouse)
    assert places(warehouse) == {"a": ["1", "q2", "q3"], "b": ["1", "q2", "q3"]}


@pytest.mark.deep
def test_a_row_that_was_put_aside_stays_there(
    spark: SparkSession, warehouse: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The column is widened before the batch is repeated: the row would fit, but it is in the quarantine, from which a replay
    takes it once."""
    lose(monkeypatch, spark, warehouse, 1)
    widen(warehouse, "a", "b")
    apply(spark, warehouse)
    assert places(warehouse) == {"a": ["1", "2", "q3"], "b": ["1", "2", "q3"]}
    replay_cdc(spark, warehouse, database="shop", primary_key=["id"], overwrite=True)
    assert places(warehouse) == {"a": ["1", "2", "3"], "b": ["1", "2", "3"]}


@pytest.mark.deep
def test_a_table_that_has_the_batch_is_settled(
    spark: SparkSession, warehouse: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first table is committed, the second is not; both are altered: only the second is decided anew."""
    lose(monkeypatch, spark, warehouse, 2)
    narrow(warehouse, "a", "b")
    for _ in range(2):
        apply(spark, warehouse)
        assert places(warehouse) == {"a": ["1", "2", "q3"], "b": ["1", "q2", "q3"]}


@pytest.mark.deep
@pytest.mark.parametrize("after", [False, True])
def test_a_repeat_cut_short_at_what_it_adds_loses_nothing(
    spark: SparkSession, warehouse: str, monkeypatch: pytest.MonkeyPatch, after: bool
) -> None:
    """The second attempt is lost at the rows that it adds to the quarantine; then the column is as wide as before."""
    lose(monkeypatch, spark, warehouse, 1)
    narrow(warehouse, "a", "b")
    lose(monkeypatch, spark, warehouse, 1, after=after)
    for name in ("a", "b"):
        lakelet.connect(warehouse).table(f"shop.{name}").change_type("qty", "INT")
    apply(spark, warehouse)
    second = ["1", "q2", "q3"] if after else ["1", "2", "q3"]
    assert places(warehouse) == {"a": second, "b": second}


def test_poison_of_a_repeat_alone(spark: SparkSession, warehouse: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first attempt had no poison at all, and one table of two; its rows are not put aside afterwards."""
    events: list[object] = [one for one in EVENTS if isinstance(one, dict) and one["payload"]["after"]["id"] < 3]
    lose(monkeypatch, spark, warehouse, 1, events)
    narrow(warehouse, "a", "b")
    assert apply(spark, warehouse, events).quarantined == 1
    assert places(warehouse) == {"a": ["1", "2"], "b": ["1", "q2"]}


@pytest.mark.deep
def test_a_truncate_that_was_put_aside_empties_nothing_later(
    spark: SparkSession, warehouse: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The batch is repeated with truncate='apply': its truncate is in the quarantine already."""
    apply(spark, warehouse, [event(1, 1, "a", 1)], batch_id=4)
    events: list[object] = [debezium("t", None, None, table="a", lsn=2), event(2, 2, "a", 3)]
    lose(monkeypatch, spark, warehouse, 1, events)
    apply(spark, warehouse, events, truncate="apply")
    assert [row["id"] for row in rows(warehouse, "shop.a")] == [1, 2]
    assert len(rows(warehouse, QUARANTINE)) == 1


@pytest.mark.deep
def test_a_table_that_has_the_batch_may_take_no_more_events(
    spark: SparkSession, warehouse: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A column of the first table became text, which its events do not fit any more: the batch is finished for the second."""
    lose(monkeypatch, spark, warehouse, 2)
    table = lakelet.connect(warehouse).table("shop.a")
    table.drop_column("qty")
    table.add_column("qty", "DATE")
    apply(spark, warehouse)
    assert places(warehouse)["b"] == ["1", "2", "q3"]


@pytest.mark.deep
def test_an_event_is_put_aside_for_each_of_two_mirrors(spark: SparkSession, warehouse: str) -> None:
    """Two tables follow one source and share the quarantine of their database: each gets the event from there."""
    names = ("shop.one", "shop.two")
    for name in names:
        apply(spark, warehouse, [event(1, 2**40, "a", 1), event(2, 2, "a", 2)], database=None, table=name)
    assert sorted(row["target"] for row in rows(warehouse, QUARANTINE)) == list(names)
    for name in names:
        lakelet.connect(warehouse).table(name).change_type("qty", "BIGINT")
        assert replay_cdc(spark, warehouse, table=name, overwrite=True).applied == 1
        assert [row["id"] for row in rows(warehouse, name)] == [1, 2]


@pytest.mark.deep
def test_two_replays_at_once_apply_an_event_once(
    spark: SparkSession, warehouse: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second replay runs from beginning to end after the first one has read the quarantine, and before it marks its rows;
    then a newer change comes. The first one has lost its claim, and does not put the old row over it."""
    how: dict[str, Any] = {"table": "shop.a", "database": None}
    apply(spark, warehouse, [event(1, 2**40, "a", 1)], **how)
    lakelet.connect(warehouse).table("shop.a").change_type("qty", "BIGINT")
    marking: Callable[..., Any] = cdc_replay.mark_rows
    other: list[int] = []

    def overtaken(*given: Any, **more: Any) -> Any:
        if not other:
            other.append(-1)
            other.append(replay_cdc(spark, warehouse, table="shop.a", overwrite=True).applied)
            apply(spark, warehouse, [event(1, 7, "a", 2)], **{**how, "batch_id": 6})
        return marking(*given, **more)

    monkeypatch.setattr(cdc_replay, "mark_rows", overtaken)
    counts = replay_cdc(spark, warehouse, table="shop.a", overwrite=True)
    assert (other[1], counts.applied, counts.remaining) == (1, 0, 0)
    assert [(row["id"], row["qty"]) for row in rows(warehouse, "shop.a")] == [(1, 7)]


@pytest.mark.deep
def test_a_replay_finished_with_other_arguments_loses_nothing(
    spark: SparkSession, warehouse: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A replay was lost after it had marked its rows; the next one sends the source's table elsewhere."""
    mapped: dict[str, Any] = {"table_mapping": {"a": "x"}}
    apply(spark, warehouse, [event(1, 2**40, "a", 1)], **mapped)
    lakelet.connect(warehouse).table("shop.x").change_type("qty", "BIGINT")
    given: dict[str, Any] = {"database": "shop", "primary_key": ["id"], "overwrite": True}
    with monkeypatch.context() as patched:
        patched.setattr(cdc_replay, "write_targets", failing_at(1, cdc_replay.write_targets, after=False))
        with pytest.raises(Lost):
            replay_cdc(spark, warehouse, **given, **mapped)
    counts = replay_cdc(spark, warehouse, **given)
    assert (counts.applied, counts.remaining) == (0, 1)
    assert replay_cdc(spark, warehouse, **given, **mapped).applied == 1
    assert [row["id"] for row in rows(warehouse, "shop.x")] == [1]
