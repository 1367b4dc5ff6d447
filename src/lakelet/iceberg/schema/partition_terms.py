"""Partition terms of SQL statements, and the partition specs made of them.

    days(ts), bucket(16, id)     PartitionTerm(("ts",), "day"), PartitionTerm(("id",), "bucket[16]")
    a new table                  fields ts_day, id_bucket
    a changed table              a further spec; files keep the one they were written by

Pure functions from schemas and terms to specs. Fields get the names that Iceberg's Spark engine gives them, which differ: one of
a new table is `id_bucket`, one that is added later `id_bucket_16`. A field that a table had before comes back under its old
id, so that files of both specs are partitioned alike; in format version 1 a field that is dropped stays as a void one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyiceberg.partitioning import (
    PARTITION_FIELD_ID_START,
    PartitionField,
    PartitionSpec,
    validate_partition_name,
)
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.transforms import (
    BucketTransform,
    IdentityTransform,
    TimeTransform,
    Transform,
    TruncateTransform,
    VoidTransform,
    parse_transform,
)
from pyiceberg.types import NestedField, StructType

from lakelet.errors import InvalidError
from lakelet.iceberg.catalog.library_errors import lakelet_errors
from lakelet.iceberg.schema.column_types import iceberg_schema
from lakelet.iceberg.table import IcebergTable
from lakelet.model.types import Field

_AnyTransform = Transform[Any, Any]


@dataclass(frozen=True, slots=True)
class PartitionTerm:
    """A column by its path, and its transform: identity, year, month, day, hour, bucket[n] or truncate[n]. A field gets
    `name`, or a name made of both."""

    column: tuple[str, ...]
    transform: str = "identity"
    name: str | None = None

    def __str__(self) -> str:
        column = ".".join(self.column)
        if self.transform == "identity":
            return column
        word, _, number = self.transform.removesuffix("]").partition("[")
        return f"{word}({number}, {column})" if number else f"{word}s({column})"


def new_spec(schema: Schema, terms: Sequence[PartitionTerm]) -> PartitionSpec:
    """The spec of a new table; InvalidError for a term that no spec can have."""
    fields: list[PartitionField] = []
    for place, term in enumerate(terms):
        source, transform = _bound(schema, term)
        for other in fields:
            both_times = isinstance(transform, TimeTransform) and isinstance(other.transform, TimeTransform)
            if other.source_id == source.field_id and (both_times or other.transform == transform):
                raise InvalidError(f"{term}: field {other.name!r} already tells as much of {'.'.join(term.column)}")
        name = term.name or _new_name(term, transform)
        if any(other.name == name for other in fields):
            raise InvalidError(f"{term}: a field called {name!r} is there already; AS gives it another name")
        _check_name(schema, name, transform, source)
        fields.append(PartitionField(source.field_id, PARTITION_FIELD_ID_START + place, transform, name))
    return PartitionSpec(*fields)


def check_terms(fields: Sequence[Field], terms: Sequence[PartitionTerm], *, format_version: int) -> None:
    """InvalidError unless a new table with these columns can be partitioned so."""
    new_spec(iceberg_schema(fields, format_version=format_version), terms)


def changed_spec(
    metadata: TableMetadata, *, dropped: Sequence[PartitionTerm | str], added: Sequence[PartitionTerm]
) -> PartitionSpec:
    """The default spec without some fields, given by name or by term, and with others. Its id is that of an equal
    spec the table had before, or a new one."""
    schema, current = metadata.schema(), metadata.spec()
    gone = {_field(metadata, one).field_id for one in dropped}
    kept = [field for field in current.fields if field.field_id not in gone]
    fields = list(kept)
    if metadata.format_version == 1:
        fields = [
            PartitionField(field.source_id, field.field_id, VoidTransform(), field.name)
            if field.field_id in gone
            else field
            for field in current.fields
        ]
    next_id = (metadata.last_partition_id or PARTITION_FIELD_ID_START - 1) + 1
    for term in added:
        source, transform = _bound(schema, term)
        same = next((one for one in kept if one.source_id == source.field_id and one.transform == transform), None)
        if same is not None:
            raise InvalidError(f"{term}: the table is partitioned by it already, as field {same.name!r}")
        made = _earlier(metadata, source.field_id, transform, term.name)
        if made is None:
            name = term.name or _added_name(term, transform)
            made, next_id = PartitionField(source.field_id, next_id, transform, name), next_id + 1
        _check_name(schema, made.name, transform, source)
        fields = [_out_of_the_way(field, made.name, term) for field in fields]
        fields.append(made)
    made_spec = PartitionSpec(*fields)
    for spec in metadata.specs().values():
        if made_spec.compatible_with(spec):
            return spec
    return PartitionSpec(*fields, spec_id=max(metadata.specs()) + 1)


def shown_terms(table: IcebergTable) -> list[PartitionTerm]:
    """What the default spec partitions by, without fields that are void."""
    schema = table.metadata.schema()
    found = []
    for field in table.metadata.spec().fields:
        if isinstance(field.transform, VoidTransform):
            continue
        column = _path(schema, field.source_id)
        term = PartitionTerm(column, str(field.transform))
        is_plain = field.name == _new_name(term, field.transform)
        found.append(PartitionTerm(column, term.transform, None if is_plain else field.name))
    return found


def _bound(schema: Schema, term: PartitionTerm) -> tuple[NestedField, _AnyTransform]:
    """The column of a term and its transform; InvalidError where they do not go together."""
    source: NestedField | None = None
    fields: Sequence[NestedField] = schema.fields
    for name in term.column:
        source = next((field for field in fields if field.name == name), None)
        if source is None:
            raise InvalidError(f"{term}: a table is partitioned by columns, and by fields of a ROW")
        fields = source.field_type.fields if isinstance(source.field_type, StructType) else ()
    assert source is not None
    with lakelet_errors(str(term)):
        transform: _AnyTransform = parse_transform(term.transform)
    match transform:
        case BucketTransform(num_buckets=number) | TruncateTransform(width=number) if number < 1:
            raise InvalidError(f"{term}: expected a number from 1 on, found {number}")
    if not transform.can_transform(source.field_type):
        raise InvalidError(
            f"{term}: column {'.'.join(term.column)!r} is {source.field_type}, of which there is no {transform}"
        )
    return source, transform


def _field(metadata: TableMetadata, wanted: PartitionTerm | str) -> PartitionField:
    """The field of the default spec that is called so, or that is of this column by this transform."""
    there = [field for field in metadata.spec().fields if not isinstance(field.transform, VoidTransform)]
    for field in there:
        if isinstance(wanted, str):
            if field.name == wanted:
                return field
        elif _path(metadata.schema(), field.source_id) == wanted.column and str(field.transform) == wanted.transform:
            return field
    names = ", ".join(field.name for field in there) or "none"
    raise InvalidError(f"there is no partition field {str(wanted)!r}; there are {names}")


def _earlier(metadata: TableMetadata, source: int, transform: _AnyTransform, name: str | None) -> PartitionField | None:
    """The same field of a spec the table had before; format version 1 counts fields by their place and has none."""
    if metadata.format_version == 1:
        return None
    for spec in metadata.specs().values():
        for field in spec.fields:
            if field.source_id == source and field.transform == transform and name in (None, field.name):
                return field
    return None


def _out_of_the_way(field: PartitionField, name: str, term: PartitionTerm) -> PartitionField:
    """A field that keeps its name, or gets another one if it is void and a new field takes it."""
    if field.name != name:
        return field
    if not isinstance(field.transform, VoidTransform):
        raise InvalidError(f"{term}: a field called {name!r} is there already; AS gives it another name")
    return PartitionField(field.source_id, field.field_id, field.transform, f"{name}_{field.field_id}")


def _check_name(schema: Schema, name: str, transform: _AnyTransform, source: NestedField) -> None:
    with lakelet_errors(f"partition field {name!r}"):
        validate_partition_name(name, transform, source.field_id, schema, set())


def _new_name(term: PartitionTerm, transform: _AnyTransform) -> str:
    column = ".".join(term.column)
    match transform:
        case IdentityTransform():
            return column
        case BucketTransform():
            return f"{column}_bucket"
        case TruncateTransform():
            return f"{column}_trunc"
        case VoidTransform():
            return f"{column}_null"
        case _:
            return f"{column}_{transform}"


def _added_name(term: PartitionTerm, transform: _AnyTransform) -> str:
    match transform:
        case BucketTransform():
            return f"{_new_name(term, transform)}_{transform.num_buckets}"
        case TruncateTransform():
            return f"{_new_name(term, transform)}_{transform.width}"
        case _:
            return _new_name(term, transform)


def _path(schema: Schema, field_id: int) -> tuple[str, ...]:
    """The path of a column through structs; empty for one that is not there any more."""

    def go(fields: Sequence[NestedField]) -> tuple[str, ...]:
        for field in fields:
            if field.field_id == field_id:
                return (field.name,)
            if isinstance(field.field_type, StructType):
                below = go(field.field_type.fields)
                if below:
                    return (field.name, *below)
        return ()

    return go(schema.fields)
