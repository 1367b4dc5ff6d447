"""Nested columns come back from their bytes, whatever is NULL or empty; bytes that are no value are told."""

import random
from typing import Any

import pyarrow as pa
import pytest

from lakelet.errors import CorruptionError
from lakelet.format.rows.nested_columns import restored_columns, stored_columns, stored_types
from lakelet.model.arrow.arrow_types import to_arrow
from lakelet.model.type_parser import parse_type

VALUES: dict[str, list[Any]] = {
    "ARRAY<INT>": [[1, None, -3], [], None, [7]],
    "ARRAY<STRING>": [["", "a long text of some length", None], None, ["é\x00"]],
    "ARRAY<ARRAY<BIGINT>>": [[[1], [], None, [2, 3]], [], None, [[]]],
    "MAP<STRING, DOUBLE>": [[("a", 1.5), ("b", None)], [], None],
    "MAP<INT, ARRAY<STRING>>": [[(1, ["x", None]), (2, [])], None, [(3, None)]],
    "MULTISET<STRING>": [[("a", 2), ("bb", 1)], None, []],
    "ROW<a INT, b STRING>": [{"a": 1, "b": "x"}, {"a": None, "b": None}, None],
    "ROW<r ROW<l ARRAY<DECIMAL(20, 2)>>, d DATE>": [{"r": {"l": []}, "d": None}, {"r": None, "d": None}, None],
    "ARRAY<ROW<m MAP<INT, TIMESTAMP(9)>, f BYTES>>": [[{"m": [(1, None)], "f": b"\x00"}, None], [], None],
}


@pytest.mark.parametrize("text", list(VALUES))
@pytest.mark.parametrize("layout", ["plain", "sliced", "chunked", "empty", "nulls", "masked"])
def test_values_come_back(text: str, layout: str) -> None:
    data_type = parse_type(text)
    arrow = to_arrow(data_type)
    column: Any = pa.array(VALUES[text] * 3, arrow)
    if layout == "sliced":
        column = column.slice(2, 5)
    elif layout == "chunked":
        column = pa.chunked_array([column.slice(1, 2), column.slice(0, 0), column.slice(4)])
    elif layout == "empty":
        column = column.slice(0, 0)
    elif layout == "nulls":
        column = pa.nulls(4, arrow)
    elif layout == "masked":
        # NULLs with values behind them, which do not count.
        validity = pa.array([number % 2 == 0 for number in range(len(column))])
        own = [] if pa.types.is_struct(arrow) else [column.buffers()[1]]
        column = pa.Array.from_buffers(arrow, len(column), [validity.buffers()[1], *own], children=_children(column))
    (stored,) = stored_columns([column], [data_type])
    assert stored.type == to_arrow(stored_types([data_type])[0])
    (found,) = restored_columns([stored], [data_type], where="here")
    found.validate(full=True)
    assert found.type == arrow
    assert found.to_pylist() == column.to_pylist()
    part = stored.slice(1)
    (found,) = restored_columns([part], [data_type], where="here")
    assert found.to_pylist() == column.to_pylist()[1:]


def _children(column: pa.Array) -> list[pa.Array]:
    if pa.types.is_struct(column.type):
        return [column.field(place) for place in range(column.type.num_fields)]
    if pa.types.is_map(column.type):
        return [pa.StructArray.from_arrays([column.keys, column.items], fields=list(column.type.field(0).type))]
    return [column.values]


@pytest.mark.parametrize("text", [text for text in VALUES if not text.startswith("ROW")])
def test_bytes_that_are_no_value_are_told(text: str) -> None:
    data_type = parse_type(text)
    (stored,) = stored_columns([pa.array(VALUES[text][:1], to_arrow(data_type))], [data_type])
    whole = stored[0].as_py()
    for damaged in (b"", whole[:3], whole[:-1], whole + b"x", b"\xff\xff\xff\xff" + whole[4:], b"\x09" + whole[1:]):
        with pytest.raises(CorruptionError):
            restored_columns([pa.array([damaged], pa.binary())], [data_type], where="here")
    # Any other damage is told, or is another value: it never fails in another way.
    rng = random.Random(1)
    for _ in range(200):
        place = rng.randrange(len(whole))
        flipped = whole[:place] + bytes((whole[place] ^ rng.randrange(1, 256),)) + whole[place + 1 :]
        try:
            (found,) = restored_columns([pa.array([flipped], pa.binary())], [data_type], where="here")
        except CorruptionError:
            continue
        found.validate()
