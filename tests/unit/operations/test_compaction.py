"""Compaction as an operation: request, result and progress."""

import re

import pytest

from lakelet.catalog.lake import Lake
from lakelet.compact.progress import CompactionProgress
from lakelet.errors import InvalidError
from lakelet.operations.compaction import (
    Compact,
    Compacted,
    CompactedTable,
    CompactMany,
    Rescale,
    compact,
    compact_manifests,
    compact_many,
    file_totals,
    rescale,
)
from lakelet.operations.table_choice import TableChoice
from lakelet.table import Table
from tests.unit.versioned_table import COLUMNS, ids, put


def test_a_full_compaction_says_what_it_read_and_wrote(table: Table) -> None:
    before, seen = file_totals(table), list[CompactionProgress]()
    made = compact(table, Compact(full=True), seen.append)
    assert (made.snapshot_id, made.rows_read, made.bytes_read) == (4, 3, before.bytes)
    assert made.bytes_written == file_totals(table).bytes > 0
    assert (before.count, file_totals(table).count) == (3, 1)
    assert seen[-1].rows_done == 3
    assert ids(table) == [1, 2, 3]


def test_nothing_to_compact_is_a_value(table: Table) -> None:
    assert compact(table, Compact()) == Compacted(None)


def test_partitions_and_where_exclude_each_other(table: Table) -> None:
    with pytest.raises(InvalidError, match="compact takes partitions or where, and not both"):
        compact(table, Compact(partitions=({"p": "a"},), where="p = 'a'"))


def test_many_tables_are_told_one_by_one(lake: Lake) -> None:
    for name in ("d.u", "d.v"):
        made = lake.create_table(name, COLUMNS, options={"write-only": "true"})
        put(made, 1)
        put(made, 2)
    seen: list[CompactedTable] = []
    request = CompactMany(TableChoice(excluding=re.compile("d.v")), Compact(full=True))
    done = compact_many(lake, request, seen.append)
    assert done == tuple(seen) == (CompactedTable("d", "t", 4), CompactedTable("d", "u", 3))
    assert len(lake.table("d.v").snapshots()) == 2


def test_manifests_are_merged_where_that_helps(table: Table) -> None:
    assert compact_manifests(table) == 4
    assert compact_manifests(table) is None


def test_rescale_takes_the_number_of_the_options(lake: Lake) -> None:
    keyed = lake.create_table("d.k", [("id", "BIGINT NOT NULL")], primary_key=["id"], options={"bucket": "1"})
    keyed.write([{"id": number} for number in range(20)])
    assert rescale(keyed, Rescale()).snapshot_id is None
    made = rescale(keyed, Rescale(2))
    assert (made.buckets, made.snapshot_id) == (2, 2)


def test_rescale_of_a_table_without_buckets_asks_for_a_number(table: Table) -> None:
    with pytest.raises(InvalidError, match=r"d\.t has no number of buckets"):
        rescale(table, Rescale())
