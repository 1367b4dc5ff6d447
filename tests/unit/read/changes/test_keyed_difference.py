"""Changes between versions of a primary-key table's rows."""

from typing import Any

import pyarrow as pa
import pytest

from lakelet.model.types import Atomic, Kind
from lakelet.read.changes.keyed_difference import keyed_difference

NAN = float("nan")


def difference(arrow: pa.DataType, before: dict[int, Any], after: dict[int, Any]) -> list[tuple[str, int, Any]]:
    """The changes of rows (id, Id): the second column differs from the first in case only."""
    schema = pa.schema([("id", pa.int32()), ("Id", arrow)])
    readers = [
        pa.table({"id": list(rows), "Id": pa.array(list(rows.values()), arrow)}, schema=schema).to_reader()
        for rows in (before, after)
    ]
    found = []
    for kinds, rows in keyed_difference(*readers, [("id", Atomic(Kind.INT))]):
        found += [(kind, *row.values()) for kind, row in zip(kinds.to_pylist(), rows.to_pylist(), strict=True)]
    return found


def test_each_key_tells_what_became_of_it() -> None:
    found = difference(pa.int64(), {1: 1, 2: 2, 3: 3, 4: None}, {2: 2, 3: 30, 5: 5, 4: 4})
    assert sorted(found[:1] + found[-1:]) == [("+I", 5, 5), ("-D", 1, 1)]
    assert found[1:-1] in (
        [("-U", 3, 3), ("+U", 3, 30), ("-U", 4, None), ("+U", 4, 4)],
        [("-U", 4, None), ("+U", 4, 4), ("-U", 3, 3), ("+U", 3, 30)],
    )


MAP = pa.map_(pa.string(), pa.int32())


@pytest.mark.parametrize(
    ("arrow", "one", "other"),
    [
        (pa.float64(), NAN, NAN),
        (pa.list_(pa.struct([("x", pa.float64())])), [{"x": NAN}, None, {"x": None}], [{"x": NAN}, None, {"x": None}]),
        (pa.map_(pa.string(), pa.float64()), [("a", 0.0), ("b", 1.0)], [("b", 1.0), ("a", 0.0)]),
        (MAP, [("a", 1), ("b", None)], [("b", None), ("a", 1)]),
        (MAP, None, None),
        (pa.list_(MAP), [[("a", 1), ("b", 2)], None], [[("b", 2), ("a", 1)], None]),
        (pa.struct([("x", MAP), ("y", pa.int8())]), {"x": [("a", 1), ("b", 2)]}, {"x": [("b", 2), ("a", 1)]}),
        (pa.map_(pa.int32(), MAP), [(1, [("a", 1), ("b", 2)])], [(1, [("b", 2), ("a", 1)])]),
    ],
)
def test_equal_values_are_no_change(arrow: pa.DataType, one: Any, other: Any) -> None:
    assert difference(arrow, {1: one}, {1: other}) == []


@pytest.mark.parametrize(
    ("arrow", "one", "other"),
    [
        (pa.float64(), 0.0, -0.0),
        (pa.list_(pa.float32()), [0.0], [-0.0]),
        (pa.struct([("x", pa.float64())]), {"x": 0.0}, {"x": -0.0}),
        (pa.map_(pa.string(), pa.float64()), [("a", 0.0)], [("a", -0.0)]),
        (pa.float32(), None, 0.0),
        (pa.float64(), NAN, None),
        (MAP, [("a", 1)], [("a", 2)]),
        (MAP, [], None),
        (pa.struct([("x", MAP)]), {"x": None}, None),
        (pa.list_(MAP), [[]], [None]),
        (pa.timestamp("ns"), 1, 2),
        (pa.binary(), b"", None),
    ],
)
def test_other_values_are_an_update(arrow: pa.DataType, one: Any, other: Any) -> None:
    assert [kind for kind, *_ in difference(arrow, {1: one}, {1: other})] == ["-U", "+U"]
