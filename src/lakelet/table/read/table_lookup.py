"""Serve rows by key: a handle that is pinned to a snapshot and reads local lookup files.

with orders.lookup() as lookup:
    lookup.get({"id": 7})
    lookup.get_many([{"id": 7}, {"id": 8}])
    lookup.scan({"id": 0}, {"id": 100})
    lookup.refresh()
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakelet.commit.metadata.schemas import SchemaVersions
from lakelet.errors import InvalidError
from lakelet.lsm.key_bytes import encode_key_bytes
from lakelet.lsm.plain_key import PlainKey
from lakelet.model.schema import TableSchema
from lakelet.model.snapshot import Snapshot
from lakelet.model.types import BINARIES, MAX_LENGTH, STRINGS, Atomic, DataType, Kind
from lakelet.options import SCAN_FALLBACK_BRANCH, TableOptions
from lakelet.read.serve.lookup_settings import LookupSettings
from lakelet.read.serve.serving_reader import ServingReader
from lakelet.scan.key_plan import lookups
from lakelet.scan.live_files import LiveFiles
from lakelet.scan.plan import Planner
from lakelet.storage.home import TableHome
from lakelet.table.read.key_range import key_range
from lakelet.table.read.key_route import KeyRoute
from lakelet.table.read.listed_keys import find_listed
from lakelet.table.read.named_version import named_version
from lakelet.table.read.point_read import chosen_columns, key_table
from lakelet.table.usable import check_usable


@dataclass(frozen=True, slots=True)
class _Pinned:
    """A version of the table: everything a lookup needs of it."""

    schema: TableSchema
    snapshot: Snapshot | None
    live: LiveFiles | None
    schema_of: SchemaVersions
    settings: LookupSettings
    route: KeyRoute | None
    # By their columns; None is all of them.
    readers: dict[tuple[str, ...] | None, ServingReader] = field(default_factory=dict)
    byte_readers: dict[str | None, ServingReader] = field(default_factory=dict)
    # Where one file has the rows of all keys, and keys have one column: that, its encoder, and what finds rows. One or none.
    direct: list[tuple[str, PlainKey, Callable[[bytes], dict[str, Any] | None]]] = field(default_factory=list)
    # The same for bytes of a column: what finds them, and the column's place.
    direct_bytes: dict[str | None, tuple[Callable[[bytes, int], bytes | None], int]] = field(default_factory=dict)


class TableLookup:
    """Rows of one snapshot by key. Any number of threads may use a handle; `refresh` moves all of them to the newest snapshot."""

    def __init__(self, home: TableHome, version: int | str | None, folder: object) -> None:
        self._home = home
        self._version = version
        self._folder = folder
        self._pinned: _Pinned | None = self._pin()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Release the snapshot. Lookup files stay for the next handle until they are dropped."""
        self._pinned = None

    @property
    def snapshot(self) -> Snapshot | None:
        """The snapshot that rows are read from; None for a table without any."""
        return self._open.snapshot

    def refresh(self) -> Snapshot | None:
        """Read from the newest snapshot from now on, or from the named version as it is now; the snapshot."""
        before = self._open
        now = self._pin()
        if now.snapshot != before.snapshot or now.schema != before.schema:
            self._pinned = now
        return now.snapshot

    def get(self, key: Mapping[str, object], columns: Sequence[str] | None = None) -> dict[str, Any] | None:
        """The row with this primary key as a dict, None where there is none."""
        pinned = self._pinned or self._open
        if pinned.direct and columns is None and type(key) is dict and len(key) == 1:
            name, encode, find = pinned.direct[0]
            try:
                plain = encode(key.get(name))
            except (TypeError, UnicodeEncodeError):
                # The long way says what is wrong with it.
                plain = None
            if plain is not None:
                return find(plain)
        if type(key) is not dict and not isinstance(key, Mapping):
            raise InvalidError(f"key: expected a mapping of column to value, found {type(key).__name__}")
        reader = (pinned.readers.get(None) if columns is None else None) or self._reader(pinned, columns)
        routed = None if pinned.route is None else pinned.route.find(key)
        if routed is not None:
            encoded, splits = routed
            route = pinned.route
            if columns is None and route is not None and route.single is not None and splits is route.every:
                lone = reader.lone(splits)
                if lone is not None:
                    name, plain_key = route.single
                    # Text is encoded by its own method, which refuses all else, without a call in between.
                    pinned.direct[:] = [(name, str.encode if route.is_text else plain_key, lone.find_row)]
            return reader.find(splits, encoded)
        keys = key_table([dict(key)], pinned.schema)
        if pinned.live is None:
            return None
        splits = [split for split, _ in lookups(pinned.live, pinned.schema, keys)]
        return reader.find(splits, reader.key_bytes(keys)) if splits else None

    def get_bytes(self, key: bytes, column: str | None = None) -> bytes | None:
        """The bytes of a text or byte column in the row with this key, None where there is no row and where it is NULL.

        For tables that map one STRING or BYTES to another: the primary key is one such column, and `key` its bytes, UTF-8 where
        it is text. Without `column` the value is the only other column of the table.
        """
        pinned = self._pinned or self._open
        direct = pinned.direct_bytes.get(column)
        if direct is not None and type(key) is bytes:
            return direct[0](key, direct[1])
        reader = pinned.byte_readers.get(column) or self._byte_reader(pinned, column)
        if type(key) is not bytes:
            raise InvalidError(f"key: expected bytes, found {type(key).__name__}")
        route = pinned.route
        if route is None:
            return None
        lone = None if route.every is None else reader.lone(route.every)
        if lone is not None:
            pinned.direct_bytes[column] = (lone.find_bytes, reader.first_place)
        return reader.find_bytes(route.every or route.find_bytes(key), key)

    def get_many(self, keys: Any, columns: Sequence[str] | None = None) -> list[dict[str, Any] | None]:
        """The rows with these primary keys, each at the place of its key; None where there is none.

        `keys` is anything that `write` takes; only its primary-key columns are used.
        """
        pinned = self._open
        reader = self._reader(pinned, columns)
        served = find_listed(pinned.route, reader, keys)
        if served is not None:
            return served
        wanted = key_table(keys, pinned.schema)
        found: list[dict[str, Any] | None] = [None] * wanted.num_rows
        if pinned.live is not None and wanted.num_rows:
            rows, places = reader.get_many(lookups(pinned.live, pinned.schema, wanted), wanted)
            for place, row in zip(places.tolist(), rows.to_pylist(), strict=True):
                found[place] = row
        return found

    def scan(
        self,
        start: Mapping[str, object] | None = None,
        end: Mapping[str, object] | None = None,
        columns: Sequence[str] | None = None,
        *,
        prefix: Mapping[str, object] | None = None,
    ) -> pa.Table:
        """The rows whose primary keys are from `start` on, below `end` and within `prefix`, in key order, in memory.

        Each is a mapping of the columns of the primary key, or of the first ones of them (`table/read/key_range`).
        """
        pinned = self._open
        schema = pinned.schema
        names = chosen_columns(columns, schema)
        read = tuple(dict.fromkeys([*names, *schema.primary_keys]))
        reader = self._reader(pinned, read)
        wanted = key_range(schema, start=start, end=end, prefix=prefix)
        low, high = (None, None) if wanted is None else (wanted.low, wanted.high)
        batches: list[pa.RecordBatch] = []
        # Files are in the order of the key without the partition, which is another one where the key has more columns.
        whole = schema.trimmed_primary_keys == schema.primary_keys
        buckets = 0
        for split in () if pinned.live is None else pinned.live.splits():
            buckets += 1
            batches += reader.scan(split, *((low, high) if whole else (None, None)))
        rows = pa.Table.from_batches(batches, reader.schema).combine_chunks()
        if whole and buckets <= 1:
            return rows.select(list(names))
        fields = [schema.field(name) for name in schema.primary_keys]
        columns_of_key = [_one_array(rows.column(field.name)) for field in fields]
        keys = encode_key_bytes(columns_of_key, [field.type for field in fields])
        order = pc.sort_indices(keys)
        ordered = keys.take(order)
        first = 0 if low is None else int(_search(ordered, low))
        behind = len(ordered) if high is None else int(_search(ordered, high))
        return rows.take(order.slice(first, max(0, behind - first))).select(list(names))

    @property
    def _open(self) -> _Pinned:
        pinned = self._pinned
        if pinned is None:
            raise InvalidError("the lookup is closed")
        return pinned

    def _pin(self) -> _Pinned:
        home = self._home
        schema, snapshot = named_version(home, self._version, None, None)
        check_usable(schema)
        if not schema.primary_keys:
            raise InvalidError(
                f"{home.where(home.paths.root)} has no primary key, so that no row has a key to be found by"
            )
        options = TableOptions(schema.options)
        if (options.get(SCAN_FALLBACK_BRANCH) or "").strip():
            raise InvalidError(f"lookup() does not support a table with '{SCAN_FALLBACK_BRANCH.name}'; use get()")
        schema_of = SchemaVersions(home, {schema.id: schema})
        live = None if snapshot is None else Planner(home, schema, schema_of, options).visible_files(snapshot)
        route = None if live is None else KeyRoute.of(schema, live)
        return _Pinned(schema, snapshot, live, schema_of, LookupSettings.of(schema, self._folder), route)

    def _byte_reader(self, pinned: _Pinned, column: str | None) -> ServingReader:
        schema = pinned.schema
        kinds = [schema.field(name).type for name in schema.primary_keys]
        if len(kinds) != 1 or not _is_plain_bytes(kinds[0]):
            raise InvalidError(
                f"get_bytes() needs a primary key of one STRING or BYTES column, found "
                f"{', '.join(f'{name} {one}' for name, one in zip(schema.primary_keys, kinds, strict=True))}; use get()"
            )
        others = [name for name in schema.names if name not in schema.primary_keys]
        if column is None and len(others) != 1:
            raise InvalidError(
                f"get_bytes() needs the name of a column, there are {', '.join(others) or 'none'} beside the key"
            )
        (name,) = chosen_columns([others[0] if column is None else column], schema)
        data_type = schema.field(name).type
        if not isinstance(data_type, Atomic) or data_type.kind not in (*STRINGS, *BINARIES):
            raise InvalidError(f"get_bytes() gives text and bytes, column {name!r} is {data_type}; use get()")
        return pinned.byte_readers.setdefault(column, self._reader(pinned, [name]))

    def _reader(self, pinned: _Pinned, columns: Sequence[str] | None) -> ServingReader:
        names = None if columns is None else chosen_columns(columns, pinned.schema)
        found = pinned.readers.get(names)
        if found is None:
            made = ServingReader(
                self._home, pinned.schema, names or pinned.schema.names, pinned.schema_of, pinned.settings
            )
            found = pinned.readers.setdefault(names, made)
        return found


def _is_plain_bytes(data_type: DataType) -> bool:
    """Whether keys of the type are the bytes of their values."""
    return (
        isinstance(data_type, Atomic)
        and data_type.kind in (Kind.VARCHAR, Kind.VARBINARY)
        and data_type.precision == MAX_LENGTH
    )


def _search(ordered: pa.Array, key: bytes) -> int:
    return int(np.count_nonzero(pc.less(ordered, pa.scalar(key, ordered.type)).to_numpy(zero_copy_only=False)))


def _one_array(column: pa.ChunkedArray) -> pa.Array:
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
