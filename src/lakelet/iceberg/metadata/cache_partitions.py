"""Level 4 of an Iceberg table: the partitions of a snapshot with their manifests, counts and column bounds.

Everything is computed from the live entries of the snapshot, whose manifests are kept decoded. Bounds are never updated in place,
for a removed file may have held the least value; a column of which one file with values has no bound has none. Deletes do not
narrow bounds, and are not subtracted from counts. Partitions of several specs that have one path are one partition.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote_plus

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.transforms import IdentityTransform, Transform
from pyiceberg.types import IcebergType, PrimitiveType

from lakelet.cache.values import PartitionCacheValue, PartitionMetadata
from lakelet.iceberg.library_internals import fields_by_id
from lakelet.iceberg.scan.column_statistics import Bounds
from lakelet.iceberg.scan.live_entries import LiveEntries
from lakelet.iceberg.scan.pruning import planning_schema

Rows = NDArray[np.int64]


def partition_value(
    metadata: TableMetadata, snapshot: Snapshot, live: LiveEntries, values: list[tuple[Any, ...]]
) -> PartitionCacheValue:
    """The partitions of a snapshot by path; `values` are those of the entries' partitions, as expressions compare them."""
    schema = metadata.schema()
    every, specs = planning_schema(metadata, schema), metadata.specs()
    numbers: dict[str, int] = {}
    shown: list[dict[str, str | None]] = []
    of_partition = np.zeros(len(values), np.int64)
    for place, ((spec_id, _), one) in enumerate(zip(live.partitions, values, strict=True)):
        texts = _texts(specs[spec_id], every, one)
        path = "/".join(
            f"{quote_plus(name, safe='')}={quote_plus('null' if text is None else text, safe='')}"
            for name, text in texts.items()
        )
        if path not in numbers:
            numbers[path] = len(numbers)
            shown.append(texts)
        of_partition[place] = numbers[path]
    codes = of_partition[live.partition_codes]
    order = np.argsort(codes, kind="stable")
    starts = np.searchsorted(codes[order], np.arange(len(numbers) + 1))
    found = {
        path: _partition(live, schema, order[starts[code] : starts[code + 1]], shown[code])
        for path, code in numbers.items()
        if starts[code] < starts[code + 1]
    }
    return PartitionCacheValue(snapshot.snapshot_id, found, snapshot.manifest_list)


def _texts(spec: PartitionSpec, schema: Schema, values: tuple[Any, ...]) -> dict[str, str | None]:
    kinds = spec.partition_type(schema).fields
    return {
        part.name: None if value is None else _text(part.transform, kind.field_type, value)
        for part, kind, value in zip(spec.fields, kinds, values, strict=True)
    }


def _text(transform: Transform[Any, Any], kind: IcebergType, value: Any) -> str:
    try:
        return transform.to_human_string(kind, value)
    except (OverflowError, ValueError):
        # The library shows no day beyond the year 9999 or before 1.
        return str(value)


def _partition(live: LiveEntries, schema: Schema, rows: Rows, spec: Mapping[str, str | None]) -> PartitionMetadata:
    lower: dict[int, str] = {}
    upper: dict[int, str] = {}
    for number, field in fields_by_id(schema).items():
        if not isinstance(field.field_type, PrimitiveType):
            continue
        found = live.statistics(number, field.field_type)
        empty = found.only_nulls[rows]
        for bounds, least, into in ((found.lower, True, lower), (found.upper, False, upper)):
            text = None if bounds is None else _bound(bounds, rows, empty, field.field_type, least=least)
            if text is not None:
                into[number] = text
    return PartitionMetadata(
        spec,
        tuple(live.manifest_paths[place] for place in np.unique(live.manifests[rows]).tolist()),
        int(live.rows[rows].sum()),
        len(rows),
        int(live.sizes[rows].sum()),
        lower,
        upper,
    )


def _bound(bounds: Bounds, rows: Rows, empty: NDArray[np.bool_], kind: IcebergType, *, least: bool) -> str | None:
    """The least lower or greatest upper bound of files; None where one with values has none, or there is no value."""
    known = bounds.known[rows]
    if not (known | empty).all() or not known.any():
        return None
    chosen = rows[known]
    if isinstance(bounds.values, pa.Array):
        taken = bounds.values.take(pa.array(chosen))
        value = (pc.min if least else pc.max)(taken).as_py()
        value = value.decode() if str(kind) == "string" else value
    else:
        values = bounds.values[chosen]
        value = values.min() if least else values.max()
        value = value.item() if isinstance(value, np.generic) else value
    return _text(IdentityTransform(), kind, value)
