"""Level 0 is compacted beside files that are kept: one row of every key is visible, deletion vectors mark superseded ones."""

from __future__ import annotations

from collections import ChainMap

import pytest

from lakelet.commit.index_changes import read_index_entries
from tests.unit.compact.keyed_bucket import COLUMNS, KeyedBucket

VECTORS = {"deletion-vectors.enabled": "true"}
FIRST = {"merge-engine": "first-row"}
# A top level that outweighs what comes: it stays as it is, and compaction stops below it.
STAYING = {"num-sorted-run.compaction-trigger": "100", "compaction.size-ratio": "0"}
COUNT = 5_000


def staying(*options: dict[str, str], columns: tuple[tuple[str, str], ...] = COLUMNS) -> KeyedBucket:
    """A large file on the top level."""
    bucket = KeyedBucket(columns, options=dict(ChainMap(*options, STAYING)))
    more = (7,) * (len(columns) - 2)
    bucket.write(*((number, number * 7919 % 65_537, *more) for number in range(COUNT)))
    bucket.table.compact(full=True)
    assert bucket.levels() == [101 - 1]
    return bucket


def test_rows_that_come_up_mark_those_that_they_outdate() -> None:
    bucket = staying(VECTORS)
    (large,) = bucket.files()
    bucket.write((10, -1), (20, -1), (COUNT, -1))
    assert len(bucket.rows()) == COUNT
    bucket.table.compact()
    assert bucket.files()[-1] == large
    assert bucket.vectors() == {large.name: 2}
    assert [row for row in bucket.rows() if row[1] == -1] == [(10, -1), (20, -1), (COUNT, -1)]
    assert len(bucket.rows()) == COUNT + 1
    assert bucket.table.scan().count() == COUNT + 1
    assert bucket.table.get({"id": 20}) == {"id": 20, "v": -1}


def test_vectors_grow_in_one_index_file_of_the_bucket() -> None:
    bucket = staying(VECTORS)
    for turn in range(4):
        bucket.write((10 + turn, -1), (10, -2 - turn))
        bucket.table.compact()
        snapshot = bucket.table.latest_snapshot()
        assert snapshot is not None
        assert len(read_index_entries(bucket.table._home, snapshot)) == 1
        assert len(bucket.rows()) == COUNT
    assert bucket.vectors()[bucket.files()[-1].name] == 4
    assert [row for row in bucket.rows() if row[1] < 0] == [(10, -5), (11, -1), (12, -1), (13, -1)]
    for number in range(2, bucket.table.latest_snapshot().id + 1):  # type: ignore[union-attr]
        assert len(bucket.rows(version=number)) == COUNT


def test_a_delete_marks_and_is_gone() -> None:
    bucket = staying(VECTORS)
    bucket.write((10, 0), (11, 0), (COUNT + 5, 0), kinds=["-D", "-U", "-D"])
    bucket.table.compact()
    assert bucket.levels() == [100]
    assert list(bucket.vectors().values()) == [2]
    assert len(bucket.rows()) == COUNT - 2
    bucket.write((10, 5))
    bucket.table.compact()
    assert bucket.table.get({"id": 10}) == {"id": 10, "v": 5}
    assert len(bucket.rows()) == COUNT - 1


def test_full_compaction_leaves_no_vectors() -> None:
    bucket = staying(VECTORS)
    bucket.write((10, -1), (11, -1), kinds=["+I", "-D"])
    bucket.table.compact()
    rows = bucket.rows()
    assert bucket.table.compact(full=True) is not None
    assert (bucket.rows(), bucket.vectors(), len(bucket.files())) == (rows, {}, 1)
    bucket.write((12, 0), kinds=["-D"])
    bucket.table.compact()
    assert list(bucket.vectors().values()) == [1]
    assert bucket.table.compact(full=True) is not None
    assert (len(bucket.rows()), bucket.vectors()) == (COUNT - 2, {})
    assert bucket.table.compact(full=True) is None


@pytest.mark.parametrize("order", ["ascending", "descending"])
def test_the_row_that_stays_may_be_the_newer_one(order: str) -> None:
    columns = (*COLUMNS, ("s", "INT"))
    options = {"sequence.field": "s", "sequence.field.sort-order": order}
    bucket = staying(VECTORS, options, columns=columns)
    (large,) = bucket.files()
    worse, better = (1, 9) if order == "ascending" else (9, 1)
    bucket.write((10, -1, worse), (11, -1, better), (12, -1, 7), (13, -1, None), (14, -1, worse), (15, -1, better),
                 kinds=["+I", "+I", "+I", "+I", "-D", "-D"])  # fmt: skip
    bucket.table.compact()
    assert [row[0] for row in bucket.rows() if row[1] == -1] == [11, 12]
    assert bucket.vectors() == {large.name: 3}
    assert len(bucket.rows()) == COUNT - 1
    assert sum(file.row_count for file in bucket.files()) == COUNT + 2


@pytest.mark.parametrize("more", [{}, VECTORS])
def test_the_first_row_of_a_key_stays(more: dict[str, str]) -> None:
    bucket = staying(FIRST, more)
    (large,) = bucket.files()
    bucket.write((10, -1), (COUNT, -1))
    bucket.write((COUNT, -2), (COUNT + 1, -2))
    bucket.table.compact()
    assert bucket.vectors() == {}
    assert bucket.files()[-1] == large
    assert [row for row in bucket.rows() if row[1] < 0] == [(COUNT, -1), (COUNT + 1, -2)]
    assert len(bucket.rows()) == COUNT + 2
    bucket.write((COUNT + 1, -3))
    bucket.table.compact()
    bucket.table.compact(full=True)
    assert [row for row in bucket.rows() if row[1] < 0] == [(COUNT, -1), (COUNT + 1, -2)]


def test_the_first_row_of_one_write_stays() -> None:
    bucket = KeyedBucket(options=FIRST)
    bucket.write((1, 1), (1, 2), (2, 3))
    bucket.table.compact(full=True)
    assert bucket.rows() == [(1, 1), (2, 3)]


def test_files_on_several_levels_are_looked_at() -> None:
    bucket = staying(VECTORS)
    bucket.write(*((number, -1) for number in range(0, 1000, 2)))
    bucket.table.compact()
    assert bucket.levels() == [99, 100]
    bucket.write((0, -2), (1, -2), (COUNT, -2))
    bucket.table.compact()
    assert bucket.levels() == [98, 99, 100]
    middle, large = bucket.files()[1:]
    assert bucket.vectors() == {middle.name: 1, large.name: 501}
    assert len(bucket.rows()) == COUNT + 1
    assert [row for row in bucket.rows() if row[1] == -2] == [(0, -2), (1, -2), (COUNT, -2)]


def test_keys_that_do_not_meet_are_not_compared() -> None:
    bucket = staying(VECTORS)
    bucket.write((COUNT + 1, -1), (COUNT + 2, -1))
    bucket.table.compact()
    assert bucket.vectors() == {}
    assert len(bucket.rows()) == COUNT + 2
