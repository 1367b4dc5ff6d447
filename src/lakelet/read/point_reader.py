"""Rows by their keys.

    files of the keys' buckets ─ key ranges of files ─ key ranges and bloom filters of row groups ─ binary search in the keys of a
      row group ─ of all rows found for a key the newest ─ the columns asked for

Everything that was decoded on the way is kept in the process's cache, so that a get into a table that has been asked before
is a few binary searches. All keys of a call go through each step together. Which files there are is the planner's
matter, and which row of a key wins is the rule of every other read: the greatest version, then the greatest sequence number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lakelet.errors import InvalidError
from lakelet.format.rows.binary_row_columns import decode_rows
from lakelet.lsm.key_value_columns import KIND_FIELD, SEQUENCE_FIELD
from lakelet.lsm.key_words import encode_versions
from lakelet.lsm.sections import may_hold_retracts
from lakelet.model.arrow.arrow_types import arrow_schema
from lakelet.model.schema import TableSchema
from lakelet.model.split import Split
from lakelet.model.types import Field
from lakelet.options import (
    IGNORE_DELETE,
    LOOKUP_CACHE_MAX_MEMORY_SIZE,
    ROWKIND_FIELD,
    SEQUENCE_FIELD_SORT_ORDER,
    TableOptions,
)
from lakelet.options import SEQUENCE_FIELD as SEQUENCE_FIELD_OPTION
from lakelet.read.block_cache import BLOCKS, BlockCache
from lakelet.read.evolve import evolve_batch, same_layout
from lakelet.read.key_bounds import KeyBounds, Places, WantedKeys
from lakelet.read.lookup_blocks import BlockFiles, LookupFile
from lakelet.read.split_files import files_of
from lakelet.storage.home import TableHome

_NO_PLACES = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class _Bucket:
    """The files of a split, oldest first, and their key ranges."""

    files: tuple[LookupFile, ...]
    bounds: KeyBounds

    @property
    def nbytes(self) -> int:
        return 1024 * len(self.files) + int(self.bounds.lows.nbytes) * 2


@dataclass(slots=True)
class _Hits:
    """Rows found in one block, and the place of the key of each; `kinds` is None where all are additions."""

    lookup: LookupFile
    group: int
    rows: Places
    places: Places
    kinds: NDArray[np.int8] | None

    def keep(self, mask: NDArray[np.bool_]) -> _Hits:
        if mask.all():
            return self
        kinds = None if self.kinds is None else self.kinds[mask]
        return _Hits(self.lookup, self.group, self.rows[mask], self.places[mask], kinds)


class PointReader:
    """Finds rows of a primary-key table by key. What was read is kept in `cache`, so that a reader is cheap to make; one
    that is kept is cheaper still. Any number of threads may use it at once.
    """

    def __init__(
        self,
        home: TableHome,
        schema: TableSchema,
        columns: Sequence[str],
        schema_of: Callable[[int], TableSchema],
        *,
        cache: BlockCache = BLOCKS,
    ) -> None:
        if not schema.primary_keys:
            raise InvalidError(
                f"{home.where(home.paths.root)} has no primary key, so that no row has a key to be found by"
            )
        options = TableOptions(schema.options)
        self._home = home
        self._schema = schema
        self._schema_of = schema_of
        self._cache = cache
        self._key = schema.trimmed_key_fields
        self._key_types = tuple(field.type for field in self._key)
        self._fields = tuple(schema.field(name) for name in columns)
        self._versions = tuple(schema.field(name) for name in options.get(SEQUENCE_FIELD_OPTION) or ())
        self._descending = options.get(SEQUENCE_FIELD_SORT_ORDER) == "descending"
        self._ignores_deletes = bool(options.get(IGNORE_DELETE))
        self._counts_deletes = options.get(ROWKIND_FIELD) is None
        self._blocks = BlockFiles(home, cache, options.get(LOOKUP_CACHE_MAX_MEMORY_SIZE))
        # Of each schema version the columns asked for, and whether they need no conversion.
        self._layouts: dict[int, tuple[tuple[Field, ...], bool]] = {}
        self.schema = _nullable(self._fields)

    def get_many(self, lookups: Sequence[tuple[Split, Places]], keys: pa.Table) -> tuple[pa.Table, Places]:
        """The rows of the keys that are there, and for each the place of its key in `keys`, ascending.

        `keys` has the primary key in the table's types. Each split goes with the places of the keys that may stand in it, as
        `Planner.plan_keys` gives them; a split holds all live files of its bucket.
        """
        columns = [keys.column(field.name).combine_chunks() for field in self._key]
        if any(column.null_count for column in columns):
            raise InvalidError("a primary key is never NULL")
        batches: list[pa.RecordBatch] = []
        found: list[Places] = []
        for split, places in lookups:
            whole = len(places) == keys.num_rows
            wanted = WantedKeys(
                columns if whole else [column.take(pa.array(places)) for column in columns], self._key_types
            )
            for hits in self._newest(self._search(self._bucket(split), wanted)):
                batches.append(self._rows(hits))
                found.append(places[hits.places])
        if not batches:
            return self.schema.empty_table(), _NO_PLACES
        table, at = pa.Table.from_batches(batches, self.schema), np.concatenate(found)
        if (np.diff(at) < 0).any():
            order = np.argsort(at, kind="stable")
            return table.take(pa.array(order)), at[order]
        return table, at

    def _bucket(self, split: Split) -> _Bucket:
        vectors = tuple(vector and (vector.index_path, vector.place.offset) for vector in split.deletion_vectors)
        name = (self._home.store.location, split.paths, vectors)
        return self._cache.load(
            name, lambda: self._open(split), lambda bucket: bucket.nbytes, limit_bytes=self._blocks.limit_bytes
        )

    def _open(self, split: Split) -> _Bucket:
        files = sorted(enumerate(files_of([split])), key=lambda pair: (pair[1].data.max_sequence, pair[0]))
        lookups = tuple(LookupFile(file, self._stored(file.data.schema_id, self._key)) for _, file in files)
        ends = [
            decode_rows(pa.array([getattr(file.data, end) for _, file in files], pa.binary()), self._key_types)
            for end in ("min_key", "max_key")
        ]
        return _Bucket(lookups, KeyBounds.of(ends[0], ends[1], self._key_types, np.ones(len(files), np.bool_)))

    def _stored(self, schema_id: int, fields: Sequence[Field]) -> tuple[Field, ...]:
        """Columns of the table as a schema version has them, without those it lacks."""
        stored = {field.id: field for field in self._schema_of(schema_id).fields}
        return tuple(stored[field.id] for field in fields if field.id in stored)

    def _search(self, bucket: _Bucket, keys: WantedKeys) -> list[_Hits]:
        """All rows of the keys, in whatever file they stand; files and row groups in order."""
        found: list[_Hits] = []
        for number, places in bucket.bounds.candidates(keys):
            lookup = bucket.files[number]
            footer = self._blocks.footer(lookup)
            if footer.bounds is None:
                groups = [(group, places) for group in range(len(footer.starts) - 1)]
            else:
                chosen = np.zeros(len(keys), np.bool_)
                chosen[places] = True
                groups = [(group, at[chosen[at]]) for group, at in footer.bounds.candidates(keys)]
            for group, at in groups:
                block, left = self._blocks.key_block(lookup, group, keys, at)
                if block is None:
                    continue
                rows, places_found = block.find(keys, left)
                if len(rows):
                    hits = _Hits(lookup, group, rows, places_found, self._kinds(lookup, group, rows))
                    found.append(self._live(hits, int(footer.starts[group])))
        return [hits for hits in found if len(hits.rows)]

    def _kinds(self, lookup: LookupFile, group: int, rows: Places) -> NDArray[np.int8] | None:
        if not may_hold_retracts(lookup.file.data, counts_deletes=self._counts_deletes):
            return None
        kinds = self._blocks.columns(lookup, group, [KIND_FIELD])[0]
        taken: NDArray[np.int8] = kinds.take(pa.array(rows)).to_numpy(zero_copy_only=False)
        return taken

    def _live(self, hits: _Hits, start: int) -> _Hits:
        """Without the rows that take no part: those that a deletion vector hides, and deletes that the table ignores."""
        positions = self._blocks.deleted(hits.lookup.file)
        if positions is not None and len(positions):
            at = np.searchsorted(positions, hits.rows + start)
            gone = (at < len(positions)) & (positions[np.minimum(at, len(positions) - 1)] == hits.rows + start)
            hits = hits.keep(~gone)
        if self._ignores_deletes and hits.kinds is not None:
            hits = hits.keep(hits.kinds & 1 == 0)
        return hits

    def _newest(self, found: Sequence[_Hits]) -> list[_Hits]:
        """Of every key the row that counts, unless that takes the key away."""
        if not found:
            return []
        places = np.concatenate([hits.places for hits in found])
        if len(np.unique(places)) < len(places):
            order = self._order(found, places)
            ordered = places[order]
            wins = np.zeros(len(places), np.bool_)
            wins[order[np.append(ordered[1:] != ordered[:-1], True)]] = True
            starts = np.cumsum([0, *(len(hits.rows) for hits in found)])
            found = [
                hits.keep(wins[start : start + len(hits.rows)]) for hits, start in zip(found, starts[:-1], strict=True)
            ]
        stay = [hits if hits.kinds is None else hits.keep(hits.kinds & 1 == 0) for hits in found]
        return [hits for hits in stay if len(hits.rows)]

    def _order(self, found: Sequence[_Hits], places: Places) -> Places:
        """The rows found, those of a key together, the one that counts last; of equal ones the one found last."""
        sequences = np.concatenate([self._taken(hits, [SEQUENCE_FIELD])[0].to_numpy() for hits in found])
        sort_keys = [sequences]
        if self._versions:
            parts = [self._versions_of(hits) for hits in found]
            words = np.concatenate(
                encode_versions(parts, [field.type for field in self._versions], descending=self._descending)
            )
            sort_keys += list(words.T[::-1])
        return np.lexsort((np.arange(len(places)), *sort_keys, places))

    def _versions_of(self, hits: _Hits) -> list[pa.Array]:
        stored = self._schema_of(hits.lookup.file.data.schema_id).fields
        present = self._stored(hits.lookup.file.data.schema_id, self._versions)
        taken = self._taken(hits, present)
        batch = pa.RecordBatch.from_arrays(taken, names=[field.name for field in present])
        return list(_evolved(batch, len(hits.rows), stored, self._versions).columns)

    def _taken(self, hits: _Hits, fields: Sequence[Field]) -> list[pa.Array]:
        rows = pa.array(hits.rows)
        return [column.take(rows) for column in self._blocks.columns(hits.lookup, hits.group, fields)]

    def _rows(self, hits: _Hits) -> pa.RecordBatch:
        """The columns asked for, in the types of the table now."""
        schema_id = hits.lookup.file.data.schema_id
        if schema_id not in self._layouts:
            present = self._stored(schema_id, self._fields)
            self._layouts[schema_id] = (
                present,
                len(present) == len(self._fields)
                and all(same_layout(old.type, new.type) for old, new in zip(present, self._fields, strict=True)),
            )
        present, unchanged = self._layouts[schema_id]
        taken = self._taken(hits, present)
        if unchanged:
            return pa.RecordBatch.from_arrays(taken, schema=self.schema)
        batch = pa.RecordBatch.from_arrays(taken, names=[field.name for field in present])
        return _evolved(batch, len(hits.rows), self._schema_of(schema_id).fields, self._fields)


def _evolved(batch: pa.RecordBatch, rows: int, stored: Sequence[Field], wanted: Sequence[Field]) -> pa.RecordBatch:
    if batch.num_columns:
        return evolve_batch(batch, stored, wanted)
    # A batch without columns does not tell how many rows it has.
    schema = _nullable(wanted)
    return pa.RecordBatch.from_arrays([pa.nulls(rows, field.type) for field in schema], schema=schema)


def _nullable(fields: Sequence[Field]) -> pa.Schema:
    return pa.schema([field.with_nullable(True) for field in arrow_schema(fields)])
