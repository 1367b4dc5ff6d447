"""Where compaction looks keys up, by numbers that metadata and this process know."""

from __future__ import annotations

import pytest

from lakelet.read.serve.lookup_choice import KEY_CELLS, LOOKUP_ROWS, MAKING, AskedFile, DecodedCells, looks_up

ROWS, COLUMNS = 1_000_000, 10
FEW = ROWS * COLUMNS // KEY_CELLS


def asked(*, columns: int = COLUMNS, decoded: int = 0, is_made: bool = False) -> AskedFile:
    return AskedFile(ROWS, columns, COLUMNS, decoded, is_made)


def test_keys_are_looked_up_where_they_are_few() -> None:
    assert looks_up(keys=ROWS // LOOKUP_ROWS, rows=ROWS)
    assert not looks_up(keys=ROWS // LOOKUP_ROWS + 1, rows=ROWS)
    assert looks_up(keys=0, rows=0)


@pytest.mark.parametrize(("keys", "expected"), [(1, True), (FEW, True), (FEW + 1, False)])
def test_a_lookup_file_that_is_there_serves_few_keys(keys: int, expected: bool) -> None:
    assert asked(is_made=True).by_lookup_file(keys) is expected
    assert not asked().by_lookup_file(keys)


def test_it_is_made_when_as_much_was_spent_on_decoding() -> None:
    spent = MAKING * ROWS * COLUMNS
    assert asked(decoded=spent).by_lookup_file(1)
    assert not asked(decoded=spent - 1).by_lookup_file(1)
    assert not asked(decoded=spent).by_lookup_file(FEW + 1)


def test_where_two_columns_are_read_fewer_keys_are_few() -> None:
    assert asked(columns=2, is_made=True).by_lookup_file(FEW // 5)
    assert not asked(columns=2, is_made=True).by_lookup_file(FEW // 5 + 1)


def test_one_that_could_not_be_made_is_tried_again_much_later() -> None:
    counts = DecodedCells()
    assert counts.of("file") == 0
    counts.add("file", 5)
    counts.add("file", 7)
    assert (counts.of("file"), counts.of("other")) == (12, 0)
    counts.put_off("file", 100)
    counts.add("file", 999)
    assert counts.of("file") < 100
