"""Buckets with more overlapping files than a process may open at once, and keys that hardly differ."""

import pyarrow as pa
import pytest

from lakelet.catalog.lake import Lake
from lakelet.lsm import spilled_runs
from lakelet.lsm.engine.table_engine import ENGINES
from lakelet.predicate.row_filter import row_filter
from lakelet.read.merge import merge_reader, pieces
from lakelet.storage.memory import MemoryStore
from lakelet.table import Table
from tests.unit.lsm.engine.column_fold import ColumnFold


@pytest.fixture
def table() -> Table:
    lake = Lake(MemoryStore())
    lake.create_database("d")
    return lake.create_table("d.t", [("k", "STRING"), ("v", "INT")], primary_key=["k"], options={"bucket": "1"})


@pytest.mark.parametrize("ordered", [False, True])
def test_runs_are_folded_until_they_are_few(table: Table, monkeypatch: pytest.MonkeyPatch, ordered: bool) -> None:
    for module in (spilled_runs, merge_reader, pieces):
        monkeypatch.setattr(module, "MOST_RUNS", 3)
    monkeypatch.setattr(pieces, "_SAMPLED_FROM_ROWS", 1)
    for number in range(14):
        keys = [f"{key:03}" for key in range(number, 40, 3)]
        table.write(pa.table({"k": keys, "v": pa.array([number] * len(keys), pa.int32())}))
    table.write(pa.table({"k": ["005", "006"]}), kinds=["-D", "-D"])
    expected = {f"{key:03}": number for number in range(14) for key in range(number, 40, 3)}
    del expected["005"], expected["006"]
    scan = table.scan(ordered=ordered)
    reader = merge_reader.MergeReader(
        scan.home,
        scan.schema,
        ["k", "v"],
        scan._reader()._raw._filter,
        scan._schema_versions(),
        ordered=ordered,
        budget_bytes=1,
    )
    rows = [row for batch in reader.batches(scan.plan().splits) for row in batch.to_pylist()]
    assert {row["k"]: row["v"] for row in rows} == expected
    assert len(rows) == len(expected)
    if ordered:
        assert [row["k"] for row in rows] == sorted(expected)


def test_rows_are_folded_until_runs_are_few(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (spilled_runs, merge_reader, pieces):
        monkeypatch.setattr(module, "MOST_RUNS", 3)
    monkeypatch.setitem(ENGINES, "deduplicate", lambda schema: ColumnFold(("v",), removes_zeros=True))
    expected: dict[str, int] = {}
    for number in range(14):
        keys = [f"{key:03}" for key in range(number, 40, 3)]
        # Some keys come to nothing on the way, some at the end.
        value = [3, -1, -2, 5][number % 4]
        table.write(pa.table({"k": keys, "v": pa.array([value] * len(keys), pa.int32())}))
        for key in keys:
            expected[key] = expected.get(key, 0) + value
    assert 0 in expected.values()
    scan = table.scan()
    everything = row_filter(None, scan.schema.fields)
    reader = merge_reader.MergeReader(
        scan.home, scan.schema, ["v", "k"], everything, scan._schema_versions(), budget_bytes=1
    )
    rows = [row for batch in reader.batches(scan.plan().splits) for row in batch.to_pylist()]
    assert {row["k"]: row["v"] for row in rows} == {key: total for key, total in expected.items() if total}
    assert len(rows) == len({row["k"] for row in rows})


def test_keys_with_a_long_beginning_in_common_are_found(table: Table) -> None:
    prefix = "https://example.org/" + "path/" * 60
    table.write(pa.table({"k": [f"{prefix}{n:05}" for n in range(3000)], "v": pa.array(range(3000), pa.int32())}))
    wanted = [f"{prefix}{n:05}" for n in (7, 2999, 5000, 0, 7)]
    assert table.get_many(pa.table({"k": wanted})).column("v").to_pylist() == [7, 2999, 0, 7]
    assert table.get({"k": prefix + "00042"}) == {"k": prefix + "00042", "v": 42}
    assert table.get({"k": prefix}) is None
