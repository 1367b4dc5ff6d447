"""Decode the entries of a manifest into columns, only those that a plan asks for.

Fields are resolved by Iceberg's field ids in the Avro schema of the manifest, so that it does not matter
who wrote it. Values that an entry inherits from its manifest, its sequence number above all, are filled in.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyiceberg.io import FileIO
from pyiceberg.manifest import ManifestFile

from lakelet.errors import CorruptionError
from lakelet.format.avro import decode
from lakelet.format.avro.container import read_header

_STATUS, _DATA_FILE, _SEQUENCE = 0, 2, 3
CONTENT, PATH, FORMAT, PARTITION, ROWS, SIZE = 134, 100, 101, 102, 103, 104
VALUES, NULLS, NANS, LOWER, UPPER = 109, 110, 137, 125, 128
EQUALITY_IDS, REFERENCED, OFFSET, LENGTH = 135, 143, 144, 145
STATISTICS = (VALUES, NULLS, NANS, LOWER, UPPER)
_ALWAYS = (CONTENT, PATH, FORMAT, PARTITION, ROWS, SIZE, EQUALITY_IDS, REFERENCED, OFFSET, LENGTH)
_ADDED, _DELETED = 1, 2


@dataclass(frozen=True, slots=True)
class Entries:
    """The live entries of a manifest. A column that the manifest does not have is None."""

    path: str
    spec_id: int
    sequence_numbers: NDArray[np.int64]
    columns: dict[int, pa.Array]

    def __len__(self) -> int:
        return len(self.sequence_numbers)

    @property
    def nbytes(self) -> int:
        """The size in memory."""
        return int(self.sequence_numbers.nbytes) + sum(int(column.nbytes) for column in self.columns.values())

    def values(self, field_id: int, default: Any = None) -> list[Any]:
        """A field of all entries."""
        found = self.columns.get(field_id)
        return [default] * len(self) if found is None else found.to_pylist()

    def partitions(self) -> list[tuple[Any, ...]]:
        """The partition values of the files, as they are stored."""
        found = self.columns.get(PARTITION)
        if found is None or not found.type.num_fields:
            return [()] * len(self)
        children = [found.field(place).to_pylist() for place in range(found.type.num_fields)]
        return list(zip(*children, strict=True))

    def of_field(self, statistic: int, field_id: int) -> list[Any]:
        """A statistic of one field, None for entries that do not have it."""
        made: list[Any] = [None] * len(self)
        found = self.columns.get(statistic)
        if found is None or not len(found):
            return made
        items = found.flatten()
        there = np.flatnonzero(items.field(0).to_numpy(zero_copy_only=False) == field_id)
        lengths = np.diff(found.offsets.to_numpy())
        if found.null_count:
            lengths = np.where(found.is_valid().to_numpy(zero_copy_only=False), lengths, 0)
        owners = np.repeat(np.arange(len(found)), lengths)[there]
        for owner, value in zip(owners.tolist(), items.field(1).take(pa.array(there)).to_pylist(), strict=True):
            made[owner] = value
        return made


def read_entries(io: FileIO, manifest: ManifestFile, statistics: Sequence[int] = ()) -> Entries:
    """The live entries of a manifest, with these statistics."""
    path = manifest.manifest_path
    with io.new_input(path).open() as stream:
        data = stream.read()
    names = _names(data, path)
    wanted = [names[_STATUS]] + [names[one] for one in (_SEQUENCE, *_ALWAYS, *statistics) if one in names]
    rows = decode(data, path=path, columns=wanted)
    status = rows.field(names[_STATUS]).to_numpy()
    live = status != _DELETED
    sequences = _sequence_numbers(rows, names, manifest, status)
    files = rows.field(names[_DATA_FILE])
    keep = None if live.all() else pa.array(live)
    columns: dict[int, pa.Array] = {}
    for number in (*_ALWAYS, *statistics):
        if number in names:
            column = files.field(names[number].split(".", 1)[1])
            columns[number] = column if keep is None else column.filter(keep)
    return Entries(path, manifest.partition_spec_id, sequences[live], columns)


def _sequence_numbers(
    rows: pa.StructArray, names: dict[int, str], manifest: ManifestFile, status: NDArray[np.int32]
) -> NDArray[np.int64]:
    inherited = manifest.sequence_number or 0
    if _SEQUENCE not in names:
        # Version 1 has no sequence numbers: all its files have the lowest.
        return np.zeros(len(rows), np.int64)
    given = rows.field(names[_SEQUENCE])
    missing = given.is_null().to_numpy(zero_copy_only=False)
    if inherited and (missing & (status != _ADDED)).any():
        raise CorruptionError(f"{manifest.manifest_path}: an entry that was not added by it has no sequence number")
    found: NDArray[np.int64] = given.fill_null(inherited).to_numpy(zero_copy_only=False)
    return found


def _names(data: bytes, path: str) -> dict[int, str]:
    """The names of fields by their ids; those of `data_file` are dotted."""
    found = _named(read_header(data, path=path).schema_text)
    for needed in (_STATUS, _DATA_FILE, PATH, ROWS):
        if needed not in found:
            raise CorruptionError(f"{path}: the manifest has no field {needed}")
    return found


@lru_cache(maxsize=64)
def _named(schema_text: str) -> dict[int, str]:
    """The manifests of one table, and of one spec, have the same schema."""
    found: dict[int, str] = {}
    for number, name, inner in _fields(json.loads(schema_text)):
        found[number] = name
        if number == _DATA_FILE:
            for inner_number, inner_name, _ in _fields(inner):
                found[inner_number] = f"{name}.{inner_name}"
    return found


def _fields(record: dict[str, Any]) -> Iterator[tuple[int, str, dict[str, Any]]]:
    for field in record.get("fields", ()):
        kind = field["type"]
        if "field-id" in field:
            yield int(field["field-id"]), field["name"], kind if isinstance(kind, dict) else {}
