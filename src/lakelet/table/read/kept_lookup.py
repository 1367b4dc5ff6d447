"""`table.get` of a table that is asked again and again: what was derived from its newest version is kept until there is another.

    newest snapshot and schema, looked for at every call ─ the kept version, if it is that one ─ bucket of the key
      ├─ its lookup files are there: as by a handle (`table_lookup`)
      └─ else from row groups (`read/lookup/point_reader`)

A lookup file costs as much as reading its whole data file. So it is made once gets have taken about as long, in a thread of its
own: no get waits for it, and a program that gets a few rows never makes one. Where it cannot be made, row groups serve.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lakelet.cache.lru_cache import LruCache
from lakelet.commit.metadata.schemas import SchemaVersions
from lakelet.errors import LakeletError
from lakelet.model.schema import TableSchema
from lakelet.model.snapshot import Snapshot
from lakelet.model.split import Split
from lakelet.options import TableOptions
from lakelet.read.lookup.point_reader import PointReader
from lakelet.read.serve.lookup_settings import LookupSettings
from lakelet.read.serve.serving_reader import ServingReader
from lakelet.scan.plan import Planner
from lakelet.storage.home import TableHome
from lakelet.table.read.key_route import KeyRoute
from lakelet.table.read.point_read import chosen_columns, one_key

_MOST_TABLES = 64
_FEW_GETS = 100
_ROWS_PER_GET = 1000
_AGAIN = 100
_MOST_COUNTED = 100_000
_FIRST = np.zeros(1, np.int64)
THREAD_NAME = "lakelet-lookup-files"


class KeptLookup:
    """A version of a table for gets. Any number of threads may use it."""

    def __init__(self, home: TableHome, schema: TableSchema, snapshot: Snapshot) -> None:
        self._home = home
        self._schema = schema
        self._snapshot = snapshot
        self._schema_of = SchemaVersions(home, {schema.id: schema})
        live = Planner(home, schema, self._schema_of, TableOptions(schema.options)).visible_files(snapshot)
        self._route = KeyRoute.of(schema, live)
        self._settings = LookupSettings.of(schema, None)
        self._readers: dict[tuple[str, ...] | None, tuple[PointReader, ServingReader]] = {}
        self._lock = threading.Lock()
        self._making: set[int] = set()

    def is_of(self, home: TableHome, schema: TableSchema, snapshot: Snapshot) -> bool:
        """Whether this is that version of that table."""
        return (
            self._schema is schema
            and (self._snapshot is snapshot or self._snapshot == snapshot)
            and self._home.store is home.store
        )

    def get(self, key: Mapping[str, Any], columns: Sequence[str] | None) -> tuple[dict[str, Any] | None] | None:
        """The row of a key, or None for no row, in a tuple; None where the key has to go the long way."""
        routed = None if self._route is None else self._route.find(key)
        if routed is None:
            return None
        encoded, splits = routed
        by_group, served = self._readers_of(columns)
        if all(served.is_open(split) for split in splits):
            try:
                return (served.find(splits, encoded),)
            except (LakeletError, OSError):
                # The folder of lookup files cannot be written, or is too small; row groups can be read all the same.
                pass
        else:
            self._count(splits, served)
        return (by_group.get([(split, _FIRST) for split in splits], one_key(key, self._schema)),)

    def _readers_of(self, columns: Sequence[str] | None) -> tuple[PointReader, ServingReader]:
        names = None if columns is None else chosen_columns(columns, self._schema)
        found = self._readers.get(names)
        if found is None:
            read = names or self._schema.names
            made = (
                PointReader(self._home, self._schema, read, self._schema_of),
                ServingReader(self._home, self._schema, read, self._schema_of, self._settings),
            )
            found = self._readers.setdefault(names, made)
        return found

    def _count(self, splits: Sequence[Split], served: ServingReader) -> None:
        """Count a get of buckets that are not open; have the lookup files of one made that was asked for often enough."""
        if not self._settings.disk.most_bytes:
            return
        for split in splits:
            counts: list[int] = []
            for path in split.paths:
                name = (self._home.store.location, path)
                counts.append((_ASKED.get(name) or 0) + 1)
                _ASKED.put(name, counts[-1], limit=_MOST_COUNTED)
            # A small file that a commit adds to a bucket in use is worth it at once.
            is_worth_it = max(counts) > _FEW_GETS and all(
                count > file.row_count // _ROWS_PER_GET for count, file in zip(counts, split.files, strict=True)
            )
            if is_worth_it and not served.is_open(split):
                self._make(split, served)

    def _make(self, split: Split, served: ServingReader) -> None:
        with self._lock:
            if id(split) in self._making:
                return
            self._making.add(id(split))
        threading.Thread(target=self._open, args=(split, served), name=THREAD_NAME, daemon=True).start()

    def _open(self, split: Split, served: ServingReader) -> None:
        try:
            served.open(split)
        except (LakeletError, OSError):
            # It took as long as if it had been of use. Many more gets have to ask: the disk may have room then.
            for path, file in zip(split.paths, split.files, strict=True):
                before = -_AGAIN * (_FEW_GETS + file.row_count // _ROWS_PER_GET)
                _ASKED.put((self._home.store.location, path), before, limit=_MOST_COUNTED)
        finally:
            with self._lock:
                self._making.discard(id(split))


def kept_lookup(home: TableHome, schema: TableSchema, snapshot: Snapshot) -> KeptLookup | None:
    """The kept version of a table, if it is this one."""
    found = _KEPT.get((home.store.location, home.paths.branch_root))
    return found if found is not None and found.is_of(home, schema, snapshot) else None


def keep_lookup(home: TableHome, schema: TableSchema, snapshot: Snapshot) -> KeptLookup:
    """Keep this version of a table, instead of another one."""
    made = KeptLookup(home, schema, snapshot)
    _KEPT.put((home.store.location, home.paths.branch_root), made, limit=_MOST_TABLES)
    return made


# One version of each of the most recently used tables; how often gets asked for data files without lookup files.
_KEPT: LruCache[KeptLookup] = LruCache()
_ASKED: LruCache[int] = LruCache()
