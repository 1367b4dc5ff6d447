"""Look up keys in the files of one bucket.

    key ranges of files ─ key ranges and bloom filters of row groups ─ binary search in the keys of a row group ─ FileHits

Everything that was decoded on the way is kept in the process's cache. All keys of a call go through each step together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lakelet.lsm.key_value_columns import KIND_FIELD, SEQUENCE_FIELD
from lakelet.lsm.sections import may_hold_retracts
from lakelet.lsm.source.row_source import Hits
from lakelet.model.row_arrays import Kinds, Mask
from lakelet.model.schema import TableSchema
from lakelet.model.types import Field
from lakelet.read.evolve import evolve_batch, same_layout
from lakelet.read.lookup.key_bounds import KeyBounds, Places, WantedKeys
from lakelet.read.lookup.lookup_blocks import BlockFiles, LookupFile
from lakelet.read.lookup.lookup_spec import LookupSpec, nullable


@dataclass(frozen=True, slots=True)
class BucketFiles:
    """The files of a split, oldest first, and their key ranges."""

    files: tuple[LookupFile, ...]
    bounds: KeyBounds

    @property
    def nbytes(self) -> int:
        """About the memory this takes."""
        return 1024 * len(self.files) + int(self.bounds.lows.nbytes) * 2


@dataclass(frozen=True, slots=True)
class FileColumns:
    """Columns of blocks in the types of the table now."""

    blocks: BlockFiles
    schema_of: Callable[[int], TableSchema]
    spec: LookupSpec
    # Of each schema version and list of columns those that a file has, and whether they need no conversion. A list is told by
    # its identity: a reader asks for the same few again and again.
    _layouts: dict[tuple[int, int], tuple[Sequence[Field], tuple[Field, ...], pa.Schema | None]] = field(
        default_factory=dict
    )
    _current: dict[int, bool] = field(default_factory=dict)

    def stored(self, schema_id: int, fields: Sequence[Field]) -> tuple[Field, ...]:
        """Columns of the table as a schema version has them, without those it lacks."""
        stored = {field.id: field for field in self.schema_of(schema_id).fields}
        return tuple(stored[field.id] for field in fields if field.id in stored)

    def is_current(self, lookup: LookupFile) -> bool:
        """Whether a file has the very columns of the schema that is read in, so that none needs a conversion. It may be one of an
        older version: an ALTER of options changes no column."""
        number = lookup.file.data.schema_id
        found = self._current.get(number)
        if found is None:
            found = self._current[number] = self.schema_of(number).fields == self.spec.schema.fields
        return found

    def taken(self, lookup: LookupFile, group: int, rows: pa.Array, fields: Sequence[Field]) -> list[pa.Array]:
        """Rows of columns as a file has them."""
        return [column.take(rows) for column in self.blocks.columns(lookup, group, fields)]

    def rows(self, hits: FileHits, fields: Sequence[Field]) -> pa.RecordBatch:
        """Rows of columns of the table. Where nothing is converted, those of the key are the values that were asked for."""
        lookup, group, rows = hits.lookup, hits.group, hits.numbers
        schema_id = lookup.file.data.schema_id
        layout = self._layouts.get((schema_id, id(fields)))
        if layout is None and fields is self.spec.fields and self.is_current(lookup):
            layout = self._layouts[schema_id, id(fields)] = (fields, self.spec.fields, self.spec.arrow)
        if layout is None:
            present = self.stored(schema_id, fields)
            unchanged = len(present) == len(fields) and all(
                same_layout(old.type, new.type) for old, new in zip(present, fields, strict=True)
            )
            layout = self._layouts[schema_id, id(fields)] = (fields, present, nullable(fields) if unchanged else None)
        _, present, schema = layout
        if schema is not None:
            known, places = self.spec.key_places, pa.array(hits.places)
            read = [old for old, field in zip(present, fields, strict=True) if field.name not in known]
            stored = iter(self.taken(lookup, group, pa.array(rows), read))
            columns = [
                hits.keys.columns[known[field.name]].take(places) if field.name in known else next(stored)
                for field in fields
            ]
            return pa.RecordBatch.from_arrays(columns, schema=schema)
        taken = self.taken(lookup, group, pa.array(rows), present)
        if not present:
            # A batch without columns does not tell how many rows it has.
            schema = nullable(fields)
            return pa.RecordBatch.from_arrays([pa.nulls(len(rows), one.type) for one in schema], schema=schema)
        batch = pa.RecordBatch.from_arrays(taken, names=[one.name for one in present])
        return evolve_batch(batch, self.schema_of(schema_id).fields, fields)


class FoundInFile(Hits, Protocol):
    """Rows that were found in one data file, directly or by its lookup file."""

    @property
    def lookup(self) -> LookupFile:
        """The data file."""

    def positions(self) -> Places:
        """The position of each row in the data file."""

    def keep(self, mask: Mask) -> FoundInFile:
        """Some of the rows."""


@dataclass(frozen=True, slots=True)
class FileHits:
    """Rows found in one block, and the place of the key of each in `keys`; `kinds` is None where all are additions."""

    columns: FileColumns
    keys: WantedKeys
    lookup: LookupFile
    group: int
    numbers: Places
    places: Places
    kinds: Kinds | None

    def keep(self, mask: Mask) -> FileHits:
        """Some of the rows."""
        if mask.all():
            return self
        kinds = None if self.kinds is None else self.kinds[mask]
        return FileHits(self.columns, self.keys, self.lookup, self.group, self.numbers[mask], self.places[mask], kinds)

    def positions(self) -> Places:
        """The position of each row in the file."""
        return self.numbers + int(self.columns.blocks.footer(self.lookup, counted=True).starts[self.group])

    def sequences(self) -> NDArray[np.int64]:
        """The sequence number of each row."""
        (taken,) = self.columns.taken(self.lookup, self.group, pa.array(self.numbers), [SEQUENCE_FIELD])
        numbers: NDArray[np.int64] = taken.to_numpy()
        return numbers

    def rows(self, fields: Sequence[Field]) -> pa.RecordBatch:
        """Columns of the rows, in the types of the table now."""
        return self.columns.rows(self, fields)


@dataclass(frozen=True, slots=True)
class FileLookup:
    """Finds rows in the files of a bucket. With `counts_deletes` files say rightly how many retracts they hold."""

    bucket: BucketFiles
    columns: FileColumns
    counts_deletes: bool

    def search(self, keys: WantedKeys) -> list[FileHits]:
        """All rows of the keys in all files; files and row groups in order."""
        found: list[FileHits] = []
        for number, places in self.bucket.bounds.candidates(keys):
            found += self.search_file(self.bucket.files[number], keys, places)
        return found

    def search_file(self, lookup: LookupFile, keys: WantedKeys, places: Places) -> list[FileHits]:
        """The rows of the keys at `places` in one file."""
        found: list[FileHits] = []
        footer = self.columns.blocks.footer(lookup)
        for group, at in footer.groups_of(keys, places):
            block, left = self.columns.blocks.key_block(lookup, group, keys, at)
            if block is None:
                continue
            rows, places_found = block.find(keys, left)
            if len(rows):
                kinds = self._kinds(lookup, group, rows)
                hits = FileHits(self.columns, keys, lookup, group, rows, places_found, kinds)
                found.append(self._live(hits))
        return [hits for hits in found if len(hits.numbers)]

    def _kinds(self, lookup: LookupFile, group: int, rows: Places) -> Kinds | None:
        if not may_hold_retracts(lookup.file.data, counts_deletes=self.counts_deletes):
            return None
        kinds = self.columns.blocks.columns(lookup, group, [KIND_FIELD])[0]
        taken: Kinds = kinds.take(pa.array(rows)).to_numpy(zero_copy_only=False)
        return taken

    def _live(self, hits: FileHits) -> FileHits:
        """Drop the rows that a deletion vector deletes."""
        deleted = self.columns.blocks.deleted(hits.lookup.file)
        if deleted is None or not len(deleted):
            return hits
        own = hits.positions()
        at = np.searchsorted(deleted, own)
        return hits.keep(~((at < len(deleted)) & (deleted[np.minimum(at, len(deleted) - 1)] == own)))
