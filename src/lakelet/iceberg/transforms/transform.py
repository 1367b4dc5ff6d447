"""Iceberg's partition transforms over whole Arrow arrays.

    transform_of(field, source type) ─ apply: array ─→ array of partition values
                                     ├ to_human_string: for folders, such as 2024-01-01-05
                                     └ get_partition_value: for manifests, such as hours since 1970

Results are those of pyiceberg and of the specification, value by value; pyiceberg's own transforms of arrays are not used, as
they give up on arrays whose buffers are not aligned.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import quote_plus

import numpy as np
import pyarrow as pa
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.table.sorting import SortField
from pyiceberg.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    Transform,
    TruncateTransform,
    UnknownTransform,
    VoidTransform,
    YearTransform,
)
from pyiceberg.types import DateType, IcebergType, TimestamptzType

from lakelet.errors import InvalidError
from lakelet.iceberg.library_internals import unknown_transform_name
from lakelet.iceberg.transforms.bucket import bucket
from lakelet.iceberg.transforms.plain_array import over_plain
from lakelet.iceberg.transforms.times import day, hour, month, year
from lakelet.iceberg.transforms.truncate import truncate

_TYPES = pa.types
_GREATEST = 0x7FFFFFFF
_TIMES: dict[type[Any], Callable[[pa.Array], pa.Array]] = {
    YearTransform: year,
    MonthTransform: month,
    DayTransform: day,
    HourTransform: hour,
}


@dataclass(frozen=True, slots=True)
class PartitionTransform:
    """The transform of one partition field, or of one field of a sort order."""

    name: str
    source_type: IcebergType
    result_type: IcebergType
    library: Transform[Any, Any]
    function: Callable[[pa.Array], pa.Array]

    def apply(self, array: pa.Array | pa.ChunkedArray) -> pa.Array:
        """The transformed values, in one chunk. Timestamps under identity keep their type, days and the like are numbers."""
        return over_plain(array, self.function)

    def to_human_string(self, value: Any) -> str:
        """A partition value, in the form manifests have, for the name of a folder; 'null' for NULL."""
        return human_string(self.library, self.result_type, value)

    def get_partition_values(self, array: pa.Array) -> list[Any]:
        """What `apply` gave, in the form manifests have: days and timestamps as numbers, uuids as bytes, NULL as None."""
        arrow = array.type
        if _TYPES.is_date32(arrow):
            array = array.cast(pa.int32())
        elif _TYPES.is_timestamp(arrow) or _TYPES.is_time64(arrow):
            array = array.cast(pa.int64())
        found: list[Any] = array.to_pylist()
        return found

    def get_partition_value(self, value: pa.Scalar) -> Any:
        """The same for one value."""
        return self.get_partition_values(pa.array([value], value.type))[0]


def transform_of(field: PartitionField | SortField, source_type: IcebergType) -> PartitionTransform:
    """The transform of a field; InvalidError, with its name, where it is unknown or not for that type."""
    library = field.transform
    name = unknown_transform_name(library) if isinstance(library, UnknownTransform) else str(library)
    what = f"partition field {field.name!r}" if isinstance(field, PartitionField) else f"sort field {field.source_id}"
    if isinstance(library, UnknownTransform):
        raise InvalidError(f"{what}: transform {name!r} is not known")
    if not library.can_transform(source_type):
        raise InvalidError(f"{what}: transform {name!r} does not take {source_type}")
    size = library.num_buckets if isinstance(library, BucketTransform) else 1
    size = library.width if isinstance(library, TruncateTransform) else size
    if not 1 <= size <= _GREATEST:
        raise InvalidError(f"{what}: transform {name!r}: expected a number from 1 to {_GREATEST}")
    return PartitionTransform(
        name, source_type, library.result_type(source_type), library, _function(library, source_type)
    )


def human_string(library: Transform[Any, Any], result_type: IcebergType, value: Any) -> str:
    """A value that a transform made, in the form manifests have, as folders show it; 'null' for NULL."""
    try:
        return library.to_human_string(result_type, value)
    except (OverflowError, ValueError):
        return _far_moment(library, result_type, value)


def partition_path(spec: PartitionSpec, texts: Sequence[str]) -> str:
    """The folder of a partition below a table's data, `name=value/…`, of values that `human_string` made."""
    return "/".join(
        f"{quote_plus(field.name, safe='')}={quote_plus(text, safe='')}"
        for field, text in zip(spec.fields, texts, strict=True)
    )


def _far_moment(library: Transform[Any, Any], kind: IcebergType, value: int) -> str:
    """A day, an hour or a timestamp outside the years of Python's calendar."""
    if isinstance(library, HourTransform):
        return str(np.datetime64(value, "h")).replace("T", "-")
    if isinstance(kind, DateType):
        return str(np.datetime64(value, "D"))
    return str(np.datetime64(value, "us")) + ("+00:00" if isinstance(kind, TimestamptzType) else "")


def _function(library: Transform[Any, Any], source: IcebergType) -> Callable[[pa.Array], pa.Array]:
    match library:
        case IdentityTransform():
            return _identity
        case VoidTransform():
            return _nothing
        case BucketTransform():
            return partial(bucket, source=source, count=library.num_buckets)
        case TruncateTransform():
            return partial(truncate, source=source, width=library.width)
        case _:
            return _TIMES[type(library)]


def _identity(array: pa.Array) -> pa.Array:
    return array


def _nothing(array: pa.Array) -> pa.Array:
    return pa.nulls(len(array), array.type)
