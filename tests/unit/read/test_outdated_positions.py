"""Positions of superseded rows, for engines that read files themselves."""

from __future__ import annotations

import pytest

from lakelet.lsm.engine.table_engine import ENGINES
from tests.unit.lsm.engine.column_fold import sums_by_name
from tests.unit.read.merge.test_merge_reader import AFTER, DELETE, INSERT, STREAMED, both_ways, reader, row, simple


def test_positions_of_rows_that_do_not_count_leave_those_that_do() -> None:
    table = simple(
        [
            [(number, INSERT, row(number, "old")) for number in range(1, 7)],
            [(11, AFTER, row(2, "new")), (12, AFTER, row(5, "new")), (13, INSERT, row(9, "new"))],
            [(21, AFTER, row(5, "newest"))],
        ]
    )
    gone = reader(table, []).outdated(table.split())
    assert gone is not None
    assert {path.rsplit("/", 1)[-1]: positions.tolist() for path, positions in gone.items()} == {
        table.split().files[0].name: [1, 4],
        table.split().files[1].name: [1],
    }
    left = table.split().row_count - sum(map(len, gone.values()))
    assert left == len(both_ways(reader(table, ["k", "v"]), table)) == 7


def test_a_deleted_row_does_not_count_nor_does_its_delete() -> None:
    table = simple(
        [
            [(number, INSERT, row(number, "old")) for number in range(1, 4)],
            [(11, DELETE, row(2, "gone"))],
        ]
    )
    gone = reader(table, []).outdated(table.split())
    assert gone is not None
    assert [positions.tolist() for _, positions in sorted(gone.items())] in ([[1], [0]], [[0], [1]])


def test_a_split_too_large_to_hold_has_no_positions() -> None:
    table = simple([[(1, INSERT, row(1, "old"))], [(11, AFTER, row(1, "new"))]])
    assert reader(table, [], budget_bytes=STREAMED).outdated(table.split()) is None


def test_rows_that_are_folded_have_no_positions(monkeypatch: pytest.MonkeyPatch) -> None:
    table = simple([[(1, INSERT, row(1, "old"))], [(11, AFTER, row(1, "new"))]])
    monkeypatch.setitem(ENGINES, "deduplicate", sums_by_name)
    assert reader(table, []).outdated(table.split()) is None
