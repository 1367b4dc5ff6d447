"""A planned scan of one version of an Iceberg table: its files, and reading each into rows. It is picklable for executors.

    scan = scan_of(table, snapshot_id=…, columns=["id", "name"], where="id > 5")
    scan.schema, scan.snapshot_id, scan.files
    scan.read(file)          batches of a file in the scan's schema, without deleted rows
    scan.read_located(file)  the same with the positions of rows in the file, for row changes
    scan.deleted(file)       the positions of rows that delete files and vectors hide, for other readers of the file

Files are streamed batch by batch; only the contents of delete files are held in memory, each of which is read once.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from pyiceberg.io import FileIO, load_file_io
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.name_mapping import NameMapping, parse_mapping_from_json
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    TimestampType,
    TimestamptzType,
)

from lakelet.cache.lru_cache import LruCache
from lakelet.errors import CorruptionError, InvalidError
from lakelet.iceberg.catalog.library_errors import lakelet_errors
from lakelet.iceberg.scan.data_files import BATCH_ROWS, open_file
from lakelet.iceberg.scan.equality import DeletedValues, deleted_values
from lakelet.iceberg.scan.evolution import Evolution, PlainColumns, arrow_schema, plain_columns, stored_fields
from lakelet.iceberg.scan.file_errors import reading
from lakelet.iceberg.scan.plan import Plan, plan_files
from lakelet.iceberg.scan.positions import DeletedPositions, Positions, kept_rows
from lakelet.iceberg.scan.scan_file import EQUALITY, ScanFile
from lakelet.iceberg.scan.versions import version_of
from lakelet.iceberg.schema.column_types import model_field
from lakelet.iceberg.table import IcebergTable
from lakelet.model.types import Field
from lakelet.predicate.tree import Predicate
from lakelet.predicate.where import parse_where

_MOST_ROWS = 1 << 20
# Files of the same age have the same equality deletes; the values of this many sets are cached.
_KEPT_VALUES = 4
_NAME_MAPPING = "schema.name-mapping.default"
_COMPARED = (
    *(BooleanType, IntegerType, LongType, FloatType, DoubleType, DecimalType, StringType, BinaryType),
    *(DateType, TimestampType, TimestamptzType),
)


@dataclass(frozen=True)
class IcebergScan:
    """A version of a table and the files of it that are read."""

    table: str
    snapshot_id: int | None
    schema_json: str
    columns: tuple[str, ...]
    plan: Plan = field(repr=False)
    specs_json: Mapping[int, str] = field(repr=False)
    name_mapping_json: str | None = field(repr=False)
    # Dropped columns that delete files still compare.
    dropped_json: Mapping[int, str] = field(repr=False)
    location: str
    # May hold secrets.
    io_properties: Mapping[str, str] = field(repr=False)

    def __getstate__(self) -> dict[str, object]:
        # Cached values are not pickled: they are computed again where they are needed.
        return {name: self.__dict__[name] for name in self.__dataclass_fields__}

    @property
    def files(self) -> tuple[ScanFile, ...]:
        """The data files that are read."""
        return self.plan.files

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns in which rows come."""
        return arrow_schema(Schema(*self._fields(None)))

    @cached_property
    def iceberg_schema(self) -> Schema:
        """All columns of the version, for this package."""
        return Schema.model_validate_json(self.schema_json)

    def read(self, file: ScanFile, columns: Sequence[str] | None = None) -> Generator[pa.RecordBatch, None, None]:
        """The rows of a file that are not deleted, in the scan's columns, or in `columns` of them, in the order of the schema."""
        for batch, _ in self.read_located(file, columns):
            yield batch

    def read_located(
        self, file: ScanFile, columns: Sequence[str] | None = None
    ) -> Iterator[tuple[pa.RecordBatch, Positions]]:
        """The same rows in the order of the file, with their positions in it."""
        fields = self._fields(columns)
        gone = self.deleted(file)
        by_value = [(ids, self._deleted_values(file, ids)) for ids in _equality_ids(file)]
        compared = [number for ids, _ in by_value for number in ids if number not in {one.field_id for one in fields}]
        wider = [*fields, *(self._field(number) for number in dict.fromkeys(compared))]
        # A table of deleted values is built for every batch: the more of them, the larger the batches.
        many = min(max((gone_values.count for _, gone_values in by_value), default=0), _MOST_ROWS)
        start = 0
        for batch in self._stored_rows(file.path, file.format, wider, self._constants(file), max(BATCH_ROWS, many)):
            found, positions = batch, np.arange(start, start + batch.num_rows, dtype=np.int64)
            start += batch.num_rows
            kept = kept_rows(gone, start - batch.num_rows, batch.num_rows)
            if kept is not None:
                found, positions = found.filter(kept), positions[kept.to_numpy(zero_copy_only=False)]
            for ids, gone_values in by_value:
                places = [next(at for at, one in enumerate(wider) if one.field_id == number) for number in ids]
                kept = gone_values.keeps(found.select(places))
                found, positions = found.filter(kept), positions[kept.to_numpy(zero_copy_only=False)]
            if found.num_rows:
                yield found if len(wider) == len(fields) else found.select(range(len(fields))), positions

    def deleted(self, file: ScanFile) -> Positions | None:
        """The deleted positions of a file, ascending; None where there are none. Rows of equality deletes are not
        among them."""
        return self._positions.of(file)

    def plain_columns(self, file: ScanFile) -> PlainColumns | None:
        """How the scan's columns are stored in a file, for readers that know nothing of ids; None where they cannot read it
        alike. The file is opened for it."""
        with self._reading(file.path), self._io.new_input(file.path).open() as stream:
            stored = stored_fields(open_file(stream, file.format, file.path).schema, self._mapping, file.path)
        return plain_columns(stored, self._constants(file), self._fields(None))

    def local_path(self, path: str) -> str | None:
        """A path on this machine, None for one of another store."""
        if not isinstance(self._io, PyArrowFileIO):
            return None
        scheme, netloc, found = PyArrowFileIO.parse_location(path, self._io.properties)
        return found if scheme == "file" and found.startswith("/") and not netloc else None

    def blame(self, files: Sequence[ScanFile]) -> None:
        """Raises the error of the first of these files that cannot be read: missing ones first."""
        for file in files:
            with self._reading(file.path):
                size = len(self._io.new_input(file.path))
            if size != file.size:
                raise CorruptionError(
                    f"table {self.table}, snapshot {self.snapshot_id}: {file.path} has {size} bytes; its manifest says "
                    f"{file.size}"
                )
        for file in files:
            for _ in self._stored_rows(file.path, file.format, self._fields(None), self._constants(file)):
                continue

    # ------------------------------------------------------------------ inside

    @cached_property
    def _io(self) -> FileIO:
        with lakelet_errors(f"table {self.table}"):
            return load_file_io(dict(self.io_properties), self.location)

    @cached_property
    def _positions(self) -> DeletedPositions:
        return DeletedPositions(lambda: self._io, self.table)

    @cached_property
    def _mapping(self) -> NameMapping | None:
        return None if self.name_mapping_json is None else parse_mapping_from_json(self.name_mapping_json)

    @cached_property
    def _specs(self) -> dict[int, PartitionSpec]:
        return {number: PartitionSpec.model_validate_json(text) for number, text in self.specs_json.items()}

    @cached_property
    def _values(self) -> LruCache[DeletedValues]:
        return LruCache()

    def _reading(self, path: str) -> Any:
        return reading(path, f"table {self.table}, snapshot {self.snapshot_id}")

    def _fields(self, columns: Sequence[str] | None) -> list[NestedField]:
        names = set(self.columns if columns is None else columns)
        return [one for one in self.iceberg_schema.fields if one.name in names and one.name in self.columns]

    def _field(self, number: int) -> NestedField:
        """A top-level column by its id, which may have been dropped since."""
        found = next((one for one in self.iceberg_schema.fields if one.field_id == number), None)
        if found is None and number in self.dropped_json:
            return NestedField.model_validate_json(self.dropped_json[number])
        if found is None:
            raise InvalidError(
                f"table {self.table}: rows are deleted by the values of field {number}, which is no column of any schema; "
                "deletes by members of nested columns are not applied"
            )
        return found

    def _constants(self, file: ScanFile) -> dict[int, Any]:
        """The values of the identity partition columns of a file."""
        spec = self._specs.get(file.spec_id)
        if spec is None:
            return {}
        return {
            one.source_id: value
            for one, value in zip(spec.fields, file.partition, strict=True)
            if isinstance(one.transform, IdentityTransform) and value is not None
        }

    def _deleted_values(self, file: ScanFile, ids: tuple[int, ...]) -> DeletedValues:
        """The values of these fields that equality deletes remove from a file."""
        deletes = tuple(one for one in file.deletes if one.kind == EQUALITY and one.equality_ids == ids)
        found = self._values.get(deletes)
        if found is None:
            fields = [self._field(number) for number in ids]
            schema = arrow_schema(Schema(*fields))
            tables = [
                pa.Table.from_batches(self._stored_rows(one.path, one.format, fields, {}), schema) for one in deletes
            ]
            found = deleted_values(tables)
            self._values.put(deletes, found, limit=_KEPT_VALUES)
        return found

    def _stored_rows(
        self,
        path: str,
        file_format: str,
        fields: Sequence[NestedField],
        constants: Mapping[int, Any],
        rows: int = BATCH_ROWS,
    ) -> Iterator[pa.RecordBatch]:
        """All rows of a file in these columns."""
        with self._reading(path), self._io.new_input(path).open() as stream:
            opened = open_file(stream, file_format, path)
            evolution = Evolution(stored_fields(opened.schema, self._mapping, path), constants, path)
            for batch in opened.batches(evolution.needed(fields), rows):
                yield evolution.batch(batch, fields)


def scan_of(
    table: IcebergTable,
    *,
    snapshot_id: int | None = None,
    ref: str | None = None,
    timestamp_ms: int | None = None,
    columns: Sequence[str] | None = None,
    where: str | Predicate | None = None,
    cache: bool = True,
) -> IcebergScan:
    """A plan for reading a version of a table: the newest, or that of a snapshot id, of a branch or tag, or of a time. Files
    that provably hold no row for which `where` is TRUE are pruned; the rows of the others are not filtered by it. Without
    `cache` all manifests are read from the store."""
    snapshot, schema = version_of(table, snapshot_id=snapshot_id, ref=ref, timestamp_ms=timestamp_ms)
    metadata, io = table.metadata, table.library.io
    names = tuple(one.name for one in schema.fields)
    if columns is not None:
        unknown = [name for name in columns if name not in names]
        if unknown:
            raise InvalidError(f"table {table.full_name} has no column {', '.join(unknown)}; it has {', '.join(names)}")
        names = tuple(name for name in names if name in set(columns))
    condition = parse_where(where, _comparable(schema)) if isinstance(where, str) else where
    what = f"table {table.full_name}"
    with lakelet_errors(what):
        source = table.source.for_queries() if cache else table.source.from_store()
        plan = plan_files(metadata, io, snapshot, schema, condition, what, source)
    return IcebergScan(
        table=table.full_name,
        snapshot_id=None if snapshot is None else snapshot.snapshot_id,
        schema_json=schema.model_dump_json(),
        columns=names,
        plan=plan,
        specs_json={number: spec.model_dump_json() for number, spec in metadata.specs().items()},
        name_mapping_json=metadata.properties.get(_NAME_MAPPING),
        dropped_json=_dropped(table, schema, plan),
        location=metadata.location,
        io_properties=dict(io.properties),
    )


def comparable_fields(
    table: IcebergTable, *, snapshot_id: int | None = None, ref: str | None = None, timestamp_ms: int | None = None
) -> tuple[Field, ...]:
    """The columns of a version that predicates may use."""
    return _comparable(version_of(table, snapshot_id=snapshot_id, ref=ref, timestamp_ms=timestamp_ms)[1])


def version_key(
    table: IcebergTable, *, snapshot_id: int | None = None, ref: str | None = None, timestamp_ms: int | None = None
) -> tuple[object, ...]:
    """The key of a version: the same key means the same rows in the same columns."""
    snapshot, schema = version_of(table, snapshot_id=snapshot_id, ref=ref, timestamp_ms=timestamp_ms)
    metadata = table.metadata
    listed = None if snapshot is None else (snapshot.snapshot_id, snapshot.manifest_list)
    return (metadata.table_uuid, listed, schema.model_dump_json(), metadata.properties.get(_NAME_MAPPING))


def _comparable(schema: Schema) -> tuple[Field, ...]:
    """Columns whose type has the same values in Lakelet's model."""
    return tuple(model_field(one) for one in schema.fields if isinstance(one.field_type, _COMPARED))


def _equality_ids(file: ScanFile) -> list[tuple[int, ...]]:
    return list(dict.fromkeys(one.equality_ids for one in file.deletes if one.kind == EQUALITY))


def _dropped(table: IcebergTable, schema: Schema, plan: Plan) -> dict[int, str]:
    """Columns that only delete files still name."""
    wanted = set(plan.compared_fields) - {one.field_id for one in schema.fields}
    if not wanted:
        return {}
    older = sorted(table.metadata.schemas, key=lambda one: one.schema_id)
    return {one.field_id: one.model_dump_json() for other in older for one in other.fields if one.field_id in wanted}
