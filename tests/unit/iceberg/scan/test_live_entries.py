"""Entries of several manifests together, as columns."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
from pyiceberg.types import LongType

from lakelet.iceberg.metadata import manifests as fields
from lakelet.iceberg.metadata.manifests import Entries
from lakelet.iceberg.scan.live_entries import LiveEntries

_PAIR = pa.struct([("key", pa.int32()), ("value", pa.int64())])
_BOUND = pa.struct([("key", pa.int32()), ("value", pa.binary())])


def entries(path: str, partitions: pa.Array | None, count: int, spec_id: int = 0, **more: pa.Array) -> Entries:
    columns: dict[int, Any] = {
        fields.PATH: pa.array([f"{path}-{number}" for number in range(count)]),
        fields.ROWS: pa.array(range(count), pa.int64()),
        fields.SIZE: pa.array(range(count), pa.int64()),
    }
    if partitions is not None:
        columns[fields.PARTITION] = partitions
    columns |= {int(name.removeprefix("f")): column for name, column in more.items()}
    return Entries(path, spec_id, np.arange(count), columns)


def of_files(live: LiveEntries) -> list[tuple[int, tuple[Any, ...]]]:
    return [live.partitions[code] for code in live.partition_codes.tolist()]


def test_partitions_are_told_apart_by_all_their_values() -> None:
    kind = pa.struct([("a", pa.string()), ("b", pa.int32())])
    first = pa.array([{"a": "x", "b": 1}, {"a": None, "b": 1}, {"a": "x", "b": None}, {"a": "x", "b": 1}], kind)
    second = pa.array([{"a": "y", "b": 1}, {"a": None, "b": 1}, {"a": None, "b": None}], kind)
    live = LiveEntries.of([entries("m", first, 4), entries("n", second, 3)], statistics=False)
    values = [("x", 1), (None, 1), ("x", None), ("x", 1), ("y", 1), (None, 1), (None, None)]
    assert of_files(live) == [(0, one) for one in values]
    assert len(live.partitions) == 5
    assert live.manifests.tolist() == [0, 0, 0, 0, 1, 1, 1]


def test_partitions_of_floats_are_told_apart_by_their_bits() -> None:
    kind = pa.struct([("a", pa.float64())])
    values = pa.array([{"a": one} for one in (0.0, -0.0, math.nan, None, 0.0, math.nan)], kind)
    live = LiveEntries.of([entries("m", values, 6)], statistics=False)
    assert [repr(one[1][0]) for one in of_files(live)] == ["0.0", "-0.0", "nan", "None", "0.0", "nan"]
    assert len(live.partitions) == 4


def test_specs_and_manifests_without_partitions() -> None:
    kind = pa.struct([("a", pa.string())])
    parts = [
        entries("m", None, 2),
        entries("n", pa.array([{"a": "x"}], kind), 1, spec_id=1),
        entries("o", pa.array([{}], pa.struct([])), 1, spec_id=2),
        entries("p", pa.array([{"a": "x"}], kind), 1, spec_id=3),
        entries("q", pa.array([], kind), 0, spec_id=1),
    ]
    live = LiveEntries.of(parts, statistics=False)
    assert of_files(live) == [(0, ()), (0, ()), (1, ("x",)), (2, ()), (3, ("x",))]
    assert live.partition_manifests() == ["m", "n", "o", "p"]
    assert live.formats.to_pylist() == ["PARQUET"] * 5
    assert live.contents.tolist() == [0] * 5
    assert len(LiveEntries.of([], statistics=True)) == 0


def test_statistics_of_writers_that_name_members_differently() -> None:
    other = pa.struct([pa.field("k", pa.int32(), False), pa.field("v", pa.int64(), False)])
    one = pa.array([[{"key": 1, "value": 5}], None, [{"key": 2, "value": 7}]], pa.list_(_PAIR))
    two = pa.array([[{"k": 2, "v": 9}, {"k": 1, "v": 6}]], pa.list_(other))
    bounds = pa.array([[{"key": 1, "value": (3).to_bytes(8, "little")}]], pa.list_(_BOUND))
    parts = [
        entries("m", None, 3, **{f"f{fields.NULLS}": one}),
        entries("n", None, 1, **{f"f{fields.NULLS}": two, f"f{fields.LOWER}": bounds}),
        entries("o", None, 1),
    ]
    live = LiveEntries.of(parts, statistics=True)
    found = live.statistics(1, LongType())
    assert found.null_counts.tolist() == [5, -1, -1, 6, -1]
    assert live.statistics(2, LongType()).null_counts.tolist() == [-1, -1, 7, 9, -1]
    assert found.lower is not None
    assert found.lower.known.tolist() == [False, False, False, True, False]
    assert found.lower.values[3] == 3
    assert live.statistics(1, LongType()) is found
