"""One reader for raw splits and for those to merge."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from lakelet.model.split import Split
from lakelet.predicate.row_filter import row_filter
from lakelet.predicate.tree import Comparison, Predicate
from lakelet.read.table_reader import TableReader
from tests.unit.read.key_value_table import KeyValueTable, schema_of_columns


def rows(*keys: int, first: int = 0, kind: int = 0) -> list[tuple[int, int, dict[str, int]]]:
    return [(first + place, kind, {"k": key, "v": first + place}) for place, key in enumerate(keys)]


def made() -> tuple[KeyValueTable, list[Split]]:
    """A raw split whose files stand in no order, one to merge, and another raw one."""
    table = KeyValueTable(schema_of_columns({"k": "INT", "v": "INT"}, ["k"]))
    raw = [table.write(rows(8, 9), level=5), table.write(rows(1, 2), level=5)]
    merged = [table.write(rows(20, 21, 22, first=10)), table.write(rows(21, first=20), thin=True)]
    merged.append(table.write(rows(22, first=30, kind=3)))
    last = [table.write(rows(40, 41), level=5)]
    return table, [
        table.split(needs_merge=False, files=raw),
        table.split(files=merged),
        table.split(needs_merge=False, files=last),
    ]


def reader(
    table: KeyValueTable, columns: Sequence[str], where: Predicate | None = None, *, ordered: bool = False
) -> TableReader:
    schema = table.schema
    return TableReader(table.home, schema, columns, row_filter(where, schema.fields), table.schema_of, ordered=ordered)


def keys(found: TableReader, splits: Sequence[Split]) -> list[int]:
    whole = found.table(splits)
    assert whole.schema == found.schema
    read: list[int] = whole.column("k").to_pylist()
    assert [key for batch in found.batches(splits) for key in batch.column("k").to_pylist()] == read
    return read


def test_splits_keep_their_order() -> None:
    table, splits = made()
    assert keys(reader(table, ["k"]), splits) == [8, 9, 1, 2, 20, 21, 40, 41]
    assert keys(reader(table, ["k"]), splits[::-1]) == [40, 41, 20, 21, 8, 9, 1, 2]
    assert keys(reader(table, ["k"]), []) == []


def test_ordered_splits_are_in_key_order() -> None:
    table, splits = made()
    assert keys(reader(table, ["k", "v"], ordered=True), splits) == [1, 2, 8, 9, 20, 21, 40, 41]


def test_conditions_and_columns_hold_for_all_splits() -> None:
    table, splits = made()
    where = Comparison("v", ">", pa.scalar(0, pa.int32()))
    assert keys(reader(table, ["k"], where), splits) == [9, 2, 20, 21, 41]
    assert reader(table, ["v"], where).table(splits).to_pylist() == [{"v": v} for v in (1, 1, 10, 20, 1)]


def test_rows_can_be_counted_without_columns() -> None:
    table, splits = made()
    found = reader(table, [])
    assert found.table(splits).num_rows == 8
    assert sum(batch.num_rows for batch in found.batches(splits)) == 8
    where = Comparison("k", ">", pa.scalar(8, pa.int32()))
    assert sum(batch.num_rows for batch in reader(table, [], where).batches(splits)) == 5


def test_raw_files_that_overlap_are_merged_for_their_order() -> None:
    table = KeyValueTable(schema_of_columns({"k": "INT", "v": "INT"}, ["k"]))
    older, _ = table.write(rows(1, 3, 5), level=5), table.write(rows(2, 3, 6, first=10), level=4)
    table.hide(older, [1])
    splits = [table.split(needs_merge=False)]
    assert keys(reader(table, ["k"]), splits) == [1, 5, 2, 3, 6]
    assert keys(reader(table, ["k"], ordered=True), splits) == [1, 2, 3, 5, 6]


def test_a_table_without_a_key_has_no_order() -> None:
    table = KeyValueTable(schema_of_columns({"k": "INT", "v": "INT"}, ["k"]))
    file = table.write(rows(3, 1), thin=True)
    from dataclasses import replace

    table.evolve(replace(table.schema, primary_keys=(), options={}))
    assert keys(reader(table, ["k"], ordered=True), [table.split(needs_merge=False, files=[file])]) == [3, 1]
