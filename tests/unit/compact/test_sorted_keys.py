"""Keys in order, found in one another: as numbers where they are short, by hashing where they are not."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from lakelet.compact.keyed.sorted_keys import SortedKeys
from lakelet.model.arrow.arrow_types import to_arrow
from lakelet.model.type_parser import parse_type
from lakelet.model.types import Field

CASES: dict[str, tuple[list[str], list[tuple[Any, ...]], list[tuple[Any, ...]]]] = {
    "number": (["BIGINT"], [(-5,), (0,), (7,), (9,)], [(-6,), (0,), (9,), (10,)]),
    "several": (["INT", "SMALLINT"], [(-1, 2), (-1, 3), (4, -4)], [(-1, 3), (4, -5), (4, -4)]),
    "wide": (["BIGINT", "BIGINT"], [(1, -2), (1, 3), (2, 0)], [(1, -2), (2, -1)]),
    "text": (["STRING"], [("",), ("a",), ("a\0",), ("b",)], [("a",), ("ab",), ("b",)]),
    "texts that are as long as others of their batch": (["STRING"], [("b",)], [("aa",), ("ab",), ("bb",)]),
    "bytes in front": (["BYTES", "TINYINT"], [(b"", 1), (b"", 3)], [(b"a", 0), (b"b", 1)]),
    "double": (["DOUBLE"], [(-0.0,), (0.0,), (float("nan"),)], [(0.0,), (float("nan"),)]),
    "empty": (["INT"], [], [(1,)]),
}


def keys_of(types: list[str], rows: list[tuple[Any, ...]]) -> SortedKeys:
    fields = [Field(place, f"k{place}", parse_type(text)) for place, text in enumerate(types)]
    columns = [pa.array([row[place] for row in rows], to_arrow(field.type)) for place, field in enumerate(fields)]
    return SortedKeys.of(pa.RecordBatch.from_arrays(columns, names=[field.name for field in fields]), fields)


@pytest.mark.parametrize("name", CASES)
def test_places_and_counts(name: str) -> None:
    types, one, other = CASES[name]
    texts = [list(map(repr, rows)) for rows in (one, other)]
    ours, theirs = keys_of(types, one), keys_of(types, other)
    for rows, keys, among, values in ((texts[0], ours, texts[1], theirs), (texts[1], theirs, texts[0], ours)):
        assert keys.places_in(values).tolist() == [among.index(row) if row in among else -1 for row in rows]
        for count in range(1, len(values) + 1):
            bound = values.up_to(count)
            expected = [row for row in keys.encoded.to_pylist() if row <= bound.encoded[-1].as_py()]
            assert keys.count_up_to(bound) == len(expected)
            assert keys.after(1).count_up_to(bound) == max(0, len(expected) - 1)
