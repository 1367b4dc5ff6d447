"""Plan a scan: prune a snapshot's data files, and attach to each the delete files that apply to it.

    manifest list ─ manifests that may hold matching files ─ their entries ─ files that may hold matching rows ─ their deletes

Files are pruned by partition first, once for every partition, then by the statistics of the columns that the condition names, all
files at once. Delete files are never pruned: they are few, and one too many costs less than one too few. A plan is kept where the
table's metadata source keeps values: a snapshot, a schema and a condition determine it.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyiceberg.expressions import AlwaysTrue, BooleanExpression
from pyiceberg.expressions.visitors import bind, extract_field_ids, manifest_evaluator
from pyiceberg.io import FileIO
from pyiceberg.manifest import ManifestFile
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.types import DecimalType, IcebergType, UUIDType
from pyiceberg.utils.decimal import unscaled_to_decimal

from lakelet.errors import CorruptionError, InvalidError
from lakelet.iceberg.metadata import manifests as fields
from lakelet.iceberg.metadata.manifests import Entries
from lakelet.iceberg.metadata.source import IcebergMetadataSource
from lakelet.iceberg.scan.column_statistics import Mask
from lakelet.iceberg.scan.delete_index import PlacedDelete
from lakelet.iceberg.scan.live_entries import LiveEntries
from lakelet.iceberg.scan.partition_projection import partition_projection
from lakelet.iceberg.scan.pruning import planning_schema, pruning_expression
from lakelet.iceberg.scan.scan_file import EQUALITY, POSITIONS, VECTOR, DeleteFile, ScanFile
from lakelet.iceberg.scan.snapshot_entries import BOUNDS, EntriesReader, SnapshotEntries
from lakelet.iceberg.scan.vector_pruning import PartitionColumns, matching_files, matching_partitions
from lakelet.predicate.tree import Predicate

_DATA, _POSITION_DELETES, _EQUALITY_DELETES = 0, 1, 2
# The field of a position delete file that names data files.
_PATH_FIELD = 2147483546
# The memory of a kept plan and of a file in it.
_PLAN_BYTES = 2000
_FILE_BYTES = 700
# A plan for a condition of more bytes than this is not kept.
_LONGEST_CONDITION = 4000


@dataclass(frozen=True, slots=True)
class Plan:
    """The files that a scan reads, how many there were before pruning, and the fields that equality deletes of them compare."""

    files: tuple[ScanFile, ...] = ()
    files_total: int = 0
    manifests_read: int = 0
    manifests_total: int = 0
    compared_fields: tuple[int, ...] = ()


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
    # By all of its bytes: values that are equal, such as 1 and 1.0, need not prune alike.
    condition = b"" if where is None else pickle.dumps(where)
    kept = source.kept() if len(condition) <= _LONGEST_CONDITION else None
    name = ("plan", snapshot.manifest_list, schema.model_dump_json(), condition)
    found: Plan | None = None if kept is None else kept.get(name)
    if found is None:
        planner = _Planner(metadata, planning_schema(metadata, schema), pruning_expression(where, schema))
        reader = EntriesReader(io, source, table, planner.deletes)
        may_match = None if planner.everything else planner.may_match
        found = planner.plan(reader.read(snapshot, may_match, statistics=bool(planner.columns)))
        if kept is not None:
            kept.put(name, found, _PLAN_BYTES + len(condition) + _FILE_BYTES * len(found.files))
    return found


def snapshot_partitions(
    metadata: TableMetadata, io: FileIO, snapshot: Snapshot, table: str, source: IcebergMetadataSource
) -> tuple[LiveEntries, list[tuple[Any, ...]]]:
    """The data files of a snapshot with all statistics, and the values of their partitions."""
    planner = _Planner(metadata, planning_schema(metadata, metadata.schema()), AlwaysTrue())
    live = EntriesReader(io, source, table, planner.deletes).read(snapshot, None, statistics=True).live
    return live, planner.partitions(live)


class _Planner:
    def __init__(self, metadata: TableMetadata, schema: Schema, condition: BooleanExpression) -> None:
        self._specs = metadata.specs()
        self._schema = schema
        self._condition = condition
        self.everything = isinstance(condition, AlwaysTrue)
        self.columns = () if self.everything else tuple(sorted(extract_field_ids(bind(schema, condition, True))))
        self._manifest_evaluators: dict[int, Callable[[ManifestFile], bool]] = {}
        self._field_types: dict[int, list[IcebergType]] = {}

    def may_match(self, manifest: ManifestFile) -> bool:
        """Whether a manifest may name a file with a matching row."""
        spec_id = manifest.partition_spec_id
        if spec_id not in self._manifest_evaluators:
            spec = self._spec(spec_id, manifest.manifest_path)
            projected = partition_projection(self._schema, spec)(self._condition)
            self._manifest_evaluators[spec_id] = manifest_evaluator(spec, self._schema, projected)
        return self._manifest_evaluators[spec_id](manifest)

    def plan(self, entries: SnapshotEntries) -> Plan:
        """The files that may hold a matching row, with their deletes."""
        live = entries.live
        partitions = self.partitions(live)
        chosen = live.rows != 0
        if not self.everything:
            chosen = self._matching(live, partitions)[live.partition_codes]
            read = len(np.unique(live.manifests[chosen]))
            chosen = chosen & (live.rows != 0)
            if self.columns and chosen.any():
                by_statistics = matching_files(self._condition, self._schema, live.statistics, len(live))
                # A count below zero says that nobody has counted.
                chosen = chosen & (by_statistics | (live.rows < 0))
        else:
            read = len(live.manifest_paths)
        found = self._files(entries, partitions, np.flatnonzero(chosen))
        compared: tuple[int, ...] = ()
        if entries.deletes.count:
            compared = tuple(sorted({ids for file in found for one in file.deletes for ids in one.equality_ids}))
        return Plan(found, max(entries.files_total, len(found)), read, entries.manifests_total, compared)

    def partitions(self, live: LiveEntries) -> list[tuple[Any, ...]]:
        """The values of the entries' partitions, as the library's expressions compare them."""
        kinds = tuple((spec_id, str(self._kinds(spec_id, live))) for spec_id in _spec_ids(live))
        found: list[tuple[Any, ...]] = live.once(
            ("values", kinds),
            lambda: [self._values(self._kinds(spec_id, live), stored) for spec_id, stored in live.partitions],
        )
        return found

    def _matching(self, live: LiveEntries, partitions: Sequence[tuple[Any, ...]]) -> Mask:
        """Which partitions may have a matching row."""
        found = np.zeros(len(partitions), bool)
        for spec_id in _spec_ids(live):
            spec = self._specs[spec_id]
            projected = partition_projection(self._schema, spec)(self._condition)
            places = np.flatnonzero(live.partition_specs == spec_id)
            kinds = str(self._kinds(spec_id, live))
            names = tuple((one.field_id, one.name) for one in spec.fields)
            kind = live.once(("schema", names, kinds), partial(_partition_schema, spec, self._schema))
            columns = live.once(("columns", spec_id, kinds), partial(_columns_of, partitions, places))
            found[places] = matching_partitions(projected, kind, columns)
        return found

    def _files(
        self, entries: SnapshotEntries, partitions: Sequence[tuple[Any, ...]], places: NDArray[np.int64]
    ) -> tuple[ScanFile, ...]:
        live, index, rows = entries.live, entries.deletes, pa.array(places)
        paths = live.paths.take(rows).to_pylist()
        wrong = np.flatnonzero(live.contents[places] != _DATA)
        if len(wrong):
            manifest = live.manifest_paths[live.manifests[places[wrong[0]]]]
            raise CorruptionError(f"{manifest}: {paths[wrong[0]]} is no data file, in a manifest of data files")
        formats = [one.upper() for one in live.formats.take(rows).to_pylist()]
        sizes, counts = live.sizes[places].tolist(), live.rows[places].tolist()
        sequences, codes = live.sequence_numbers[places].tolist(), live.partition_codes[places].tolist()
        spec_ids = live.partition_specs[live.partition_codes[places]].tolist()
        if not index.count:
            return tuple(
                ScanFile(path, file_format, size, count, spec_id, partitions[code], sequence)
                for path, file_format, size, count, spec_id, code, sequence in zip(
                    paths, formats, sizes, counts, spec_ids, codes, sequences, strict=True
                )
            )
        keys = {code: _key(partitions[code]) for code in set(codes)}
        return tuple(
            ScanFile(
                path,
                file_format,
                size,
                count,
                spec_id,
                partitions[code],
                sequence,
                index.of(path, spec_id, keys[code], sequence),
            )
            for path, file_format, size, count, spec_id, code, sequence in zip(
                paths, formats, sizes, counts, spec_ids, codes, sequences, strict=True
            )
        )

    def deletes(self, entries: Entries) -> list[PlacedDelete]:
        """The delete files of a manifest."""
        kinds = self._kinds_of(entries.spec_id, entries.path)
        partitions = [self._values(kinds, one) for one in entries.partitions()]
        columns = [entries.values(one) for one in (fields.CONTENT, fields.PATH, fields.SIZE, fields.ROWS)]
        formats = entries.values(fields.FORMAT, "PARQUET")
        equality = entries.values(fields.EQUALITY_IDS)
        places = [entries.values(one) for one in (fields.REFERENCED, fields.OFFSET, fields.LENGTH)]
        bounds = [entries.of_field(one, _PATH_FIELD) for one in BOUNDS]
        is_global = not self._spec(entries.spec_id, entries.path).fields
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

    def _spec(self, spec_id: int, manifest: str) -> PartitionSpec:
        spec = self._specs.get(spec_id)
        if spec is None:
            raise CorruptionError(f"{manifest}: the table has no partition spec {spec_id}")
        return spec

    def _kinds(self, spec_id: int, live: LiveEntries) -> list[IcebergType]:
        """The types of a spec's partition fields."""
        if spec_id in self._specs:
            return self._kinds_of(spec_id, "")
        # Who names a spec that is not there is to be said.
        place = int(np.flatnonzero(live.partition_specs == spec_id)[0])
        return self._kinds_of(spec_id, live.partition_manifests()[place])

    def _kinds_of(self, spec_id: int, manifest: str) -> list[IcebergType]:
        if spec_id not in self._field_types:
            spec = self._spec(spec_id, manifest)
            self._field_types[spec_id] = [one.field_type for one in spec.partition_type(self._schema).fields]
        return self._field_types[spec_id]

    @staticmethod
    def _values(kinds: Sequence[IcebergType], stored: tuple[Any, ...]) -> tuple[Any, ...]:
        """A partition in the values that the library's expressions compare."""
        if not any(isinstance(kind, (DecimalType, UUIDType)) for kind in kinds):
            return stored
        return tuple(_value(kind, value) for kind, value in zip(kinds, stored, strict=True))


def _partition_schema(spec: PartitionSpec, schema: Schema) -> Schema:
    return Schema(*spec.partition_type(schema).fields)


def _columns_of(partitions: Sequence[tuple[Any, ...]], places: NDArray[np.int64]) -> PartitionColumns:
    return PartitionColumns([partitions[place] for place in places.tolist()])


def _spec_ids(live: LiveEntries) -> list[int]:
    found: list[int] = live.once("spec ids", lambda: np.unique(live.partition_specs).tolist())
    return found


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
