"""Find rows by key in lookup files: a point reader whose files are local SST files.

Which row of a key wins, and how rows of a key become one, is decided as in every other lookup (`read/lookup/point_reader`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lakelet.format.rows.binary_row_columns import decode_rows
from lakelet.format.sst.sst_reader import SstRows, first_blocks
from lakelet.lsm.key_bytes import encode_key_bytes
from lakelet.lsm.source.row_source import Hits
from lakelet.model.row_arrays import Kinds, Mask
from lakelet.model.schema import TableSchema
from lakelet.model.split import Split
from lakelet.model.types import Field
from lakelet.read.evolve import evolve_batch
from lakelet.read.lookup.block_cache import BLOCKS, BlockCache
from lakelet.read.lookup.file_lookup import BucketFiles
from lakelet.read.lookup.key_bounds import Places, WantedKeys
from lakelet.read.lookup.lookup_blocks import LookupFile
from lakelet.read.lookup.lookup_spec import nullable
from lakelet.read.lookup.point_reader import PointReader
from lakelet.read.serve.lookup_file import LookupFiles, OpenLookup
from lakelet.read.serve.lookup_settings import LookupSettings
from lakelet.storage.home import TableHome

_SCAN_ROWS = 65536
_FIRST = np.zeros(1, np.int64)


@dataclass(frozen=True, slots=True)
class SstHits:
    """Rows found in blocks of one lookup file, and the place of the key of each."""

    block: SstRows
    stored: tuple[Field, ...]
    numbers: Places
    places: Places
    kinds: Kinds | None

    def keep(self, mask: Mask) -> SstHits:
        """Some of the rows."""
        if mask.all():
            return self
        kinds = None if self.kinds is None else self.kinds[mask]
        return SstHits(self.block, self.stored, self.numbers[mask], self.places[mask], kinds)

    def sequences(self) -> NDArray[np.int64]:
        """The sequence number of each row."""
        return self.block.sequences[self.numbers]

    def rows(self, fields: Sequence[Field]) -> pa.RecordBatch:
        """Columns of the rows, in the types of the table now."""
        wanted = {field.id for field in fields}
        numbers = pa.array(self.numbers)
        present = [(place, field) for place, field in enumerate(self.stored) if field.id in wanted]
        if not present:
            # A batch without columns does not tell how many rows it has.
            schema = nullable(fields)
            return pa.RecordBatch.from_arrays([pa.nulls(len(numbers), one.type) for one in schema], schema=schema)
        columns = [self.block.column(place).take(numbers) for place, _ in present]
        batch = pa.RecordBatch.from_arrays(columns, names=[field.name for _, field in present])
        return evolve_batch(batch, self.stored, fields)


class ServingReader(PointReader):
    """Finds rows of a primary-key table by key in local lookup files. Any number of threads may use it at once."""

    def __init__(
        self,
        home: TableHome,
        schema: TableSchema,
        columns: Sequence[str],
        schema_of: Callable[[int], TableSchema],
        settings: LookupSettings,
        *,
        cache: BlockCache = BLOCKS,
    ) -> None:
        super().__init__(home, schema, columns, schema_of, cache=cache)
        self._schema_of = schema_of
        self._files = LookupFiles.of(home, schema_of, self._key, settings, cache)
        self._ranges: dict[tuple[str, ...], list[tuple[bytes, bytes]]] = {}
        by_id = {field.id: place for place, field in enumerate(schema.fields)}
        self._places = [(field.name, by_id[field.id]) for field in self._fields]

    def key_bytes(self, keys: pa.Table) -> bytes:
        """The one key in a table of primary keys, as the bytes that files have it in."""
        columns = [keys.column(field.name).combine_chunks() for field in self._key]
        encoded: bytes = encode_key_bytes(columns, self._key_types)[0].as_py()
        return encoded

    def find(self, splits: Sequence[Split], key: bytes) -> dict[str, Any] | None:
        """The row of one key in bytes (`lsm/key_bytes`, of the trimmed primary key); None where there is none."""
        for split in splits:
            bucket = self._bucket(split)
            found: list[tuple[LookupFile, SstRows, int]] = []
            for lookup, (low, high) in zip(bucket.files, self._bounds(split, bucket), strict=True):
                if low <= key <= high:
                    hit = self._files.use(lookup, lambda opened: opened.find(key))
                    if hit is not None and not self._is_gone(lookup, *hit):
                        found.append((lookup, *hit))
            row = self._one(found)
            if row is not None:
                return row
        return None

    def _one(self, found: Sequence[tuple[LookupFile, SstRows, int]]) -> dict[str, Any] | None:
        """The row that the rows of one key, oldest file first, become."""
        if not found:
            return None
        if not self._lookup.newest_wins:
            hits = [self._hits(lookup, block, np.array([at]), _FIRST) for lookup, block, at in found]
            rows = [row for batch, _ in self._merged(hits) for row in batch.to_pylist()]
            return rows[0] if rows else None
        best = found[0]
        if len(found) > 1:
            sign = -1 if self._lookup.keeps_first else 1
            # Of rows with one sequence number the one found last wins.
            _, place = max((sign * int(block.sequences[at]), place) for place, (_, block, at) in enumerate(found))
            best = found[place]
        lookup, block, at = best
        return None if block.kind(at) & 1 else self._values(lookup, block, at)

    def _values(self, lookup: LookupFile, block: SstRows, at: int) -> dict[str, Any]:
        stored = self._schema_of(lookup.file.data.schema_id)
        if stored is not self._lookup.schema:
            hits = SstHits(block, stored.fields, np.array([at]), _FIRST, None)
            evolved: dict[str, Any] = hits.rows(self._fields).to_pylist()[0]
            return evolved
        return {name: block.column(place)[at].as_py() for name, place in self._places}

    def _is_gone(self, lookup: LookupFile, block: SstRows, at: int) -> bool:
        """Whether a row is deleted by a deletion vector, or is a retract that the table ignores."""
        if self._spec.ignore_delete and block.kind(at) & 1:
            return True
        return lookup.file.vector is not None and not len(self._hits(lookup, block, np.array([at]), _FIRST).places)

    def _bounds(self, split: Split, bucket: BucketFiles) -> list[tuple[bytes, bytes]]:
        """The key range of every file of a bucket, in bytes."""
        found = self._ranges.get(split.paths)
        if found is None:
            found = self._ranges[split.paths] = list(zip(*self._ends(bucket), strict=True))
        return found

    def _ends(self, bucket: BucketFiles) -> list[list[bytes]]:
        ends = []
        for end in ("min_key", "max_key"):
            rows = pa.array([getattr(lookup.file.data, end) for lookup in bucket.files], pa.binary())
            ends.append(encode_key_bytes(decode_rows(rows, self._key_types), self._key_types).to_pylist())
        return ends

    def _hits(self, lookup: LookupFile, block: SstRows, numbers: Places, places: Places) -> SstHits:
        """Rows of a block, without those that a deletion vector deletes."""
        stored = self._schema_of(lookup.file.data.schema_id).fields
        hits = SstHits(block, stored, numbers, places, block.kinds[numbers])
        positions = self._blocks.deleted(lookup.file)
        if positions is None or not len(positions):
            return hits
        own = block.column(len(stored)).to_numpy()[numbers]
        at = np.searchsorted(positions, own)
        return hits.keep(~((at < len(positions)) & (positions[np.minimum(at, len(positions) - 1)] == own)))

    def _search_files(self, bucket: BucketFiles, keys: WantedKeys) -> Sequence[Hits]:
        found: list[Hits] = []
        for number, places in bucket.bounds.candidates(keys):
            lookup = bucket.files[number]
            blocks = self._files.use(lookup, partial(OpenLookup.find_many, keys=keys.encoded, places=places.tolist()))
            for block, rows, at in blocks:
                found.append(self._hits(lookup, block, np.array(rows, np.int64), np.array(at, np.int64)))
        return [hits for hits in found if len(hits.places)]

    def scan(self, split: Split, start: bytes | None, end: bytes | None) -> Iterator[pa.RecordBatch]:
        """The rows of a bucket with keys from `start` on and below `end`, in key order."""
        bucket = self._bucket(split)
        low = start
        for high in [*self._cuts(bucket, start, end), end]:
            parts = [(rows, at) for rows, at in self._merged(self._range(bucket, low, high)) if rows.num_rows]
            if parts:
                table = pa.Table.from_batches([rows for rows, _ in parts], self.schema)
                order = np.argsort(np.concatenate([at for _, at in parts]), kind="stable")
                yield from table.take(pa.array(order)).combine_chunks().to_batches()
            low = high

    def _cuts(self, bucket: BucketFiles, start: bytes | None, end: bytes | None) -> list[bytes]:
        """Keys that cut a range into pieces of about 65,536 rows, which are merged one after the other."""
        firsts: list[tuple[bytes, int]] = []
        for lookup in bucket.files:
            firsts += self._files.use(
                lookup,
                lambda opened: [
                    (first, len(opened.reader) // len(opened.reader.index.places) + 1)
                    for first in opened.reader.index.first_keys
                ],
            )
        cuts: list[bytes] = []
        rows = 0
        for first, count in sorted(firsts):
            if (start is not None and first <= start) or (end is not None and first >= end):
                continue
            rows += count
            if rows >= _SCAN_ROWS and (not cuts or cuts[-1] < first):
                cuts.append(first)
                rows = 0
        return cuts

    def _range(self, bucket: BucketFiles, start: bytes | None, end: bytes | None) -> list[Hits]:
        """All rows of a range of keys; the place of a row is that of its key among all keys of the range, in order."""
        parts: list[tuple[LookupFile, SstRows, int, int]] = []
        for lookup in bucket.files:
            block = self._files.use(lookup, lambda opened: opened.reader.rows(*first_blocks(opened.reader, start, end)))
            first = 0 if start is None else bisect_left(block.keys, start)
            behind = len(block) if end is None else bisect_left(block.keys, end)
            if first < behind:
                parts.append((lookup, block, first, behind))
        keys = sorted({key for _, block, first, behind in parts for key in block.keys[first:behind]})
        place_of = {key: place for place, key in enumerate(keys)}
        found: list[Hits] = []
        for lookup, block, first, behind in parts:
            places = np.fromiter((place_of[key] for key in block.keys[first:behind]), np.int64, behind - first)
            hits = self._hits(lookup, block, np.arange(first, behind), places)
            if self._spec.ignore_delete and hits.kinds is not None:
                hits = hits.keep(hits.kinds & 1 == 0)
            if len(hits.places):
                found.append(hits)
        return found
