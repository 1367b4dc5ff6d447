"""Find the rows that compaction looks up: those of keys that come, in files that stay.

    keys ─ key ranges of the files ─┬─ its lookup file (`lookup_file`)        few keys of a file that was decoded again and again
                                    └─ the data file (`read/lookup`)          all others
         ─ file, position, sequence number and columns of each row

Which of the two is chosen for each file (`lookup_choice`). Lookup files are a cache: where one cannot be made or read, for want
of room or of its folder, the data file has the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import pyarrow as pa

from lakelet.errors import InvalidError, LakeletError
from lakelet.model.schema import TableSchema
from lakelet.model.split import Split
from lakelet.model.types import Field
from lakelet.read.lookup.block_cache import BLOCKS, BlockCache
from lakelet.read.lookup.file_lookup import BucketFiles, FileLookup, FoundInFile
from lakelet.read.lookup.key_bounds import Places, WantedKeys
from lakelet.read.lookup.lookup_blocks import LookupFile
from lakelet.read.lookup.point_reader import PointReader
from lakelet.read.serve.lookup_choice import DECODED, AskedFile
from lakelet.read.serve.lookup_file import LookupFiles, OpenLookup
from lakelet.read.serve.lookup_settings import LookupSettings
from lakelet.read.serve.sst_hits import SstHits
from lakelet.storage.home import TableHome

# Blocks of a lookup file that have no room in the cache are read together, one for each key at worst.
_KEYS_AT_ONCE = 16_384


class StoredRowReader(PointReader):
    """Finds rows of a primary-key table by key, in data files or their lookup files. `served` is the number of keys that were
    looked up in lookup files, once for each file."""

    def __init__(
        self,
        home: TableHome,
        schema: TableSchema,
        columns: Sequence[str],
        schema_of: Callable[[int], TableSchema],
        *,
        cache: BlockCache = BLOCKS,
    ) -> None:
        super().__init__(home, schema, columns, schema_of, cache=cache, decoded=self._note_decoded)
        self._schema_of = schema_of
        self._files = _lookup_files(home, schema, schema_of, self._key, cache)
        # Sequence numbers are read as well.
        self._read_columns, self._all_columns = len(columns) + 1, len(schema.fields) + 1
        self.served = 0

    def found(self, split: Split, keys: Sequence[pa.Array]) -> Sequence[FoundInFile]:
        """All rows of keys, given by column, in the files of a bucket, retracts among them; files of older rows come first."""
        return self._search_files(self._bucket(split), WantedKeys(keys, self._key_types))

    def _search_files(self, bucket: BucketFiles, keys: WantedKeys) -> Sequence[FoundInFile]:
        by_group = FileLookup(bucket, self._columns, self._counts_deletes)
        found: list[FoundInFile] = []
        for number, places in bucket.bounds.candidates(keys):
            lookup = bucket.files[number]
            served = self._served(lookup, keys, places)
            found += by_group.search_file(lookup, keys, places) if served is None else served
        return found

    def _served(self, lookup: LookupFile, keys: WantedKeys, places: Places) -> list[SstHits] | None:
        """The rows of the keys at `places` by the lookup file; None where the data file is to be read."""
        files = self._files
        if files is None:
            return None
        name = files.name(lookup)
        asked = AskedFile(
            lookup.file.data.row_count,
            self._read_columns,
            self._all_columns,
            DECODED.of(name),
            files.is_made(lookup),
        )
        if not asked.by_lookup_file(len(places)):
            return None
        try:
            found = self._hits(files, lookup, keys, places)
        except (LakeletError, OSError):
            # Whatever is amiss with the data file itself is told when that is read.
            DECODED.put_off(name, asked.making)
            return None
        self.served += len(places)
        return found

    def _note_decoded(self, lookup: LookupFile, cells: int) -> None:
        if self._files is not None:
            DECODED.add(self._files.name(lookup), cells)

    def _hits(self, files: LookupFiles, lookup: LookupFile, keys: WantedKeys, places: Places) -> list[SstHits]:
        stored = self._schema_of(lookup.file.data.schema_id).fields
        deleted = self._blocks.deleted(lookup.file)
        found: list[SstHits] = []
        for start in range(0, len(places), _KEYS_AT_ONCE):
            some = places[start : start + _KEYS_AT_ONCE].tolist()
            blocks = files.use(lookup, partial(OpenLookup.find_many, keys=keys.encoded, places=some))
            for block, rows, at in blocks:
                numbers = np.array(rows, np.int64)
                hits = SstHits(lookup, block, stored, numbers, np.array(at, np.int64), block.kinds[numbers])
                found.append(hits.live(deleted))
        return [hits for hits in found if len(hits.places)]


def _lookup_files(
    home: TableHome,
    schema: TableSchema,
    schema_of: Callable[[int], TableSchema],
    key: tuple[Field, ...],
    cache: BlockCache,
) -> LookupFiles | None:
    """None where the table has no lookup files: no disk for them, or options that are told of where they are asked for."""
    try:
        settings = LookupSettings.of(schema, None)
    except InvalidError:
        return None
    return LookupFiles.of(home, schema_of, key, settings, cache) if settings.disk.most_bytes else None
