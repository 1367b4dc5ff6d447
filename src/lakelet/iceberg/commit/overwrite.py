"""Find the files that an overwrite replaces, in the head that it is committed on.

    WholeTable           every file
    StaticPartition      the files all rows of which have the given values of identity partition columns
    WrittenPartitions    the files of the partitions that rows were written to

Files of another spec than the planned one are kept where none of their rows matches. A static overwrite replaces them where all
match; where some may, and in a dynamic overwrite wherever any may, the overwrite is refused: files are replaced whole.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any, Protocol, cast

from pyiceberg.conversions import from_bytes
from pyiceberg.expressions.literals import AboveMax, BelowMin, literal
from pyiceberg.manifest import DataFile, ManifestFile
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.transforms import IdentityTransform, VoidTransform
from pyiceberg.typedef import Record
from pyiceberg.types import DecimalType, FloatType, PrimitiveType, UUIDType

from lakelet.errors import InvalidError
from lakelet.iceberg.commit.overlap import Fit, reach_of
from lakelet.iceberg.commit.partition_keys import PartitionKey, partition_key, value_key
from lakelet.iceberg.commit.snapshot.live_files import LiveFile, LiveFiles
from lakelet.iceberg.commit.snapshot.manifest_writer import schema_of_spec
from lakelet.iceberg.library_internals import fields_by_id


@dataclass(frozen=True, slots=True)
class Replaced:
    """The removed data files, and the delete files that apply to these alone."""

    data: tuple[LiveFile, ...]
    deletes: tuple[LiveFile, ...]

    @property
    def paths(self) -> frozenset[str]:
        """Where all of them are."""
        return frozenset(live.path for live in (*self.data, *self.deletes))


class Overwrite(Protocol):
    """Selects the files that are replaced."""

    @property
    def shown(self) -> str:
        """What is replaced, for people."""
        ...

    def replaced(self, metadata: TableMetadata, head: Snapshot | None, live: LiveFiles) -> Replaced:
        """The files of a head that are replaced; InvalidError where only part of a file would be."""
        ...


@dataclass(frozen=True, slots=True)
class WholeTable:
    """Replaces everything."""

    @property
    def shown(self) -> str:
        """For people."""
        return "the whole table"

    def replaced(self, metadata: TableMetadata, head: Snapshot | None, live: LiveFiles) -> Replaced:
        """All files."""
        return Replaced(tuple(live.data(head)), tuple(live.deletes(head)))


@dataclass(frozen=True, slots=True)
class Condition:
    """column = value, the value in the form that manifests keep."""

    column: str
    source_id: int
    kind: PrimitiveType
    value: Any


@dataclass(frozen=True, slots=True)
class StaticPartition:
    """Replaces the rows that have given values."""

    conditions: tuple[Condition, ...]
    spec: PartitionSpec

    @property
    def shown(self) -> str:
        """PARTITION (day = 2026-01-01, …)."""
        told = ", ".join(f"{one.column} = {_told(one)}" for one in self.conditions)
        return f"PARTITION ({told})"

    def replaced(self, metadata: TableMetadata, head: Snapshot | None, live: LiveFiles) -> Replaced:
        """The files all rows of which match."""
        specs = metadata.specs()
        data = []
        for found in live.data(head):
            fit = self._fit(found.file, specs[found.file.spec_id])
            if fit is Fit.SOME:
                raise InvalidError(
                    f"{self.shown} cannot be overwritten: {found.path} of partition spec {found.file.spec_id} may hold other "
                    f"rows too, for it was written before spec {self.spec.spec_id}; rewrite the table's files first, or DELETE "
                    "and INSERT"
                )
            if fit is Fit.ALL:
                data.append(found)
        return Replaced(tuple(data), tuple(one for one in live.deletes(head) if self._holds(one.file, specs)))

    def check_written(self, values: Iterable[tuple[Any, ...]]) -> None:
        """InvalidError where a file was written to another partition."""
        for written in values:
            for condition in self.conditions:
                found = written[_identity_place(self.spec, condition.source_id)]
                if value_key(found) != value_key(condition.value):
                    raise InvalidError(
                        f"{self.shown}: rows with {condition.column} = {found!r} were written, which are not of that partition"
                    )

    def _fit(self, file: DataFile, spec: PartitionSpec) -> Fit:
        fits = [
            reach_of(one.source_id, IdentityTransform(), one.kind, file, spec).fit(one.value) for one in self.conditions
        ]
        if Fit.NONE in fits:
            return Fit.NONE
        return Fit.ALL if all(fit is Fit.ALL for fit in fits) else Fit.SOME

    def _holds(self, file: DataFile, specs: Mapping[int, PartitionSpec]) -> bool:
        """Whether a delete file applies to the replaced rows alone: by its partition, for its bounds are of something else."""
        spec = specs[file.spec_id]
        places = [_identity_place(spec, one.source_id) for one in self.conditions]
        return all(place >= 0 for place in places) and all(
            value_key(file.partition[place]) == value_key(one.value)
            for place, one in zip(places, self.conditions, strict=True)
        )


@dataclass(frozen=True, slots=True)
class WrittenPartitions:
    """Replaces the partitions that files were written to, all of the planned spec."""

    spec: PartitionSpec
    values: Mapping[PartitionKey, tuple[Any, ...]]

    @property
    def shown(self) -> str:
        """For people."""
        return f"the {len(self.values)} written partitions"

    def replaced(self, metadata: TableMetadata, head: Snapshot | None, live: LiveFiles) -> Replaced:
        """The files of those partitions."""
        kinds = _kinds(metadata, self.spec)
        wanted = _ManifestRange(self.spec, kinds, self.values.values())
        data = []
        for found in live.data(head, wanted.may_hold):
            if found.file.spec_id != self.spec.spec_id:
                self._refuse_overlap(metadata, found, kinds)
            elif partition_key(found.file.partition) in self.values:
                data.append(found)
        deletes = tuple(
            found
            for found in live.deletes(head, wanted.may_hold)
            if found.file.spec_id == self.spec.spec_id and partition_key(found.file.partition) in self.values
        )
        return Replaced(tuple(data), deletes)

    def _refuse_overlap(self, metadata: TableMetadata, found: LiveFile, kinds: list[PrimitiveType | None]) -> None:
        spec = metadata.specs()[found.file.spec_id]
        possible: list[dict[Any, bool] | None] = []
        for place, field in enumerate(self.spec.fields):
            kind = kinds[place]
            if kind is None or isinstance(field.transform, VoidTransform):
                possible.append(None)
                continue
            reach = reach_of(field.source_id, field.transform, kind, found.file, spec)
            possible.append(
                {value_key(values[place]): reach.fit(values[place]) is not Fit.NONE for values in self.values.values()}
            )
        for key, values in self.values.items():
            if all(known is None or known[key[place]] for place, known in enumerate(possible)):
                shown = self.spec.partition_to_path(Record(*values), schema_of_spec(metadata, self.spec))
                raise InvalidError(
                    f"partition {shown} cannot be overwritten: {found.path} of partition spec {spec.spec_id} may hold rows of it "
                    f"and others, for it was written before spec {self.spec.spec_id}; rewrite the table's files first"
                )


class _ManifestRange:
    """Prunes manifests of the planned spec none of whose partitions was written to."""

    def __init__(
        self, spec: PartitionSpec, kinds: list[PrimitiveType | None], values: Iterable[tuple[Any, ...]]
    ) -> None:
        self._spec = spec
        self._ranges: list[tuple[PrimitiveType, Any, Any] | None] = []
        columns = list(zip(*values, strict=True))
        for place, column in enumerate(columns):
            kind = kinds[place]
            result = spec.fields[place].transform.result_type(kind) if kind is not None else None
            # Engines differ in whether uuids are in order with or without a sign.
            plain = not isinstance(result, UUIDType) and not any(
                value is None or (isinstance(value, float) and math.isnan(value)) for value in column
            )
            keys = [value if isinstance(value, float) else value_key(value) for value in column] if plain else []
            self._ranges.append(
                (cast(PrimitiveType, result), min(keys), max(keys)) if keys and result is not None else None
            )

    def may_hold(self, manifest: ManifestFile) -> bool:
        """Whether the manifest has to be read."""
        if manifest.partition_spec_id != self._spec.spec_id or not manifest.partitions:
            return True
        for summary, known in zip(manifest.partitions, self._ranges, strict=False):
            if known is None or summary.lower_bound is None or summary.upper_bound is None:
                continue
            kind, low, high = known
            least, most = (value_key(from_bytes(kind, one)) for one in (summary.lower_bound, summary.upper_bound))
            if high < _plain(least, low) or low > _plain(most, high):
                return False
        return True


def _plain(key: Any, other: Any) -> Any:
    """A key of -0.0 as a number again."""
    return 0.0 if isinstance(key, tuple) and isinstance(other, float) else key


def static_partition(metadata: TableMetadata, spec: PartitionSpec, partition: Mapping[str, object]) -> StaticPartition:
    """The overwrite of PARTITION (column = value, …); InvalidError where a column is unknown or not an identity partition."""
    schema = metadata.schema()
    columns = {one.field_id: one.name for one in schema.fields}
    identities = [columns[one.source_id] for one in spec.fields if _is_identity(one) and one.source_id in columns]
    conditions = []
    for column, value in partition.items():
        field = next((one for one in schema.fields if one.name == column), None)
        if field is None:
            field = next((one for one in schema.fields if one.name.lower() == column.lower()), None)
        if field is None:
            raise InvalidError(
                f"PARTITION ({column} = …): the table has no such column; partition columns that can be given are "
                f"{', '.join(identities) or 'none'}"
            )
        if _identity_place(spec, field.field_id) < 0:
            used = [str(one.transform) for one in spec.fields if one.source_id == field.field_id]
            told = f"partitions are {used[0]}({field.name})" if used else "it is no partition column"
            raise InvalidError(
                f"PARTITION ({field.name} = …): {told}, and only identity partition columns can be given by value: "
                f"{', '.join(identities) or 'there are none'}"
            )
        kind = cast(PrimitiveType, field.field_type)
        conditions.append(Condition(field.name, field.field_id, kind, _typed(field.name, kind, value)))
    return StaticPartition(tuple(conditions), spec)


def written_partitions(spec: PartitionSpec, values: Iterable[tuple[Any, ...]]) -> Overwrite:
    """The overwrite of all partitions that files were written to; a table without partitions is one."""
    if all(isinstance(field.transform, VoidTransform) for field in spec.fields):
        return WholeTable()
    return WrittenPartitions(spec, {partition_key(one): tuple(one) for one in values})


def _typed(column: str, kind: PrimitiveType, value: object) -> Any:
    if value is None:
        return None
    try:
        if isinstance(kind, DecimalType):
            return _decimal(value, kind)
        found = literal(cast(Any, value)).to(kind)
    except (ValueError, TypeError, ArithmeticError) as error:
        raise InvalidError(f"PARTITION ({column} = {value!r}): expected a value of type {kind}") from error
    if isinstance(found, (AboveMax, BelowMin)):
        raise InvalidError(f"PARTITION ({column} = {value!r}): the value does not fit into {kind}")
    # A FLOAT column has less precision than Python's float.
    return struct.unpack("<f", struct.pack("<f", found.value))[0] if isinstance(kind, FloatType) else found.value


def _decimal(value: object, kind: DecimalType) -> Decimal:
    """A number with as many places as the column has; InvalidError where it has more, an ArithmeticError where it is larger."""
    given = value if isinstance(value, Decimal) else Decimal(str(value))
    found = given.quantize(Decimal(1).scaleb(-kind.scale), context=Context(prec=max(kind.precision, 1)))
    if found != given:
        raise InvalidError(f"{value!r} has more than {kind.scale} decimal places")
    return found


def _told(condition: Condition) -> str:
    if condition.value is None:
        return "NULL"
    return IdentityTransform().to_human_string(condition.kind, condition.value)


def _is_identity(field: PartitionField) -> bool:
    return isinstance(field.transform, IdentityTransform)


def _identity_place(spec: PartitionSpec, source_id: int) -> int:
    return next((n for n, field in enumerate(spec.fields) if field.source_id == source_id and _is_identity(field)), -1)


def _kinds(metadata: TableMetadata, spec: PartitionSpec) -> list[PrimitiveType | None]:
    schema = schema_of_spec(metadata, spec)
    found = (fields_by_id(schema).get(field.source_id) for field in spec.fields)
    return [cast(PrimitiveType, field.field_type) if field is not None else None for field in found]
