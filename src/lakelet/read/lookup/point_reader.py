"""Point lookups: the visible row of each key.

    files of the keys' buckets, and runs beside them ─ all rows of the keys (`lookup.file_lookup`, `lsm.source`) ─ of all rows
    found for a
      key the one that the merge engine selects or folds ─ the columns asked for

A lookup in a cached table is a few binary searches. Which files there are is decided by the planner, and how
rows of a key become one by `MergeSpec`, as for every other read. Where the engine selects, values are fetched of
winning rows only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from lakelet.errors import InvalidError
from lakelet.format.rows.binary_row_columns import decode_rows
from lakelet.lsm.engine.fold import fold_groups
from lakelet.lsm.engine.key_groups import KeyGroups
from lakelet.lsm.engine.merge_engine import FoldEngine, SelectEngine
from lakelet.lsm.key_value_columns import SEQUENCE_NUMBER, VALUE_KIND
from lakelet.lsm.key_words import encode_versions
from lakelet.lsm.source.row_source import Hits
from lakelet.model.row_arrays import Kinds
from lakelet.model.schema import TableSchema
from lakelet.model.split import Split
from lakelet.read.lookup.block_cache import BLOCKS, BlockCache
from lakelet.read.lookup.file_lookup import BucketFiles, FileColumns, FileLookup
from lakelet.read.lookup.key_bounds import KeyBounds, Places, WantedKeys
from lakelet.read.lookup.key_codes import SingleKey
from lakelet.read.lookup.lookup_blocks import BlockFiles, LookupFile
from lakelet.read.lookup.lookup_spec import lookup_spec
from lakelet.read.lookup.single_lookup import FoundRow, find_rows_of
from lakelet.read.merge.overlaid_split import AnySplit, OverlaidSplit
from lakelet.read.split_files import files_of
from lakelet.storage.home import TableHome

_NO_PLACES = np.empty(0, np.int64)
_NULL_KEY = "a primary key is never NULL"


class PointReader:
    """Finds rows of a primary-key table by key. Blocks are kept in `cache`, so that a reader is cheap to make; one
    that is reused is cheaper still. Any number of threads may use it at once.
    """

    def __init__(
        self,
        home: TableHome,
        schema: TableSchema,
        columns: Sequence[str],
        schema_of: Callable[[int], TableSchema],
        *,
        cache: BlockCache = BLOCKS,
        decoded: Callable[[LookupFile, int], None] | None = None,
    ) -> None:
        if not schema.primary_keys:
            raise InvalidError(
                f"{home.where(home.paths.root)} has no primary key, so that no row has a key to be found by"
            )
        spec = lookup_spec(schema, columns)
        self._home = home
        self._cache = cache
        self._lookup = spec
        self._spec = spec.merge
        self._key = spec.key
        self._key_types = spec.key_types
        self._fields = spec.fields
        self._folded = spec.folded
        self._versions = spec.versions
        self._counts_deletes = spec.counts_deletes
        self._blocks = BlockFiles(home, cache, spec.cache_bytes, decoded)
        self._columns = FileColumns(self._blocks, schema_of, spec)
        self.schema = spec.arrow

    def get(self, lookups: Sequence[tuple[AnySplit, Places]], keys: pa.Table) -> dict[str, Any] | None:
        """The row of the one key in `keys`, None where there is none; like `get_many` without its overhead."""
        if not self._lookup.newest_wins or any(isinstance(split, OverlaidSplit) for split, _ in lookups):
            rows = self.get_many(lookups, keys)[0].to_pylist()
            return rows[0] if rows else None
        columns = [_one_array(keys.column(field.name)) for field in self._key]
        if any(column.null_count for column in columns):
            raise InvalidError(_NULL_KEY)
        key = SingleKey(columns, self._key_types)
        for split, _ in lookups:
            assert isinstance(split, Split)
            bucket = self._bucket(split)
            found = find_rows_of(key, bucket, self._columns, counts_deletes=self._counts_deletes)
            row = self._newest(found)
            if row is not None:
                return row.values(self._columns, key)
        return None

    def _newest(self, found: Sequence[FoundRow]) -> FoundRow | None:
        """The row that the engine keeps, unless that is a retract; of rows with the same sequence number the one found last."""
        if self._spec.ignore_delete:
            found = [row for row in found if not row.is_retract]
        if not found:
            return None
        best = found[0]
        if len(found) > 1:
            sign = -1 if self._lookup.keeps_first else 1
            _, place = max((sign * row.sequence(self._columns), place) for place, row in enumerate(found))
            best = found[place]
        return None if best.is_retract else best

    def get_many(
        self, lookups: Sequence[tuple[AnySplit, Places]], keys: pa.Table, *, retracts: bool = False
    ) -> tuple[pa.Table, Places]:
        """The rows of the keys that exist, and for each the place of its key in `keys`, ascending. With `retracts` also the
        retracts of deleted keys, where the engine selects rows.

        `keys` has the primary key in the table's types. Each split has the places of the keys that may be in it, as
        `Planner.plan_keys` gives them; a split holds all live files of its bucket.
        """
        columns = [keys.column(field.name).combine_chunks() for field in self._key]
        if any(column.null_count for column in columns):
            raise InvalidError(_NULL_KEY)
        batches: list[pa.RecordBatch] = []
        found: list[Places] = []
        for split, places in lookups:
            whole = len(places) == keys.num_rows
            wanted = WantedKeys(
                columns if whole else [column.take(pa.array(places)) for column in columns], self._key_types
            )
            for rows, at in self._merged(self._search(split, wanted), retracts=retracts):
                batches.append(rows)
                found.append(places[at])
        if not batches:
            return self.schema.empty_table(), _NO_PLACES
        table, at = pa.Table.from_batches(batches, self.schema), np.concatenate(found)
        if (np.diff(at) < 0).any():
            order = np.argsort(at, kind="stable")
            return table.take(pa.array(order)), at[order]
        return table, at

    def stored(self, split: Split, keys: pa.Table) -> tuple[pa.RecordBatch, Places] | None:
        """The rows that a select engine keeps of the keys, retracts among them, in the order of the keys and with their
        sequence numbers and kinds in front, and the places of their keys; None where there are none. The keys are distinct."""
        columns = [keys.column(field.name).combine_chunks() for field in self._key]
        found = self._selected(self._search(split, WantedKeys(columns, self._key_types)), retracts=True)
        if not found:
            return None
        places = np.concatenate([hits.places for hits in found])
        order = np.argsort(places, kind="stable")
        return self.whole(found).take(pa.array(order)), places[order]

    def whole(self, found: Sequence[Hits]) -> pa.RecordBatch:
        """Rows that were found, of which there are some, in their order: sequence numbers and kinds in front of the columns."""
        own = [
            pa.concat_arrays([pa.array(hits.sequences()) for hits in found]),
            pa.concat_arrays([pa.array(_kinds(hits)) for hits in found]),
        ]
        rows = pa.concat_batches([hits.rows(self._fields) for hits in found])
        return pa.RecordBatch.from_arrays(
            [*own, *rows.columns], names=[SEQUENCE_NUMBER, VALUE_KIND, *rows.schema.names]
        )

    def _search(self, split: AnySplit, keys: WantedKeys) -> list[Hits]:
        """All rows of the keys in files and beside them, except retracts that the table ignores."""
        files, beside = (split.split, split.runs) if isinstance(split, OverlaidSplit) else (split, ())
        found: list[Hits] = []
        if files is not None:
            found += self._search_files(self._bucket(files), keys)
        for run in beside:
            found += run.search(keys)
        if not self._spec.ignore_delete:
            return found
        kept = [hits if (kinds := hits.kinds) is None else hits.keep(kinds & 1 == 0) for hits in found]
        return [hits for hits in kept if len(hits.places)]

    def _search_files(self, bucket: BucketFiles, keys: WantedKeys) -> Sequence[Hits]:
        """All rows of the keys in the files of a bucket."""
        return FileLookup(bucket, self._columns, self._counts_deletes).search(keys)

    def _bucket(self, split: Split) -> BucketFiles:
        vectors = tuple(vector and (vector.index_path, vector.place.offset) for vector in split.deletion_vectors)
        name = (self._home.store.location, split.paths, vectors)
        found: BucketFiles = self._cache.load(
            name, lambda: self._open(split), lambda bucket: int(bucket.nbytes), limit=self._blocks.limit_bytes
        )
        return found

    def _open(self, split: Split) -> BucketFiles:
        files = sorted(enumerate(files_of([split])), key=lambda pair: (pair[1].data.max_sequence, pair[0]))
        lookups = tuple(LookupFile(file, self._columns.stored(file.data.schema_id, self._key)) for _, file in files)
        ends = [
            decode_rows(pa.array([getattr(file.data, end) for _, file in files], pa.binary()), self._key_types)
            for end in ("min_key", "max_key")
        ]
        return BucketFiles(lookups, KeyBounds.of(ends[0], ends[1], self._key_types, np.ones(len(files), np.bool_)))

    def _merged(self, found: Sequence[Hits], *, retracts: bool = False) -> Iterator[tuple[pa.RecordBatch, Places]]:
        """The row of every key that has one, and the places of the keys."""
        engine = self._spec.engine
        if isinstance(engine, SelectEngine):
            for hits in self._selected(found, retracts=retracts):
                yield hits.rows(self._fields), hits.places
        elif found:
            yield self._folded_rows(found, engine)

    def _selected(self, found: Sequence[Hits], *, retracts: bool) -> list[Hits]:
        """Of every key the row that the engine keeps, unless that is a retract and `retracts` are left out."""
        if not found:
            return []
        places = np.concatenate([hits.places for hits in found])
        if np.bincount(places, minlength=1).max() > 1:
            order = self._order(found, places)
            ordered = places[order]
            wins = np.zeros(len(places), np.bool_)
            wins[order[np.append(ordered[1:] != ordered[:-1], True)]] = True
            starts = np.cumsum([0, *(len(hits.places) for hits in found)])
            found = [
                hits.keep(wins[start : start + len(hits.places)])
                for hits, start in zip(found, starts[:-1], strict=True)
            ]
        if not retracts:
            found = [hits if (kinds := hits.kinds) is None else hits.keep(kinds & 1 == 0) for hits in found]
        return [hits for hits in found if len(hits.places)]

    def _folded_rows(self, found: Sequence[Hits], engine: FoldEngine) -> tuple[pa.RecordBatch, Places]:
        """Of every key all rows folded, unless the result is a retract."""
        places = np.concatenate([hits.places for hits in found])
        order = self._order(found, places)
        ordered = places[order]
        starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
        columns = [
            pa.concat_arrays([pa.array(hits.sequences()) for hits in found]),
            pa.concat_arrays([pa.array(_kinds(hits)) for hits in found]),
        ]
        if self._folded:
            columns += pa.concat_batches([hits.rows(self._folded) for hits in found]).columns
        names = [SEQUENCE_NUMBER, VALUE_KIND, *(field.name for field in self._folded)]
        groups = KeyGroups(pa.RecordBatch.from_arrays(columns, names=names), order, starts)
        asked = [*self.schema.names, VALUE_KIND]
        rows = fold_groups(groups, engine, replace(self._spec, drop_deletes=False), asked)
        stays = rows.column(VALUE_KIND).to_numpy() & 1 == 0
        kept = rows.filter(pa.array(stays))
        result = pa.RecordBatch.from_arrays(kept.columns[:-1], schema=self.schema)
        return result, ordered[starts][stays]

    def _order(self, found: Sequence[Hits], places: Places) -> Places:
        """The rows found, those of a key together, the one that the engine keeps last; of equal ones the one found last."""
        sequences = np.concatenate([hits.sequences() for hits in found])
        engine = self._spec.engine
        sort_keys = [-sequences if isinstance(engine, SelectEngine) and engine.keeps_first else sequences]
        if self._versions:
            parts = [hits.rows(self._versions).columns for hits in found]
            types = [field.type for field in self._versions]
            words = np.concatenate(encode_versions(parts, types, descending=self._spec.descending))
            sort_keys += list(words.T[::-1])
        # The sort is stable.
        return np.lexsort((*sort_keys, places))


def _kinds(hits: Hits) -> Kinds:
    kinds = hits.kinds
    return np.zeros(len(hits.places), np.int8) if kinds is None else kinds


def _one_array(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
