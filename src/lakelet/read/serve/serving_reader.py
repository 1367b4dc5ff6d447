"""Find rows by key in lookup files: a point reader whose files are local SST files.

Which row of a key wins, and how rows of a key become one, is decided as in every other lookup (`read/lookup/point_reader`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import repeat
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakelet.format.rows.binary_row_columns import decode_rows
from lakelet.format.sst.record_columns import is_delta
from lakelet.format.sst.sst_reader import SstRows, first_blocks
from lakelet.lsm.engine.merge_engine import SelectEngine
from lakelet.lsm.key_bytes import encode_key_bytes
from lakelet.lsm.source.row_source import Hits
from lakelet.model.schema import TableSchema
from lakelet.model.split import Split
from lakelet.model.types import Atomic
from lakelet.read.lookup.block_cache import BLOCKS, BlockCache
from lakelet.read.lookup.file_lookup import BucketFiles
from lakelet.read.lookup.key_bounds import Places, WantedKeys
from lakelet.read.lookup.lookup_blocks import LookupFile
from lakelet.read.lookup.point_reader import PointReader
from lakelet.read.serve.lookup_file import LookupFiles, OpenLookup
from lakelet.read.serve.lookup_settings import LookupSettings
from lakelet.read.serve.served_batch import FoundRows, column_lists, winners
from lakelet.read.serve.served_bucket import Hit, ServedBucket
from lakelet.read.serve.served_file import ServedFile
from lakelet.read.serve.sst_hits import SstHits
from lakelet.storage.home import TableHome

_SCAN_ROWS = 65536
_FIRST = np.zeros(1, np.int64)
_PAIR = 2


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
        # By the identity of splits, which their buckets hold.
        self._served: dict[int, ServedBucket] = {}
        self._newest_wins = self._lookup.newest_wins and not self._lookup.keeps_first
        self._ignore_delete = self._spec.ignore_delete
        by_id = {field.id: place for place, field in enumerate(schema.fields)}
        self._places = [(field.name, by_id[field.id], not isinstance(field.type, Atomic)) for field in self._fields]
        self.first_place = self._places[0][1]
        self._names = [field.name for field in self._fields]
        self._stored_at = [(field, by_id[field.id]) for field in self._fields]

    def key_bytes(self, keys: pa.Table) -> bytes:
        """The one key in a table of primary keys, as the bytes that files have it in."""
        columns = [keys.column(field.name).combine_chunks() for field in self._key]
        encoded: bytes = encode_key_bytes(columns, self._key_types)[0].as_py()
        return encoded

    def is_open(self, split: Split) -> bool:
        """Whether the lookup files of a bucket are there, so that keys are found without making any."""
        bucket = self._served.get(id(split))
        return bucket is not None and bucket.is_open

    def open(self, split: Split) -> None:
        """Open the lookup files of a bucket, which are made if need be."""
        (self._served.get(id(split)) or self._serve(split)).open()

    def find(self, splits: Sequence[Split], key: bytes) -> dict[str, Any] | None:
        """The row of one key in bytes (`lsm/key_bytes`, of the trimmed primary key); None where there is none."""
        for split in splits:
            bucket = self._served.get(id(split)) or self._serve(split)
            if self._newest_wins and bucket.lone is not None:
                row = bucket.lone.find_row(key)
                if row is not None:
                    return row
                continue
            if self._newest_wins:
                hit = bucket.newest(key, self._ignore_delete)
            elif self._lookup.newest_wins:
                hit = bucket.oldest(key, self._ignore_delete)
            else:
                row = self._folded_row(bucket.every(key, self._ignore_delete))
                if row is not None:
                    return row
                continue
            if hit is None or hit[1][1]:
                continue
            return self._values(hit)
        return None

    def lone(self, splits: Sequence[Split]) -> ServedFile | None:
        """The one file that has the rows of all keys in these buckets as they are; None where there is none."""
        if not self._newest_wins or len(splits) != 1:
            return None
        return (self._served.get(id(splits[0])) or self._serve(splits[0])).lone

    def find_bytes(self, splits: Sequence[Split], key: bytes) -> bytes | None:
        """The first column, of text or bytes, of the row of one key in bytes; None where there is no row, and for NULL."""
        lone = self.lone(splits)
        if lone is not None:
            return lone.find_bytes(key, self.first_place)
        row = self.find(splits, key)
        value = None if row is None else row[self._names[0]]
        return value.encode() if type(value) is str else value

    def find_kept(self, split: Split, keys: Sequence[bytes]) -> list[dict[str, Any] | None] | None:
        """The rows of keys in one bucket, each at the place of its key, where all of them were found before; else None."""
        lone = self.lone((split,))
        return None if lone is None else lone.find_rows(keys)

    def keeps_more(self, split: Split) -> bool:
        """Whether there is room to keep what is found in a bucket."""
        lone = self.lone((split,))
        return lone is not None and lone.keeps_more

    def keep(self, split: Split, keys: Sequence[bytes], rows: Sequence[dict[str, Any] | None]) -> None:
        """Keep what was found of keys in one bucket, if there is room."""
        lone = self.lone((split,))
        if lone is not None:
            lone.keep_rows(keys, rows)

    def find_many(
        self, split: Split, keys: tuple[bytes, Places], known: Mapping[str, Sequence[Any]]
    ) -> list[dict[str, Any] | None] | None:
        """The rows of keys in one bucket, each at the place of its key; None where they have to go the long way: the blocks
        of a file have no room in memory, or its rows are not the result.

        `known` are columns of the keys, in the values that the table would give.
        """
        if not self._lookup.newest_wins:
            return None
        files: list[FoundRows] = []
        bucket = self._bucket(split)
        columns = len(self._lookup.schema.fields)
        data, at, count = np.frombuffer(keys[0], np.uint8), keys[1], len(keys[1]) - 1
        is_lone = len(bucket.files) == 1 and bucket.files[0].file.vector is None
        deltas = not is_lone or any(is_delta(field.type) for field in self._fields if field.name not in known)
        for lookup in bucket.files:
            if not self._columns.is_current(lookup):
                return None
            cells = self._files.use(lookup, partial(OpenLookup.find_kept, keys=data, key_at=at, deltas=deltas))
            if cells is None:
                return None
            files.append(FoundRows(*cells, columns, self._blocks.deleted(lookup.file)))
        found: list[dict[str, Any] | None] = [None] * count
        won = winners(files, count, keeps_first=self._lookup.keeps_first, ignore_delete=self._ignore_delete)
        for lookup, file, (places, rows) in zip(bucket.files, files, won, strict=True):
            own = places.tolist()
            is_whole = len(own) == count
            given = {name: values if is_whole else [values[one] for one in own] for name, values in known.items()}
            columns_read = [one for one in self._stored_at if one[0].name not in given]
            read = iter(column_lists(file, columns_read, rows, lookup.file.path))
            lists = [given[name] if name in given else next(read) for name in self._names]
            made = _dicts(self._names, lists)
            if is_whole:
                return made
            for place, row in zip(own, made, strict=True):
                found[place] = row
        return found

    def _folded_row(self, found: Sequence[Hit]) -> dict[str, Any] | None:
        """The row that the rows of one key, oldest file first, become."""
        hits = [self._hits(file.lookup, block.rows, np.array([row[2]]), _FIRST) for file, row, block in found]
        rows = [row for batch, _ in self._merged(hits) for row in batch.to_pylist()]
        return rows[0] if rows else None

    def _values(self, hit: Hit) -> dict[str, Any]:
        file, (_, _, at, values), block = hit
        if not file.is_current:
            stored = self._schema_of(file.lookup.file.data.schema_id)
            hits = SstHits(file.lookup, block.rows, stored.fields, np.array([at]), _FIRST, None)
            evolved: dict[str, Any] = hits.rows(self._fields).to_pylist()[0]
            return evolved
        return {
            name: block.rows.column(place)[at].as_py() if is_nested else values[place]
            for name, place, is_nested in self._places
        }

    def _is_gone(self, hit: Hit) -> bool:
        """Whether a row is deleted by a deletion vector."""
        file, row, block = hit
        return not len(self._hits(file.lookup, block.rows, np.array([row[2]]), _FIRST).places)

    def _serve(self, split: Split) -> ServedBucket:
        bucket = self._bucket(split)
        lows, highs = self._ends(bucket)
        files = [
            ServedFile(
                self._files, lookup, low, high, is_current=self._columns.is_current(lookup), wanted=self._stored_at
            )
            for lookup, low, high in zip(bucket.files, lows, highs, strict=True)
        ]
        return self._served.setdefault(id(split), ServedBucket(split, files, self._is_gone))

    def _ends(self, bucket: BucketFiles) -> list[list[bytes]]:
        ends = []
        for end in ("min_key", "max_key"):
            rows = pa.array([getattr(lookup.file.data, end) for lookup in bucket.files], pa.binary())
            ends.append(encode_key_bytes(decode_rows(rows, self._key_types), self._key_types).to_pylist())
        return ends

    def _hits(self, lookup: LookupFile, block: SstRows, numbers: Places, places: Places) -> SstHits:
        """Rows of a block, without those that a deletion vector deletes."""
        stored = self._schema_of(lookup.file.data.schema_id).fields
        hits = SstHits(lookup, block, stored, numbers, places, block.kinds[numbers])
        return hits.live(self._blocks.deleted(lookup.file))

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
        if len(bucket.files) == 1 and isinstance(self._spec.engine, SelectEngine):
            yield from self._scan_file(bucket.files[0], start, end)
            return
        low = start
        for high in [*self._cuts(bucket, start, end), end]:
            parts = [(rows, at) for rows, at in self._merged(self._range(bucket, low, high)) if rows.num_rows]
            if len(parts) == 1 and (np.diff(parts[0][1]) > 0).all():
                yield parts[0][0]
            elif parts:
                table = pa.Table.from_batches([rows for rows, _ in parts], self.schema)
                order = np.argsort(np.concatenate([at for _, at in parts]), kind="stable")
                yield from table.take(pa.array(order)).combine_chunks().to_batches()
            low = high

    def _scan_file(self, lookup: LookupFile, start: bytes | None, end: bytes | None) -> Iterator[pa.RecordBatch]:
        """The rows of the only file of a bucket: each key is there once, so that nothing is merged."""
        first, behind = self._files.use(lookup, lambda opened: first_blocks(opened.reader, start, end))
        while first < behind:
            # A file that is made anew in between has the same blocks: it is made of the same rows in the same way.
            at = first
            block, first = self._files.use(lookup, lambda opened: opened.reader.some_rows(at, behind))  # noqa: B023
            hits = self._between(lookup, block, start, end)
            kinds = hits.kinds
            rows = hits.keep(kinds & 1 == 0) if kinds is not None else hits
            if len(rows.numbers):
                yield rows.rows(self._fields)

    def _between(self, lookup: LookupFile, block: SstRows, start: bytes | None, end: bytes | None) -> SstHits:
        """The rows of a block with keys from `start` on and below `end`; the place of each is its number."""
        first = 0 if start is None else block.position(start)
        behind = len(block) if end is None else block.position(end)
        numbers = np.arange(first, max(first, behind))
        return self._hits(lookup, block, numbers, numbers)

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
            first = 0 if start is None else block.position(start)
            behind = len(block) if end is None else block.position(end)
            if first < behind:
                parts.append((lookup, block, first, behind))
        if not parts:
            return []
        keys = pa.concat_arrays([block.key_array.slice(first, behind - first) for _, block, first, behind in parts])
        places = _ranks(keys)
        found: list[Hits] = []
        begin = 0
        for lookup, block, first, behind in parts:
            numbers = np.arange(first, behind)
            hits = self._hits(lookup, block, numbers, places[begin : begin + len(numbers)])
            begin += len(numbers)
            if self._spec.ignore_delete and hits.kinds is not None:
                hits = hits.keep(hits.kinds & 1 == 0)
            if len(hits.places):
                found.append(hits)
        return found


def _dicts(names: Sequence[str], columns: Sequence[Sequence[Any]]) -> list[dict[str, Any] | None]:
    """Rows of columns."""
    if len(names) == _PAIR:
        # A key and its value: four times as fast.
        first, second = names
        return [{first: one, second: other} for one, other in zip(*columns, strict=True)]
    return list(map(dict, map(zip, repeat(names), zip(*columns, strict=True))))


def _ranks(keys: pa.Array) -> Places:
    """The place of each key among all different ones in order."""
    order = pc.sort_indices(keys)
    ordered = keys.take(order)
    differs = pc.not_equal(ordered.slice(1), ordered.slice(0, len(ordered) - 1)).to_numpy(zero_copy_only=False)
    ranks = np.zeros(len(keys), np.int64)
    ranks[order.to_numpy()] = np.append(0, np.cumsum(differs))
    return ranks
