"""Statistics as an operation."""

from lakelet.catalog.lake import Lake
from lakelet.operations.statistics import analyze
from lakelet.table import Table


def test_statistics_of_rows(table: Table) -> None:
    found = analyze(table, ["id"])
    assert found is not None
    assert (found.snapshot_id, found.record_count) == (4, 3)


def test_an_empty_table_has_none(lake: Lake) -> None:
    assert analyze(lake.create_table("d.empty", [("id", "BIGINT")])) is None
