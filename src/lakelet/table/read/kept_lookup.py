"""Gets of a table that is asked again and again: what was derived from its newest version is kept until there is another.

    newest snapshot and schema, looked for at every call ─ the kept version, if it is that one ─ buckets of the keys
      ├─ their lookup files are there: as by a handle (`table_lookup`)
      └─ else from row groups (`read/lookup/point_reader`)

`table.get`, `table.get_many` and a row writer's reads of what is committed go through it.

A lookup file costs as much as reading its whole data file. So it is made once gets have taken about as long, in a thread of its
own: no get waits for it, and a program that gets a few rows never makes one. Where it cannot be made, row groups serve.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lakelet.cache.lru_cache import LruCache
from lakelet.commit.metadata.schemas import SchemaVersions
from lakelet.errors import InvalidError, LakeletError
from lakelet.model.schema import TableSchema
from lakelet.model.snapshot import Snapshot
from lakelet.model.split import Split
from lakelet.options import SCAN_FALLBACK_BRANCH, TableOptions
from lakelet.read.lookup.point_reader import PointReader
from lakelet.read.serve.lookup_settings import LookupSettings
from lakelet.read.serve.served_file import ServedFile
from lakelet.read.serve.serving_reader import ServingReader
from lakelet.scan.key_plan import lookups
from lakelet.scan.plan import Planner
from lakelet.storage.home import TableHome
from lakelet.table.read.key_route import KeyRoute
from lakelet.table.read.listed_keys import find_listed
from lakelet.table.read.point_read import chosen_columns, find_rows, get_row, one_key
from lakelet.table.usable import check_usable

_MOST_TABLES = 64
_FEW_GETS = 100
_ROWS_PER_GET = 1000
# Keys that are looked up together take a fraction of the time of as many gets.
_KEYS_PER_GET = 64
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
        self._live = Planner(home, schema, self._schema_of, TableOptions(schema.options)).visible_files(snapshot)
        self._route = KeyRoute.of(schema, self._live)
        self._settings = LookupSettings.of(schema, None)
        self._readers: dict[tuple[str, ...] | None, tuple[PointReader, ServingReader]] = {}
        # The one file that has the rows of all keys, once that is known.
        self._lone: ServedFile | None = None
        self._lock = threading.Lock()
        self._making: set[int] = set()

    def is_of(self, home: TableHome, schema: TableSchema, snapshot: Snapshot) -> bool:
        """Whether this is that version of that table."""
        return (
            (self._schema is schema or (self._schema.id == schema.id and self._schema == schema))
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
            if columns is None and self._lone is None and self._route is not None and splits is self._route.every:
                self._lone = served.lone(splits)
            try:
                return (served.find(splits, encoded),)
            except (LakeletError, OSError):
                # The folder of lookup files cannot be written, or is too small; row groups can be read all the same.
                pass
        else:
            self._count(splits, served, 1)
        return (by_group.get([(split, _FIRST) for split in splits], one_key(key, self._schema)),)

    def get_encoded(self, key: bytes) -> tuple[dict[str, Any] | None] | None:
        """The same for a whole primary key in bytes, where one open file has the rows of all keys; else None."""
        lone = self._lone
        if lone is None or not lone.is_open:
            return None
        try:
            return (lone.find_row(key),)
        except (LakeletError, OSError):
            return None

    def get_many(self, keys: Any, columns: Sequence[str] | None) -> list[dict[str, Any] | None] | None:
        """The row of each key in a list of dicts, at its place; None where they have to go the long way."""
        route = self._route
        if route is None or route.every is None or len(route.every) != 1:
            return None
        served = self._readers_of(columns)[1]
        if not served.is_open(route.every[0]):
            # The long way counts them.
            return None
        try:
            return find_listed(route, served, keys)
        except (LakeletError, OSError):
            return None

    def find_rows(
        self, keys: pa.Table, columns: Sequence[str] | None, *, retracts: bool = False
    ) -> tuple[pa.Table, NDArray[np.int64]]:
        """The rows with these keys, as `point_read.find_rows` gives them."""
        by_group, served = self._readers_of(columns)
        wanted = lookups(self._live, self._schema, keys) if keys.num_rows else ()
        if all(served.is_open(split) for split, _ in wanted):
            try:
                return served.get_many(wanted, keys, retracts=retracts)
            except (LakeletError, OSError):
                # As for single keys; a key that is wrong is refused again.
                pass
        else:
            for split, places in wanted:
                self._count([split], served, 1 + len(places) // _KEYS_PER_GET)
        return by_group.get_many(wanted, keys, retracts=retracts)

    def _readers_of(self, columns: Sequence[str] | None) -> tuple[PointReader, ServingReader]:
        names = None if columns is None else chosen_columns(columns, self._schema)
        # All columns by name are those that are read when none are named, whose files may be open.
        names = None if names == self._schema.names else names
        found = self._readers.get(names)
        if found is None:
            read = names or self._schema.names
            made = (
                PointReader(self._home, self._schema, read, self._schema_of),
                ServingReader(self._home, self._schema, read, self._schema_of, self._settings),
            )
            found = self._readers.setdefault(names, made)
        return found

    def _count(self, splits: Sequence[Split], served: ServingReader, gets: int) -> None:
        """Count gets of buckets that are not open; have the lookup files of one made that was asked for often enough."""
        if not self._settings.disk.most_bytes:
            return
        for split in splits:
            counts: list[int] = []
            for path in split.paths:
                name = (self._home.store.location, path)
                counts.append((_ASKED.get(name) or 0) + gets)
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


def keep_lookup(home: TableHome, schema: TableSchema, snapshot: Snapshot) -> KeptLookup | None:
    """Keep this version of a table, instead of another one; None for one that is not answered by its files alone."""
    if not schema.primary_keys or home.metadata is None:
        return None
    if (TableOptions(schema.options).get(SCAN_FALLBACK_BRANCH) or "").strip():
        return None
    try:
        # Whoever finds a kept version asks no more.
        check_usable(schema)
    except InvalidError:
        return None
    made = KeptLookup(home, schema, snapshot)
    _KEPT.put((home.store.location, home.paths.branch_root), made, limit=_MOST_TABLES)
    return made


def find_kept_rows(
    home: TableHome,
    schema: TableSchema,
    snapshot: Snapshot | None,
    keys: pa.Table,
    columns: Sequence[str],
    *,
    retracts: bool = False,
) -> tuple[pa.Table, NDArray[np.int64]]:
    """Like `point_read.find_rows`, of a version that is the newest one."""
    kept = None if snapshot is None else kept_lookup(home, schema, snapshot) or keep_lookup(home, schema, snapshot)
    if kept is None:
        return find_rows(home, schema, snapshot, keys, columns, retracts=retracts)
    return kept.find_rows(keys, columns, retracts=retracts)


def find_kept_row(
    home: TableHome,
    schema: TableSchema,
    snapshot: Snapshot | None,
    key: Mapping[str, Any],
    columns: Sequence[str] | None,
) -> dict[str, Any] | None:
    """Like `point_read.get_row`, of a version that is the newest one."""
    kept = None if snapshot is None else kept_lookup(home, schema, snapshot) or keep_lookup(home, schema, snapshot)
    found = None if kept is None else kept.get(key, columns)
    return get_row(home, schema, snapshot, key, columns) if found is None else found[0]


def find_kept_list(
    home: TableHome,
    schema: TableSchema,
    snapshot: Snapshot | None,
    keys: Any,
    columns: Sequence[str] | None,
) -> list[dict[str, Any] | None] | None:
    """The row of each key in a list of dicts, at its place, of a version that is the newest one; None where they have to go the
    long way."""
    kept = None if snapshot is None else kept_lookup(home, schema, snapshot)
    return None if kept is None else kept.get_many(keys, columns)


# One version of each of the most recently used tables; how often gets asked for data files without lookup files.
_KEPT: LruCache[KeptLookup] = LruCache()
_ASKED: LruCache[int] = LruCache()
