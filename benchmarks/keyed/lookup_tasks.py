"""The tasks of `measure_lookup`."""

from __future__ import annotations

import importlib
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import lakelet
from benchmarks.contender import serve, timed
from lakelet.table.read.kept_lookup import THREAD_NAME

_KEYS = 20_000
_MANY = 1_000
_BATCH = 50_000
_COLUMNS = [("k", "STRING NOT NULL"), ("v", "STRING")]
_VALUE = "v" * 90


def lookup_get(folder: str, rows: int) -> dict[str, Any]:
    """Single keys by the handle."""
    with _table(folder, rows).lookup(folder=Path(folder, "lookup")) as lookup:
        return _timed(lookup.get, [{"k": key} for key in _chosen(rows)])


def lookup_absent(folder: str, rows: int) -> dict[str, Any]:
    """Keys that are not there, by the handle."""
    with _table(folder, rows).lookup(folder=Path(folder, "lookup")) as lookup:
        return _timed(lookup.get, [{"k": f"{key}x"} for key in _chosen(rows)])


def lookup_bytes(folder: str, rows: int) -> dict[str, Any]:
    """The bytes of single keys by the handle."""
    with _table(folder, rows).lookup(folder=Path(folder, "lookup")) as lookup:
        return _timed(lookup.get_bytes, [key.encode() for key in _chosen(rows)])


def lookup_bytes_absent(folder: str, rows: int) -> dict[str, Any]:
    """Keys that are not there, as bytes, by the handle."""
    with _table(folder, rows).lookup(folder=Path(folder, "lookup")) as lookup:
        return _timed(lookup.get_bytes, [f"{key}x".encode() for key in _chosen(rows)])


def lookup_many(folder: str, rows: int) -> dict[str, Any]:
    """A thousand keys at a time by the handle."""
    with _table(folder, rows).lookup(folder=Path(folder, "lookup")) as lookup:
        return _timed_many(lambda keys: lookup.get_many([{"k": key} for key in keys]), _chosen(rows))


def lookup_scan(folder: str, rows: int) -> dict[str, Any]:
    """All rows in the order of their keys."""
    with _table(folder, rows).lookup(folder=Path(folder, "lookup")) as lookup:
        lookup.scan({"k": f"{rows // 2:016}"})
        with timed() as timer:
            found = lookup.scan()
    return {**timer.taken, "rows": found.num_rows}


def strict_get(folder: str, rows: int) -> dict[str, Any]:
    """Single keys by the table, which looks for a newer snapshot every time, by lookup files that earlier gets have had made."""
    os.environ["XDG_CACHE_HOME"] = folder
    table, keys = _table(folder, rows), [{"k": key} for key in _chosen(rows)[:2_000]]
    _served(table.get, keys)
    return _timed(table.get, keys)


def strict_get_groups(folder: str, rows: int) -> dict[str, Any]:
    """The same from row groups, without lookup files."""
    table = _table(folder, rows)
    table.set_options({"lookup.cache-max-disk-size": "0 b"})
    return _timed(table.get, [{"k": key} for key in _chosen(rows)[:2_000]])


def strict_many(folder: str, rows: int) -> dict[str, Any]:
    """A thousand keys at a time by the table."""
    table = _table(folder, rows)
    return _timed_many(lambda keys: table.get_many([{"k": key} for key in keys]), _chosen(rows))


def writer_get(folder: str, rows: int) -> dict[str, Any]:
    """Single committed keys by a row writer, which looks for a newer snapshot every time."""
    with _writer(folder, rows) as writer:
        keys = [{"k": key} for key in _chosen(rows)[:2_000]]
        _served(writer.get, keys)
        return _timed(writer.get, keys)


def writer_absent(folder: str, rows: int) -> dict[str, Any]:
    """Keys that are not there, by a row writer."""
    with _writer(folder, rows) as writer:
        _served(writer.get, [{"k": key} for key in _chosen(rows)[:2_000]])
        return _timed(writer.get, [{"k": f"{key}x"} for key in _chosen(rows)[:2_000]])


def writer_recent(folder: str, rows: int) -> dict[str, Any]:
    """Single keys whose rows the writer has in memory."""
    with _writer(folder, rows) as writer:
        keys = _chosen(rows)[:2_000]
        writer.put_many([{"k": key, "v": f"{number:010}{_VALUE}"} for number, key in enumerate(keys)])
        return _timed(writer.get, [{"k": key} for key in keys])


def writer_many(folder: str, rows: int) -> dict[str, Any]:
    """A thousand committed keys at a time by a row writer."""
    with _writer(folder, rows) as writer:
        _served(writer.get, [{"k": key} for key in _chosen(rows)[:2_000]])
        return _timed_many(lambda keys: writer.get_many([{"k": key} for key in keys]), _chosen(rows))


def plyvel_get(folder: str, rows: int) -> dict[str, Any]:
    """Single keys by LevelDB."""
    database = _leveldb(folder, rows)
    return _timed(database.get, [key.encode() for key in _chosen(rows)])


def plyvel_absent(folder: str, rows: int) -> dict[str, Any]:
    """Keys that are not there, by LevelDB."""
    database = _leveldb(folder, rows)
    return _timed(database.get, [f"{key}x".encode() for key in _chosen(rows)])


def plyvel_many(folder: str, rows: int) -> dict[str, Any]:
    """A thousand keys one after the other by LevelDB, which has no call for many."""
    database = _leveldb(folder, rows)
    return _timed_many(lambda keys: [database.get(key.encode()) for key in keys], _chosen(rows))


def rocksdb_get(folder: str, rows: int) -> dict[str, Any]:
    """Single keys by RocksDB."""
    return _timed(_rocksdb(folder, rows).get, [key.encode() for key in _chosen(rows)])


def rocksdb_absent(folder: str, rows: int) -> dict[str, Any]:
    """Keys that are not there, by RocksDB."""
    return _timed(_rocksdb(folder, rows).get, [f"{key}x".encode() for key in _chosen(rows)])


def lmdb_get(folder: str, rows: int) -> dict[str, Any]:
    """Single keys by LMDB, in one transaction."""
    with _lmdb(folder, rows).begin() as transaction:
        return _timed(transaction.get, [key.encode() for key in _chosen(rows)])


def lmdb_absent(folder: str, rows: int) -> dict[str, Any]:
    """Keys that are not there, by LMDB, in one transaction."""
    with _lmdb(folder, rows).begin() as transaction:
        return _timed(transaction.get, [f"{key}x".encode() for key in _chosen(rows)])


def _served(get: Callable[[Any], object], keys: Sequence[Any]) -> None:
    """Get until lookup files are there and loops are compiled."""
    for _ in range(3):
        for key in keys:
            get(key)
        for thread in threading.enumerate():
            if thread.name == THREAD_NAME:
                thread.join()


def _timed(get: Callable[[Any], object], keys: Sequence[Any]) -> dict[str, Any]:
    for key in keys:
        get(key)
    with timed() as timer:
        for key in keys:
            get(key)
    return {**timer.taken, "keys": len(keys)}


def _timed_many(get: Callable[[Sequence[str]], object], keys: Sequence[str]) -> dict[str, Any]:
    parts = [keys[at : at + _MANY] for at in range(0, len(keys), _MANY)]
    for _ in range(2):
        for part in parts:
            get(part)
    with timed() as timer:
        for part in parts:
            get(part)
    return {**timer.taken, "keys": len(keys)}


def _chosen(rows: int) -> list[str]:
    return [f"{number:016}" for number in np.random.default_rng(3).integers(0, rows, _KEYS).tolist()]


def _batches(rows: int) -> Iterator[pa.Table]:
    for begin in range(0, rows, _BATCH):
        numbers = range(begin, min(rows, begin + _BATCH))
        yield pa.table({"k": [f"{one:016}" for one in numbers], "v": [f"{one:010}{_VALUE}" for one in numbers]})


def _table(folder: str, rows: int) -> lakelet.Table:
    lake = lakelet.connect(str(Path(folder, "lake")))
    lake.create_database("bench")
    table = lake.create_table("bench.rows", _COLUMNS, primary_key=["k"], options={"bucket": "1"})
    table.write(pa.concat_tables(_batches(rows)))
    return table


def _writer(folder: str, rows: int) -> Any:
    os.environ["XDG_CACHE_HOME"] = folder
    return _table(folder, rows).writer(wal_folder=Path(folder, "wal"))


def _leveldb(folder: str, rows: int) -> Any:
    # It has no types, and is installed by `make bench` alone.
    database: Any = importlib.import_module("plyvel").DB(
        str(Path(folder, "leveldb")), create_if_missing=True, lru_cache_size=256 << 20, bloom_filter_bits=10
    )
    for batch in _batches(rows):
        with database.write_batch() as write:
            for key, value in zip(batch["k"].to_pylist(), batch["v"].to_pylist(), strict=True):
                write.put(key.encode(), value.encode())
    database.compact_range()
    return database


def _rocksdb(folder: str, rows: int) -> Any:
    library: Any = importlib.import_module("rocksdict")
    options = library.Options(raw_mode=True)
    options.create_if_missing(True)
    table = library.BlockBasedOptions()
    table.set_block_cache(library.Cache(256 << 20))
    table.set_bloom_filter(10, False)
    options.set_block_based_table_factory(table)
    database = library.Rdict(str(Path(folder, "rocksdb")), options)
    for batch in _batches(rows):
        for key, value in zip(batch["k"].to_pylist(), batch["v"].to_pylist(), strict=True):
            database[key.encode()] = value.encode()
    database.flush()
    database.compact_range(None, None)
    return database


def _lmdb(folder: str, rows: int) -> Any:
    library: Any = importlib.import_module("lmdb")
    database = library.open(str(Path(folder, "lmdb")), map_size=4 << 30, sync=False)
    for batch in _batches(rows):
        with database.begin(write=True) as transaction:
            for key, value in zip(batch["k"].to_pylist(), batch["v"].to_pylist(), strict=True):
                transaction.put(key.encode(), value.encode(), append=True)
    return database


if __name__ == "__main__":
    serve(
        lookup_get,
        lookup_absent,
        lookup_bytes,
        lookup_bytes_absent,
        lookup_many,
        lookup_scan,
        strict_get,
        strict_get_groups,
        strict_many,
        writer_get,
        writer_absent,
        writer_recent,
        writer_many,
        plyvel_get,
        plyvel_absent,
        plyvel_many,
        rocksdb_get,
        rocksdb_absent,
        lmdb_get,
        lmdb_absent,
    )
