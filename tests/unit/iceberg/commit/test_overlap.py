"""Whether a file of one spec may hold rows of a partition of another: never a wrong NONE or ALL, whatever the rows are."""

from __future__ import annotations

import math
from datetime import date
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyiceberg.conversions import to_bytes
from pyiceberg.manifest import DataFile
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import parse_transform
from pyiceberg.typedef import Record
from pyiceberg.types import (
    DateType,
    DoubleType,
    LongType,
    NestedField,
    PrimitiveType,
    StringType,
    TimestampType,
    UUIDType,
)

from lakelet.iceberg.commit.overlap import Fit, reach_of
from lakelet.iceberg.commit.partition_keys import value_key
from lakelet.iceberg.commit.snapshot.live_files import LiveFiles
from tests.tiers.examples import examples
from tests.unit.iceberg.commit.tables import NAME, begin, new_catalog, set_partitions, write

KINDS: dict[str, tuple[PrimitiveType, Any, list[str]]] = {
    "long": (
        LongType(),
        st.integers(-200, 200),
        ["identity", "bucket[4]", "bucket[8]", "truncate[10]", "truncate[25]"],
    ),
    "date": (DateType(), st.integers(-800, 800), ["identity", "year", "month", "day", "bucket[4]"]),
    "moment": (
        TimestampType(),
        st.integers(-100 * 86_400_000_000, 100 * 86_400_000_000),
        ["identity", "year", "month", "day", "hour", "bucket[4]"],
    ),
    "text": (StringType(), st.text("abé😀", max_size=5), ["identity", "truncate[1]", "truncate[3]", "bucket[4]"]),
    "double": (DoubleType(), st.floats(-3, 3) | st.just(math.nan), ["identity"]),
}


def data_file(kind: PrimitiveType, rows: list[Any], partition: tuple[Any, ...], *, statistics: bool) -> DataFile:
    """What a writer says of a file with one column."""
    plain = [one for one in rows if one is not None and not (isinstance(one, float) and math.isnan(one))]
    given: dict[str, Any] = {
        name: {} for name in ("null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds")
    }
    if statistics:
        given["null_value_counts"] = {1: sum(one is None for one in rows)}
        given["nan_value_counts"] = {1: sum(isinstance(one, float) and math.isnan(one) for one in rows)}
        if plain:
            given["lower_bounds"] = {1: to_bytes(kind, min(plain))}
            given["upper_bounds"] = {1: to_bytes(kind, max(plain))}
    return DataFile.from_args(partition=Record(*partition), record_count=len(rows), **given)


@settings(max_examples=examples(400), deadline=None)
@given(st.data())
@pytest.mark.parametrize("name", KINDS)
def test_the_answer_is_never_wrong(name: str, data: st.DataObject) -> None:
    kind, values, transforms = KINDS[name]
    asked = parse_transform(data.draw(st.sampled_from(transforms)))
    known = parse_transform(data.draw(st.sampled_from([*transforms, "void"])))
    drawn = data.draw(st.lists(st.none() | values, min_size=1, max_size=6))
    filed = known.transform(kind)
    # Only rows of one partition are in a file.
    rows = [one for one in drawn if value_key(filed(one)) == value_key(filed(drawn[0]))]
    spec = PartitionSpec(PartitionField(1, 1000, known, "p"))
    file = data_file(kind, rows, (filed(rows[0]),), statistics=data.draw(st.booleans()))
    moved = [value_key(asked.transform(kind)(one)) for one in rows]
    reach = reach_of(1, asked, kind, file, spec)
    for one in [*drawn, data.draw(st.none() | values)]:
        value = asked.transform(kind)(one)
        fit = reach.fit(value)
        if fit is Fit.NONE:
            assert value_key(value) not in moved
        if fit is Fit.ALL:
            assert set(moved) == {value_key(value)} or (
                value == 0 and all(found in (0, value_key(-0.0)) for found in moved)
            )


@pytest.mark.parametrize(
    ("kind", "known", "filed", "asked", "value", "expected"),
    [
        (DateType(), "month", 672, "day", (date(2026, 1, 15) - date(1970, 1, 1)).days, Fit.SOME),
        (DateType(), "month", 672, "day", (date(2026, 2, 1) - date(1970, 1, 1)).days, Fit.NONE),
        (DateType(), "month", 672, "year", 56, Fit.ALL),
        (TimestampType(), "day", 20454, "hour", 20454 * 24 + 24, Fit.NONE),
        (TimestampType(), "day", 20454, "hour", 20454 * 24 + 23, Fit.SOME),
        (TimestampType(), "hour", -1, "day", -1, Fit.ALL),
        (LongType(), "bucket[8]", 6, "bucket[4]", 2, Fit.ALL),
        (LongType(), "bucket[8]", 6, "bucket[4]", 3, Fit.NONE),
        (LongType(), "bucket[4]", 2, "bucket[8]", 3, Fit.SOME),
        (LongType(), "truncate[10]", -10, "identity", -1, Fit.SOME),
        (LongType(), "truncate[10]", -10, "identity", 0, Fit.NONE),
        (StringType(), "truncate[3]", "abc", "truncate[2]", "ab", Fit.ALL),
        (StringType(), "identity", "null", "identity", None, Fit.NONE),
        (StringType(), "identity", None, "identity", "null", Fit.NONE),
    ],
)
def test_partition_values_decide(
    kind: PrimitiveType, known: str, filed: Any, asked: str, value: Any, expected: Fit
) -> None:
    spec = PartitionSpec(PartitionField(1, 1000, parse_transform(known), "p"))
    file = data_file(kind, [], (filed,), statistics=False)
    assert reach_of(1, parse_transform(asked), kind, file, spec).fit(value) is expected


def test_nothing_known_is_some() -> None:
    file = data_file(LongType(), [1], (), statistics=False)
    assert reach_of(1, parse_transform("identity"), LongType(), file, PartitionSpec()).fit(1) is Fit.SOME


def test_bounds_of_uuids_tell_nothing() -> None:
    """To Java's engines those that begin with f come before those that begin with 0."""
    first, last, between = UUID(int=0xF << 124), UUID(int=1 << 124), UUID(int=0)
    bounds: dict[str, Any] = {"lower_bounds": {1: first.bytes}, "upper_bounds": {1: last.bytes}}
    file = DataFile.from_args(partition=Record(), record_count=3, null_value_counts={1: 0}, **bounds)
    reach = reach_of(1, parse_transform("identity"), UUIDType(), file, PartitionSpec())
    assert reach.fit(between.bytes) is Fit.SOME


def test_a_manifest_of_uuids_in_another_order_is_read(tmp_path: Path) -> None:
    catalog = new_catalog(tmp_path)
    catalog.library.create_table(NAME, Schema(NestedField(1, "id", LongType()), NestedField(2, "u", UUIDType())))
    table = catalog.table(NAME)
    set_partitions(table, {"u": "identity"})
    kept = [UUID(int=0xF << 124), UUID(int=1 << 124)]

    def rows(number: int, *values: UUID) -> pa.Table:
        return pa.table({"id": [number] * len(values), "u": pa.array([one.bytes for one in values], pa.binary(16))})

    write(table, rows(1, *kept, UUID(int=0)))
    transaction = begin(table, rows(2, UUID(int=0)), "overwrite_partitions")
    head = table.reloaded().metadata.current_snapshot()
    assert head is not None
    live = LiveFiles(table.library.io)
    for manifest in live.manifests(head):
        summary = manifest.partitions[0]  # type: ignore[index]
        summary[2], summary[3] = kept[0].bytes, kept[1].bytes
    overwrite = transaction._overwrite(transaction._plan)  # type: ignore[arg-type]
    assert overwrite is not None
    assert len(overwrite.replaced(table.reloaded().metadata, head, live).data) == 1
