from collections.abc import Iterator
from uuid import UUID

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelet.errors import InvalidError
from lakelet.lsm import key_words
from lakelet.lsm.key_words import encode_keys, encode_versions
from lakelet.model.types import Array, Atomic, Kind, string
from tests.tiers.examples import examples
from tests.unit.lsm.key_model import TYPES, column_of, numbers_of, places, row_key, values

BIGINT, INT, SMALLINT = Atomic(Kind.BIGINT), Atomic(Kind.INT), Atomic(Kind.SMALLINT)
BYTES = Atomic(Kind.VARBINARY, 100)


@pytest.fixture(params=["numba", "numpy"], autouse=True, scope="module")
def loops(request: pytest.FixtureRequest) -> Iterator[None]:
    """Every test of this file runs compiled and in numpy."""
    with pytest.MonkeyPatch.context() as patch:
        for loop in (key_words._pack_loop, key_words._uuid_loop):
            if request.param == "numba":
                loop.load()
            else:
                patch.setattr(loop, "enabled", False)
        yield


@st.composite
def keyed_parts(draw: st.DrawFn) -> tuple[list[Atomic], list[list[tuple[object, ...]]]]:
    types = draw(st.lists(st.sampled_from(TYPES), min_size=1, max_size=3))
    row = st.tuples(*(values(data_type) for data_type in types))
    return types, draw(st.lists(st.lists(row, max_size=8), min_size=1, max_size=3))


def columns_of(types: list[Atomic], rows: list[tuple[object, ...]]) -> list[pa.Array]:
    return [column_of(data_type, [row[place] for row in rows]) for place, data_type in enumerate(types)]


@given(keyed_parts())
@settings(max_examples=examples(80), deadline=None)
def test_words_compare_like_keys(drawn: tuple[list[Atomic], list[list[tuple[object, ...]]]]) -> None:
    types, parts = drawn
    encoded = encode_keys([columns_of(types, rows) for rows in parts], types)
    assert [len(words) for words in encoded] == [len(rows) for rows in parts]
    assert all(words.flags.c_contiguous and words.dtype == np.uint64 for words in encoded)
    found = [number for words in encoded for number in numbers_of(words)]
    assert places(found) == places([row_key(row) for rows in parts for row in rows])


@pytest.mark.parametrize("data_type", TYPES, ids=str)
def test_every_type_alone(data_type: Atomic) -> None:
    @given(st.lists(values(data_type), max_size=12))
    @settings(max_examples=examples(15), deadline=None)
    def check(cells: list[object]) -> None:
        (words,) = encode_keys([[column_of(data_type, cells)]], [data_type])
        assert places(numbers_of(words)) == places([row_key((cell,)) for cell in cells])

    check()


@pytest.mark.parametrize("descending", [False, True])
@given(drawn=keyed_parts(), data=st.data())
@settings(max_examples=examples(40), deadline=None)
def test_rule_16_null_is_the_lowest_version_in_either_order(
    descending: bool, drawn: tuple[list[Atomic], list[list[tuple[object, ...]]]], data: st.DataObject
) -> None:
    types, parts = drawn
    parts = [[tuple(None if data.draw(st.booleans()) else v for v in row) for row in rows] for rows in parts]
    encoded = encode_versions([columns_of(types, rows) for rows in parts], types, descending=descending)
    rows = [row for part in parts for row in part]
    # Column by column: NULL is -1, everything else its place in the order asked for.
    by_column = []
    for place in range(len(types)):
        filled = [row_key((row[place],)) for row in rows if row[place] is not None]
        ranks = iter(places(filled))
        sign = -1 if descending else 1
        by_column.append([-(10**6) if row[place] is None else sign * next(ranks) for row in rows])
    expected = list(zip(*by_column, strict=True)) if rows else []
    assert places([number for words in encoded for number in numbers_of(words)]) == places(expected)


def test_columns_behind_a_descending_string_count() -> None:
    columns = [pa.array(["abc", "abc", "ab", "abc"]), pa.array([1, 3, 9, 2], pa.int32())]
    words = encode_versions([columns], [string(), INT], descending=True)[0]
    assert places(numbers_of(words)) == [2, 0, 3, 1]


def test_zero_bytes_at_the_end_count_in_either_order() -> None:
    column = pa.array(["a", "a\0", "b", "a\0\0"])
    assert places(numbers_of(encode_keys([[column]], [string()])[0])) == [0, 1, 3, 2]
    assert places(numbers_of(encode_versions([[column]], [string()], descending=True)[0])) == [3, 2, 0, 1]


@pytest.mark.parametrize("descending", [False, True])
def test_what_stands_below_a_null_does_not_count(descending: bool) -> None:
    valid = pa.py_buffer(bytes([0b100]))
    for data_type, cells in (
        (BIGINT, [4, 5, 6]),
        (string(), ["d", "ee", "f"]),
        (Atomic(Kind.DECIMAL, 30, 0), [4, 5, 6]),
    ):
        column = column_of(data_type, cells)
        holed = pa.Array.from_buffers(column.type, 3, [valid, *column.buffers()[1:]])
        assert holed.null_count == 2
        words = encode_versions([[holed]], [data_type], descending=descending)[0]
        assert places(numbers_of(words)) == [0, 0, 1]


@pytest.mark.parametrize(("lengths", "width"), [((100, 80), 13), ((1000, 1), 1)])
def test_one_long_string_does_not_widen_all_rows(lengths: tuple[int, int], width: int) -> None:
    long, short = ("x" * length for length in lengths)
    parts = [[long, short, long + "\0"], [short + "a", long, "", short + "b", short], []]
    encoded = encode_keys([[pa.array(cells, pa.string())] for cells in parts], [string()])
    assert [words.shape[1] for words in encoded] == [width] * 3
    found = [number for words in encoded for number in numbers_of(words)]
    assert places(found) == places([cell.encode() for cells in parts for cell in cells])
    versions = encode_versions([[pa.array([long, None, short])]], [string()], descending=True)[0]
    assert places(numbers_of(versions)) == [1, 0, 2]


@pytest.mark.parametrize(
    ("types", "columns", "width"),
    [
        ([INT, INT], [[-(2**31), 2**31 - 1], [-(2**31), 2**31 - 1]], 1),
        ([SMALLINT, Atomic(Kind.DATE)], [[-5, 5], [0, 10_000]], 1),
        ([BIGINT, BIGINT], [[10**15, 10**15 + 9], [7, 10**12]], 1),
        ([BIGINT, BIGINT], [[-(2**63), 2**63 - 1], [0, 1]], 2),
        ([string()], [["12345678", "1"]], 1),
        ([string()], [["1234567\0", "1"]], 2),
        ([string()], [["C8B4F9A0-9A51-4BE1-A0C7-F7E9C86A5D50"] * 2], 5),
        ([string(), INT], [["customer-01", "customer-2"], [0, 2**24]], 2),
        ([Atomic(Kind.DECIMAL, 38, 0)], [[1, -1]], 2),
        ([string()], [["", ""]], 1),
    ],
)
def test_words_are_few(types: list[Atomic], columns: list[list[object]], width: int) -> None:
    arrays = [column_of(data_type, cells) for data_type, cells in zip(types, columns, strict=True)]
    assert encode_keys([arrays], types)[0].shape == (2, width)


def test_words_of_all_parts_lie_behind_one_another() -> None:
    parts = encode_keys(
        [[pa.array(["a", "b"])], [pa.array([], pa.string())], [pa.array(["longer than that"])]], [string()]
    )
    assert [part.shape for part in parts] == [(2, 2), (0, 2), (1, 2)]
    assert parts[0].base is parts[2].base


UUIDS = [str(UUID(int=number)) for number in (7, 2**128 - 1, 0, 0x0123456789ABCDEF << 63, 0x9A << 88, 0xA9 << 88)]


@pytest.mark.parametrize("descending", [False, True])
def test_uuids(descending: bool) -> None:
    columns = [pa.array(["x", *UUIDS]).slice(1), pa.chunked_array([UUIDS[:1], [], UUIDS[1:]], pa.string())]
    compiled = key_words._uuid_loop.enabled
    found = encode_versions([[column] for column in columns], [string()], descending=descending)
    expected = [-place if descending else place for place in places(list(UUIDS))]
    for words in found:
        assert words.shape == (len(UUIDS), 2 if compiled else 5)
        assert places(numbers_of(words)) == places(expected)
    (both,) = encode_keys([[pa.array([1, 0, 1, 0, 1, 0]), columns[0]]], [BIGINT, string()])
    assert places(numbers_of(both)) == places(list(zip([1, 0, 1, 0, 1, 0], UUIDS, strict=True)))


@pytest.mark.parametrize("place", [0, 7, 8, 9, 13, 14, 18, 23, 24, 35])
@pytest.mark.parametrize("byte", [b"A", b"g", b"`", b"/", b":", b"\x00", b"\xb0", b"\xe1"])
def test_what_is_nearly_a_uuid_still_compares(place: int, byte: bytes) -> None:
    plain = UUIDS[4].encode()
    cells = [plain, plain[:place] + byte + plain[place + 1 :], UUIDS[5].encode()]
    (words,) = encode_keys([[pa.array(cells, pa.binary())]], [BYTES])
    assert words.shape == (3, 5)
    assert places(numbers_of(words)) == places(list(cells))


CELLS = ["b", "", "a\0", "a", "ä", "b"]


@pytest.mark.parametrize(
    "column",
    [
        pa.array(["x", *CELLS, "y"]).slice(1, 6),
        pa.chunked_array([CELLS[:2], [], CELLS[2:]], pa.string()),
        pa.array(CELLS, pa.large_string()),
        pa.array(CELLS, pa.string_view()),
        pa.array(CELLS).dictionary_encode(),
        pa.chunked_array([CELLS[:3], CELLS[3:]], pa.string()).dictionary_encode(),
        pa.array(CELLS, pa.binary()),
    ],
    ids=lambda column: str(column.type),
)
def test_strings_in_any_form(column: pa.Array | pa.ChunkedArray) -> None:
    plain, other = encode_keys([[pa.array(CELLS)], [column]], [string()])
    assert np.array_equal(plain, other)


@pytest.mark.parametrize(
    ("data_type", "column"),
    [
        (INT, pa.array([9, 3, -1, 7, 9], pa.int32()).slice(1, 3)),
        (INT, pa.chunked_array([[3], [-1, 7]], pa.int16())),
        (INT, pa.array([3, -1, 7], pa.int64())),
        (Atomic(Kind.DECIMAL, 30, 0), pa.array([9, 3, -1, 7], pa.decimal128(30, 0)).slice(1)),
        (Atomic(Kind.DECIMAL, 9, 0), pa.array([3, -1, 7], pa.decimal128(5, 0))),
        (Atomic(Kind.DOUBLE), pa.array([0, 3, -1, 7], pa.float64()).slice(1)),
        (Atomic(Kind.TIMESTAMP, 6), pa.array([3000, -1000, 7000], pa.timestamp("ns"))),
        (BYTES, pa.array([b"3", b"/", b"7"], pa.binary(1))),
    ],
)
def test_numbers_in_any_form(data_type: Atomic, column: pa.Array | pa.ChunkedArray) -> None:
    assert places(numbers_of(encode_keys([[column]], [data_type])[0])) == [1, 0, 2]


def test_all_nans_are_one_key() -> None:
    nans = np.array([0x7FF8000000000000, 0xFFF8000000000001, 0x7FF0000000000001], np.uint64).view(np.float64)
    words = encode_keys([[pa.array(nans)]], [Atomic(Kind.DOUBLE)])[0]
    assert len(set(numbers_of(words))) == 1


def test_a_null_key_is_named() -> None:
    parts = [[pa.array([1]), pa.array(["a"])], [pa.array([1, 2]), pa.chunked_array([["a"], [None]], pa.string())]]
    with pytest.raises(InvalidError, match="key column 1 holds NULL in row 1 of part 1"):
        encode_keys(parts, [BIGINT, string()])


@pytest.mark.parametrize(("column", "data_type"), [(["a"], BIGINT), ([2**40], INT), ([[1]], Array(INT))])
def test_what_is_no_key_is_refused(column: list[object], data_type: Atomic) -> None:
    with pytest.raises(InvalidError):
        encode_keys([[pa.array(column)]], [data_type])


def test_no_parts() -> None:
    assert encode_keys([], [BIGINT]) == []
    assert encode_keys([[pa.array([], pa.int64())]], [BIGINT])[0].shape == (0, 1)
