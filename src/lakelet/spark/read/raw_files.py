"""Decide which files of a plan Spark's own Parquet reader may read, and which Lakelet's reader reads.

Spark reads a file only where it provably returns the same rows as `table.scan()`: Parquet, under a path that Spark
takes as it is written, every column asked for stored in a type that Spark reads and, where the schema has changed since, widens
as we do. Everything else goes through our reader, which is slower by a third at most and right by definition.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lakelet.errors import InvalidError
from lakelet.format.data.parquet_file import NAME as PARQUET
from lakelet.model.schema import KEY_PREFIX, SPECIAL_NAMES, TableSchema
from lakelet.model.schema_change.widening import check_widening
from lakelet.model.split import Split
from lakelet.model.types import TIMESTAMPS, Array, Atomic, DataType, Field, Kind, Map, Multiset, Row
from lakelet.read.evolve import same_layout
from lakelet.read.split_files import SplitFile, files_of
from lakelet.spark.read.deleted_rows import looked_up

_MICRO = 6
_GLOB = frozenset("{}[]*?\\")
_COPYING = "._COPYING_"


@dataclass(frozen=True, slots=True)
class Assigned:
    """The files for Spark's reader, by the schema they were written under and whether rows of them are deleted, and the
    splits for ours."""

    native: dict[tuple[int, bool], list[SplitFile]]
    ours: list[Split]


def assign(
    splits: Sequence[Split],
    needed: Sequence[Field],
    schema_of: Callable[[int], TableSchema],
    location: str | None,
    *,
    any_name: bool = True,
) -> Assigned:
    """Assigns the files of a plan to the two readers. `location` is the root under which Spark finds them, None where it cannot
    reach them; `any_name` says that it finds files of any name."""
    ours: list[Split] = []
    able: dict[int, bool] = {}
    candidates: list[tuple[Split, SplitFile]] = []
    reachable = location is not None and not _GLOB & set(location) and (any_name or location.isascii())
    for split in splits:
        if split.needs_merge or not reachable:
            ours.append(split)
            continue
        for single, file in zip(split.single_files(), files_of([split]), strict=True):
            number = file.data.schema_id
            if number not in able:
                able[number] = spark_reads(schema_of(number), needed)
            named = _plain_path(file) and (any_name or file.path.isascii())
            if able[number] and file.data.write_columns is None and named:
                candidates.append((single, file))
            else:
                ours.append(single)
    found = looked_up([file for _, file in candidates if file.vector is not None])
    native: dict[tuple[int, bool], list[SplitFile]] = {}
    for single, file in candidates:
        if file.vector is None or file.path in found:
            native.setdefault((file.data.schema_id, file.vector is not None), []).append(file)
        else:
            ours.append(single)
    return Assigned(native, ours)


def spark_reads(stored: TableSchema, needed: Sequence[Field]) -> bool:
    """Whether Spark reads these columns from files of that schema as we do."""
    names = [field.name.lower() for field in stored.fields]
    if stored.primary_keys:
        names += [name.lower() for name in SPECIAL_NAMES]
        names += [f"{KEY_PREFIX}{name}".lower() for name in stored.primary_keys]
    if len(set(names)) < len(names):
        # Spark finds columns of a file regardless of case unless told otherwise.
        return False
    by_id = {field.id: field for field in stored.fields}
    return all(_reads(by_id[field.id].type, field.type) for field in needed if field.id in by_id)


def _reads(stored: DataType, wanted: DataType) -> bool:
    if not _known(stored):
        return False
    if isinstance(stored, Atomic) and isinstance(wanted, Atomic):
        return _widens(stored, wanted)
    return same_layout(stored, wanted)


def _known(data_type: DataType) -> bool:
    """Whether Spark reads a type from Parquet as it is."""
    match data_type:
        case Atomic(kind, precision):
            return kind is not Kind.TIME and not (kind in TIMESTAMPS and precision > _MICRO)
        case Array(element):
            return _known(element)
        case Map(key, value):
            return _known(key) and _known(value)
        case Multiset():
            return False
        case Row(fields):
            folded = {field.name.lower() for field in fields}
            return len(folded) == len(fields) and all(_known(field.type) for field in fields)


def _widens(stored: Atomic, wanted: Atomic) -> bool:
    try:
        check_widening(stored, wanted, "")
    except InvalidError:
        return False
    return True


def _plain_path(file: SplitFile) -> bool:
    """Whether Spark takes the path literally: no pattern, and no name that it hides or leaves out."""
    name = file.data.name
    hidden = name.startswith(("_", ".")) or name.endswith(_COPYING)
    return name.endswith(f".{PARQUET}") and not hidden and not _GLOB & set(file.path)
