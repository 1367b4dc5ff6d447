"""`analyze` and `statistics` on tables."""

from __future__ import annotations

import pytest

from lakelet.catalog.lake import Lake
from lakelet.errors import InvalidError, NotFoundError
from lakelet.model.snapshot import CommitKind
from lakelet.model.table_statistics import ColumnStatistics
from lakelet.storage.memory import MemoryStore
from lakelet.table import Table


@pytest.fixture
def table() -> Table:
    lake = Lake(MemoryStore())
    lake.create_database("d")
    return lake.create_table(
        "d.t",
        [("id", "BIGINT NOT NULL"), ("s", "STRING"), ("v", "INT")],
        primary_key=["id"],
        options={"bucket": "2", "write-only": "true"},
    )


def written(table: Table, ids: range, v: int) -> None:
    table.write([{"id": id_, "s": "xyz"[: id_ % 4] or None, "v": v} for id_ in ids])


def test_statistics_speak_of_merged_rows(table: Table) -> None:
    written(table, range(10), 1)
    written(table, range(5, 15), 2)
    made = table.analyze()
    assert made is not None
    assert (made.id, made.commit_kind) == (3, CommitKind.ANALYZE)
    found = table.statistics()
    assert found is not None
    assert (found.snapshot_id, found.schema_id, found.record_count) == (2, 0, 15)
    stored = sum(file.size for _, file in table.files())
    assert found.record_bytes == stored * 15 // 20
    assert found.columns == {
        "id": ColumnStatistics(0, 15, 0, 14, 0, 8, 8),
        "s": ColumnStatistics(1, 3, None, None, 4, 2, 3),
        "v": ColumnStatistics(2, 2, 1, 2, 0, 4, 4),
    }
    assert table.scan().to_arrow().num_rows == 15


def test_chosen_columns_or_none(table: Table) -> None:
    written(table, range(10), 1)
    table.analyze(["v"])
    found = table.statistics()
    assert found is not None
    assert list(found.columns) == ["v"]
    table.analyze([])
    found = table.statistics()
    assert found is not None
    assert (found.snapshot_id, found.record_count, dict(found.columns)) == (2, 10, {})


def test_bad_columns_are_refused(table: Table) -> None:
    written(table, range(10), 1)
    with pytest.raises((InvalidError, NotFoundError), match="nope"):
        table.analyze(["nope"])
    with pytest.raises(InvalidError, match="list of names"):
        table.analyze("v")
    assert len(table.snapshots()) == 1


def test_a_table_without_snapshots_has_nothing_to_analyze(table: Table) -> None:
    assert table.analyze() is None
    assert table.statistics() is None


def test_an_empty_table_has_statistics(table: Table) -> None:
    written(table, range(3), 1)
    table.delete(where="true")
    table.analyze()
    found = table.statistics()
    assert found is not None
    assert found.record_count == 0
    assert found.columns["v"].distinct_count == 0


def test_statistics_are_of_the_newest_schema(table: Table) -> None:
    written(table, range(3), 1)
    table.rename_column("v", "w")
    table.analyze()
    found = table.statistics()
    assert found is not None
    assert (found.schema_id, list(found.columns)) == (1, ["id", "s", "w"])
    assert found.columns["w"] == ColumnStatistics(2, 1, 1, 1, 0, 4, 4)
    table.write([{"id": 9, "s": None, "w": 4}])
    assert table.statistics() == found


def test_changes_pass_over_the_snapshot_of_an_analysis(table: Table) -> None:
    written(table, range(3), 1)
    table.analyze()
    written(table, range(2, 4), 2)
    assert table.changes(0, 2).num_rows == 3
    assert sorted(table.changes(1).column("_row_kind").to_pylist()) == ["+I", "+U", "-U"]
