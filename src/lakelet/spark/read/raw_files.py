"""Decide which files of a plan Spark's own Parquet reader may read, and which Lakelet's reader reads.

Spark reads a file only where it provably returns the same rows as `table.scan()`: Parquet, under a path that Spark
takes as it is written, every column asked for stored in a type that Spark reads and, where the schema has changed since, widens
as we do. Everything else goes through our reader, which is slower by a third at most and right by definition.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from lakelet.errors import InvalidError
from lakelet.format.data.parquet_file import NAME as PARQUET
from lakelet.model.schema import KEY_PREFIX, SPECIAL_NAMES, TableSchema
from lakelet.model.schema_change.widening import check_widening
from lakelet.model.split import Split
from lakelet.model.types import TIMESTAMPS, Array, Atomic, DataType, Field, Kind, Map, Multiset, Row
from lakelet.read.evolve import same_layout
from lakelet.read.split_files import SplitFile, files_of
from lakelet.spark.read.bitmap_filter import RESERVED
from lakelet.spark.read.bitmap_lookup import FILES, WORDS
from lakelet.spark.read.marked_files import MarkedFiles, choose, join_small
from lakelet.spark.read.row_bitmaps import RowBitmaps

_MICRO = 6
_GLOB = frozenset("{}[]*?\\")
_COPYING = "._COPYING_"


@dataclass(frozen=True, slots=True)
class Assigned:
    """The files for Spark's reader, those read whole by the schema they were written under, and the splits for ours."""

    native: dict[int, list[SplitFile]]
    marked: list[MarkedFiles]
    ours: list[Split]


@dataclass(frozen=True, slots=True)
class FileAssigner:
    """Assigns the files of a plan to the two readers. `location` is the root under which Spark finds them, None where it cannot
    reach them; `any_name` says that it finds files of any name."""

    needed: Sequence[Field]
    schema_of: Callable[[int], TableSchema]
    location: str | None
    bitmaps: RowBitmaps
    any_name: bool = True
    _able: dict[int, bool] = field(default_factory=dict)

    def assign(self, splits: Sequence[Split]) -> Assigned:
        """Assign the files of splits to the readers."""
        native: dict[int, list[SplitFile]] = {}
        ours: list[Split] = []
        partly: list[Split] = []
        location = self.location
        reachable = location is not None and not _GLOB & set(location) and (self.any_name or location.isascii())
        for split in splits:
            if not reachable or split.branch is not None:
                ours.append(split)
            elif split.needs_merge:
                (partly if all(map(self._reads, files_of([split]))) else ours).append(split)
            else:
                for single, file in zip(split.single_files(), files_of([split]), strict=True):
                    if not self._reads(file):
                        ours.append(single)
                    elif file.vector is not None:
                        partly.append(single)
                    else:
                        native.setdefault(file.data.schema_id, []).append(file)
        chosen = choose(self.bitmaps, partly)
        for file in chosen.whole:
            native.setdefault(file.data.schema_id, []).append(file)
        join_small(native, chosen.marked)
        return Assigned(native, chosen.marked, ours + chosen.ours)

    def _reads(self, file: SplitFile) -> bool:
        """Whether Spark reads a file as we do."""
        number = file.data.schema_id
        if number not in self._able:
            self._able[number] = spark_reads(self.schema_of(number), self.needed)
        named = _plain_path(file) and (self.any_name or file.path.isascii())
        return self._able[number] and file.data.write_columns is None and named


def spark_reads(stored: TableSchema, needed: Sequence[Field]) -> bool:
    """Whether Spark reads these columns from files of that schema as we do."""
    names = [one.name.lower() for one in stored.fields]
    if stored.primary_keys:
        names += [name.lower() for name in SPECIAL_NAMES]
        names += [f"{KEY_PREFIX}{name}".lower() for name in stored.primary_keys]
    if len(set(names)) < len(names) or not {*RESERVED, FILES, WORDS}.isdisjoint(names):
        # Spark finds columns of a file regardless of case unless told otherwise.
        return False
    by_id = {one.id: one for one in stored.fields}
    return all(_reads(by_id[one.id].type, one.type) for one in needed if one.id in by_id)


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
            folded = {one.name.lower() for one in fields}
            return len(folded) == len(fields) and all(_known(one.type) for one in fields)


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
