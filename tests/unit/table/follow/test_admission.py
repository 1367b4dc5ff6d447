"""How far a batch goes, without a table."""

import pytest

from lakelet.errors import InvalidError
from lakelet.table.follow.admission import NO_LIMITS, ReadLimits, Version, admitted, pending_rows
from lakelet.table.follow.offset import StreamOffset
from lakelet.table.read.change_unit import Cost

START = StreamOffset(3, mark="m3")


def version(number: int, *rows: int) -> Version:
    return Version(StreamOffset(number, mark=f"m{number}"), tuple(Cost(1, 100 * count, count) for count in rows))


VERSIONS = (version(4, 5, 5), version(5), version(6, 7))


def place(offset: StreamOffset) -> tuple[int, int | None]:
    return offset.snapshot, offset.index


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        (NO_LIMITS, (6, None)),
        (ReadLimits(max_files=1), (4, 1)),
        (ReadLimits(max_files=2), (5, None)),
        (ReadLimits(max_files=3), (6, None)),
        (ReadLimits(max_rows=4), (4, 1)),
        (ReadLimits(max_rows=10), (5, None)),
        (ReadLimits(max_rows=16), (5, None)),
        (ReadLimits(max_rows=17), (6, None)),
        (ReadLimits(max_bytes=999), (4, 1)),
        (ReadLimits(max_bytes=1000, max_files=9), (5, None)),
    ],
)
def test_a_batch_ends_where_its_limits_do(limits: ReadLimits, expected: tuple[int, int | None]) -> None:
    assert place(admitted(START, VERSIONS, limits)) == expected


def test_batches_one_after_the_other_reach_the_end() -> None:
    position, seen = START, list[tuple[int, int | None]]()
    while place(position) != (6, None):
        left = [one for one in VERSIONS if one.whole.snapshot > position.base]
        position = admitted(position, left, ReadLimits(max_files=1))
        seen.append(place(position))
    assert seen == [(4, 1), (5, None), (6, None)]


def test_nothing_to_read_leaves_the_position_as_it_is() -> None:
    assert admitted(START, (), ReadLimits(max_rows=1)) is START


def test_a_position_within_a_version_knows_its_number_of_units() -> None:
    found = admitted(START, VERSIONS, ReadLimits(max_rows=1))
    assert (found.index, found.units, found.mark) == (1, 2, "m4")
    assert StreamOffset.decode(found.encode()) == found


@pytest.mark.parametrize(("rows", "waited", "waits"), [(9, 0, True), (10, 0, False), (9, 500, False), (0, 499, True)])
def test_few_rows_wait_for_more(rows: int, waited: int, waits: bool) -> None:
    assert ReadLimits(min_rows=10, max_delay_ms=500).waits(rows, waited) is waits


def test_pending_rows_are_counted_from_the_position_on() -> None:
    assert pending_rows(START, VERSIONS, 100) == 17
    assert pending_rows(StreamOffset(4, 1, 2, mark="m4"), VERSIONS, 100) == 12
    assert pending_rows(START, VERSIONS, 1) == 10


@pytest.mark.parametrize(
    "wrong",
    [7, {}, {"snapshot": 1}, {"snapshot": -1, "index": None, "mark": ""}, {"offset": 3, "index": 0, "mark": ""}],
)
def test_an_offset_of_something_else_is_refused(wrong: object) -> None:
    with pytest.raises(InvalidError, match="offset"):
        StreamOffset.decode(wrong)
