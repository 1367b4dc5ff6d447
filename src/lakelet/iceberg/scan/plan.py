"""Plan a scan: prune a snapshot's data files, and attach to each the delete files that apply to it.

    manifest list ─ manifests that may hold matching files ─ their entries ─ files that may hold matching rows ─ their deletes

Manifests and files are pruned by partition first, once for every partition, then files by the statistics of the columns that
the condition names. Delete files are never pruned: they are few, and one too many costs less than one too few.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, cast
from uuid import UUID

from pyiceberg.expressions import AlwaysTrue, BooleanExpression
from pyiceberg.expressions.visitors import (
    _InclusiveMetricsEvaluator,
    bind,
    expression_evaluator,
    extract_field_ids,
    manifest_evaluator,
)
from pyiceberg.io import FileIO
from pyiceberg.manifest import DataFile, ManifestContent, ManifestFile
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.typedef import Record
from pyiceberg.types import DecimalType, IcebergType, UUIDType
from pyiceberg.utils.decimal import unscaled_to_decimal

from lakelet.errors import CorruptionError, InvalidError
from lakelet.iceberg.metadata import manifests as fields
from lakelet.iceberg.metadata.manifests import Entries
from lakelet.iceberg.metadata.source import IcebergMetadataSource
from lakelet.iceberg.scan.delete_index import DeleteIndex, PlacedDelete
from lakelet.iceberg.scan.file_errors import reading
from lakelet.iceberg.scan.partition_projection import partition_projection
from lakelet.iceberg.scan.pruning import planning_schema, pruning_expression
from lakelet.iceberg.scan.scan_file import EQUALITY, POSITIONS, VECTOR, DeleteFile, ScanFile
from lakelet.predicate.tree import Predicate

_DATA, _POSITION_DELETES, _EQUALITY_DELETES = 0, 1, 2
# The field of a position delete file that names data files.
_PATH_FIELD = 2147483546
_STATISTICS = (fields.VALUES, fields.NULLS, fields.NANS, fields.LOWER, fields.UPPER)
_BOUNDS = (fields.LOWER, fields.UPPER)
_WORKERS = 8


@dataclass(frozen=True, slots=True)
class Plan:
    """The files that a scan reads, and how many there were before pruning."""

    files: tuple[ScanFile, ...] = ()
    files_total: int = 0
    manifests_read: int = 0
    manifests_total: int = 0


def plan_files(
    metadata: TableMetadata,
    io: FileIO,
    snapshot: Snapshot | None,
    schema: Schema,
    where: Predicate | None,
    table: str,
    source: IcebergMetadataSource,
) -> Plan:
    """The files of a snapshot that may hold rows for which a condition over a schema is TRUE; `table` names it in errors."""
    if snapshot is None:
        return Plan()
    planner = _Planner(metadata, planning_schema(metadata, schema), pruning_expression(where, schema))
    with reading(snapshot.manifest_list, table):
        listed = source.manifest_list(io, snapshot)
    data = [one for one in listed if one.content == ManifestContent.DATA]
    deletes = [one for one in listed if one.content == ManifestContent.DELETES]
    chosen = [one for one in data if planner.may_match(one)]

    def entries_of(manifest: ManifestFile, statistics: Sequence[int]) -> Entries:
        with reading(manifest.manifest_path, table):
            return source.manifest(io, manifest, statistics)

    with ThreadPoolExecutor(_WORKERS) as pool:
        index = DeleteIndex()
        for entries in pool.map(lambda one: entries_of(one, _BOUNDS), deletes):
            for delete in planner.deletes(entries):
                index.add(delete)
        statistics = _STATISTICS if planner.columns else ()
        found = [
            file
            for entries in pool.map(lambda one: entries_of(one, statistics), chosen)
            for file in planner.files(entries, index)
        ]
    total = sum((one.added_files_count or 0) + (one.existing_files_count or 0) for one in data)
    return Plan(tuple(found), max(total, len(found)), len(chosen), len(data))


@dataclass(frozen=True, slots=True)
class _Statistics:
    """The statistics of a file in the form of the library's evaluator, for the columns of a condition."""

    record_count: int
    value_counts: dict[int, int]
    null_value_counts: dict[int, int]
    nan_value_counts: dict[int, int]
    lower_bounds: dict[int, bytes]
    upper_bounds: dict[int, bytes]


class _Planner:
    def __init__(self, metadata: TableMetadata, schema: Schema, condition: BooleanExpression) -> None:
        self._specs = metadata.specs()
        self._schema = schema
        self._condition = condition
        self._everything = isinstance(condition, AlwaysTrue)
        self.columns = () if self._everything else tuple(sorted(extract_field_ids(bind(schema, condition, True))))
        self._manifest_evaluators: dict[int, Callable[[ManifestFile], bool]] = {}
        self._partition_evaluators: dict[int, Callable[[Record], bool]] = {}

    def may_match(self, manifest: ManifestFile) -> bool:
        """Whether a manifest may name a file with a matching row."""
        if not (manifest.has_added_files() or manifest.has_existing_files()):
            return False
        if self._everything:
            return True
        spec_id = manifest.partition_spec_id
        if spec_id not in self._manifest_evaluators:
            spec = self._specs[spec_id]
            projected = partition_projection(self._schema, spec)(self._condition)
            self._manifest_evaluators[spec_id] = manifest_evaluator(spec, self._schema, projected)
        return self._manifest_evaluators[spec_id](manifest)

    def files(self, entries: Entries, index: DeleteIndex) -> list[ScanFile]:
        """The files of a manifest that may hold a matching row."""
        partitions = self._partitions(entries)
        rows = entries.values(fields.ROWS)
        kept = self._kept(entries, partitions, rows)
        paths, formats = entries.values(fields.PATH), entries.values(fields.FORMAT, "PARQUET")
        sizes, sequences = entries.values(fields.SIZE, 0), entries.sequence_numbers.tolist()
        contents = entries.values(fields.CONTENT, _DATA)
        found = []
        for place in kept:
            if contents[place] != _DATA:
                raise CorruptionError(f"{entries.path}: {paths[place]} is no data file, in a manifest of data files")
            deletes = index.of(paths[place], entries.spec_id, _key(partitions[place]), sequences[place])
            found.append(
                ScanFile(
                    paths[place],
                    formats[place].upper(),
                    sizes[place],
                    rows[place],
                    entries.spec_id,
                    partitions[place],
                    sequences[place],
                    deletes,
                )
            )
        return found

    def deletes(self, entries: Entries) -> list[PlacedDelete]:
        """The delete files of a manifest."""
        partitions = self._partitions(entries)
        columns = [entries.values(one) for one in (fields.CONTENT, fields.PATH, fields.SIZE, fields.ROWS)]
        formats = entries.values(fields.FORMAT, "PARQUET")
        equality = entries.values(fields.EQUALITY_IDS)
        places = [entries.values(one) for one in (fields.REFERENCED, fields.OFFSET, fields.LENGTH)]
        bounds = [entries.of_field(one, _PATH_FIELD) for one in _BOUNDS]
        is_global = not self._specs[entries.spec_id].fields
        found = []
        for number, (content, path, size, rows) in enumerate(zip(*columns, strict=True)):
            referenced, offset, length = (column[number] for column in places)
            lowest, highest = (column[number] for column in bounds)
            kind = _kind(content, formats[number].upper(), path)
            if referenced is None and lowest is not None and lowest == highest and kind == POSITIONS:
                referenced = lowest.decode()
            ids = tuple(equality[number] or ())
            if kind == EQUALITY and not ids:
                raise CorruptionError(f"{path}: an equality delete file that does not say which fields it compares")
            delete = DeleteFile(path, kind, formats[number].upper(), size, rows, offset, length, ids)
            found.append(
                PlacedDelete(
                    delete,
                    int(entries.sequence_numbers[number]),
                    entries.spec_id,
                    _key(partitions[number]),
                    is_global,
                    referenced,
                    lowest,
                    highest,
                )
            )
        return found

    def _partitions(self, entries: Entries) -> list[tuple[Any, ...]]:
        """The partitions of all entries, in the values that the library's evaluators take."""
        spec = self._specs.get(entries.spec_id)
        if spec is None:
            raise CorruptionError(f"{entries.path}: the table has no partition spec {entries.spec_id}")
        stored = entries.partitions()
        kinds = [one.field_type for one in spec.partition_type(self._schema).fields]
        if not any(isinstance(kind, (DecimalType, UUIDType)) for kind in kinds):
            return stored
        return [tuple(_value(kind, value) for kind, value in zip(kinds, one, strict=True)) for one in stored]

    def _kept(self, entries: Entries, partitions: Sequence[tuple[Any, ...]], rows: Sequence[int]) -> list[int]:
        places = [place for place, count in enumerate(rows) if count]
        if self._everything:
            return places
        spec_id = entries.spec_id
        if spec_id not in self._partition_evaluators:
            spec = self._specs[spec_id]
            projected = partition_projection(self._schema, spec)(self._condition)
            kind = Schema(*spec.partition_type(self._schema).fields)
            self._partition_evaluators[spec_id] = expression_evaluator(kind, projected, case_sensitive=True)
        evaluate, decided = self._partition_evaluators[spec_id], dict[tuple[Any, ...], bool]()
        kept = []
        for place in places:
            partition = partitions[place]
            if partition not in decided:
                decided[partition] = evaluate(Record(*partition))
            if decided[partition]:
                kept.append(place)
        return self._by_statistics(entries, kept, rows)

    def _by_statistics(self, entries: Entries, places: Sequence[int], rows: Sequence[int]) -> list[int]:
        if not places or not self.columns:
            return list(places)
        columns = {
            statistic: {number: entries.of_field(statistic, number) for number in self.columns}
            for statistic in _STATISTICS
        }
        evaluator = _InclusiveMetricsEvaluator(self._schema, self._condition)
        kept = []
        for place in places:
            known = [
                {number: values[place] for number, values in columns[statistic].items() if values[place] is not None}
                for statistic in _STATISTICS
            ]
            if _may_match(evaluator, _Statistics(rows[place], *known)):
                kept.append(place)
        return kept


def _may_match(evaluator: _InclusiveMetricsEvaluator, statistics: _Statistics) -> bool:
    try:
        return evaluator.eval(cast(DataFile, statistics))
    except (struct.error, UnicodeDecodeError):
        # Bounds that were written for another type of the column, or cut within a character, do not prune.
        return True


def _kind(content: int, file_format: str, path: str) -> str:
    if content == _EQUALITY_DELETES:
        return EQUALITY
    if content != _POSITION_DELETES:
        raise InvalidError(f"{path}: expected a delete file, found content {content} in a manifest of delete files")
    return VECTOR if file_format == "PUFFIN" else POSITIONS


def _value(kind: IcebergType, stored: Any) -> Any:
    """A partition value out of the bytes that Avro has for it."""
    if stored is None or not isinstance(stored, bytes):
        return stored
    if isinstance(kind, DecimalType):
        return unscaled_to_decimal(int.from_bytes(stored, "big", signed=True), kind.scale)
    return UUID(bytes=stored) if isinstance(kind, UUIDType) else stored


def _key(partition: tuple[Any, ...]) -> tuple[Any, ...]:
    """The hashable key of a partition: NaN is not equal to itself, and the two zeros are."""
    return tuple(repr(value) if isinstance(value, float) else value for value in partition)
