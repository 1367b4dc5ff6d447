"""Default expressions where Python writes rows: one moment for a call, a value for each row, the same when it is done again."""

import datetime as dt
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from lakelet import InvalidError, Lake, Table
from lakelet.storage.memory import MemoryStore
from tests.unit.hooked_store import HookedStore
from tests.unit.moving_clock import MovingClock

COLUMNS = [("id", "BIGINT"), ("v", "INT"), ("at", "TIMESTAMP(3)"), ("u", "STRING NOT NULL")]
OPTIONS = {"fields.at.default-expression": "current_timestamp", "fields.u.default-expression": "uuid()"}
MODES: dict[str, dict[str, Any]] = {
    "append": {},
    "fixed": {"primary_key": ["id"], "options": {"bucket": "2"}},
    "dynamic": {"primary_key": ["id"]},
    "cross": {"primary_key": ["id"], "partitioned_by": ["v"]},
    "postponed": {"primary_key": ["id"], "options": {"bucket": "-2"}},
}


@pytest.fixture
def lake() -> Lake:
    made = Lake(MemoryStore(), clock=MovingClock())
    made.create_database("d")
    return made


def make(lake: Lake, **more: Any) -> Table:
    return lake.create_table("d.t", COLUMNS, **{**more, "options": OPTIONS | more.get("options", {})})


def ids(*found: int) -> pa.Table:
    return pa.table({"id": list(found), "v": pa.array([0] * len(found), pa.int32())})


def shown(table: Table) -> dict[int, tuple[dt.datetime, str]]:
    return {row["id"]: (row["at"], row["u"]) for row in table.scan().to_arrow().to_pylist()}


@pytest.mark.parametrize("mode", [mode for mode in MODES if mode != "postponed"])
def test_written_without_the_columns(lake: Lake, mode: str) -> None:
    table = make(lake, **MODES[mode])
    missing = None if mode == "append" else "default"
    table.write(ids(*range(1000)), missing=missing)
    batches: Iterator[pa.RecordBatch] = iter(ids(*range(1000, 1010)).to_batches(max_chunksize=3))
    table.write(batches, missing=missing)
    table.write(
        [{"id": 2000, "v": 1}, {"id": 2001, "v": 1, "u": "x"}, {"id": 2002, "v": 1, "at": None}], missing=missing
    )
    found = shown(table)
    assert len({found[key][0] for key in range(1000)}) == 1
    assert len({found[key][0] for key in range(1000, 1010)}) == 1
    assert found[2000][0] == found[2001][0] > found[1000][0] > found[0][0]
    assert found[2001][1] == "x"
    assert found[2002][0] is None
    assert len({u for _, u in found.values()}) == len(found)


def test_postponed_rows(lake: Lake) -> None:
    table = make(lake, **MODES["postponed"])
    table.write(ids(1, 2), missing="default")
    table.compact()
    assert len({u for _, u in shown(table).values()}) == 2


def test_an_upsert_says_what_is_missing(lake: Lake) -> None:
    table = make(lake, **MODES["fixed"])
    with pytest.raises(InvalidError, match="lacks columns 'at', 'u'"):
        table.write(ids(1))
    table.write(ids(1, 2), missing="default")
    before = shown(table)
    table.write(ids(2, 3, 4), missing="keep")
    after = shown(table)
    assert {key: after[key] for key in (1, 2)} == before
    assert after[3][0] == after[4][0] > before[1][0]
    assert len({u for _, u in after.values()}) == 4


def test_two_phases_have_a_time_for_each_call(lake: Lake) -> None:
    table = make(lake)
    write = table.new_write()
    write.write(ids(1, 2))
    write.write(ids(3))
    table.new_commit().commit(write.prepare_commit())
    found = shown(table)
    assert found[1][0] == found[2][0] < found[3][0]


def test_a_static_partition_is_not_a_default(lake: Lake) -> None:
    table = lake.create_table(
        "d.t", [("id", "BIGINT"), ("p", "STRING")], partitioned_by=["p"],
        options={"fields.p.default-expression": "'x' || uuid()"},
    )  # fmt: skip
    table.write(pa.table({"id": [1]}), mode="overwrite", partition={"p": "given"})
    assert table.scan().to_arrow().to_pylist() == [{"id": 1, "p": "given"}]
    table.write(pa.table({"id": [2, 3]}))
    assert len(set(table.scan().to_arrow().column("p").to_pylist())) == 3


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("partitioned_by", [[], ["p"]])
def test_keys_by_chance_are_looked_up_and_written_alike(lake: Lake, partitioned_by: list[str], stream: bool) -> None:
    """Keys and partitions of dynamic buckets are read before the rows are."""
    table = lake.create_table(
        "d.t", [("k", "STRING"), ("p", "STRING"), ("v", "BIGINT")], primary_key=["k"], partitioned_by=partitioned_by,
        options={f"fields.{name}.default-expression": "uuid()" for name in "kp"},
    )  # fmt: skip
    data = pa.table({"v": list(range(50))})
    table.write(iter(data.to_batches()) if stream else data, missing="default")
    table.write(iter(data.to_batches()) if stream else data, missing="default")
    assert table.scan().to_arrow().num_rows == 100
    if partitioned_by:
        table.write(iter(data.to_batches()) if stream else data, mode="overwrite_partitions", missing="default")
        assert table.scan().to_arrow().num_rows == 150
    rows = table.scan().to_arrow().to_pylist()
    assert all(table.get({"k": row["k"]}) == row for row in rows)


@pytest.mark.parametrize("mode", ["append", "fixed", "dynamic", "cross"])
def test_the_same_values_when_another_writer_was_faster(mode: str) -> None:
    """The moment is that of the call, however long the commit takes."""
    store, clock = MemoryStore(), MovingClock()
    lake = Lake(store, clock=clock)
    lake.create_database("d")
    make(lake, **MODES[mode])
    hooked = HookedStore(store)
    hooked.when = lambda call, path: call == "put" and "manifest-list" in path

    def meanwhile() -> None:
        clock.move(minutes=3)
        Lake(store, clock=clock).table("d.t").write(
            pa.table({"id": [7], "v": pa.array([0], pa.int32()), "u": ["other"]}), missing="default"
        )

    hooked.after = meanwhile
    start = clock.now
    Lake(hooked, clock=clock).table("d.t").write(ids(1, 2), missing="default")
    found = shown(lake.table("d.t"))
    assert hooked.when is None
    assert found[1][0] == found[2][0]
    assert found[1][0].replace(tzinfo=dt.UTC).timestamp() * 1000 - start < 60_000
    assert found[1][1] != found[2][1]
