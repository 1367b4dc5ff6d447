"""Tables made with a fixed clock and fixed names, and every kind of file they leave as readable text.

Files that Lakelet encodes itself are shown byte by byte and decoded. Parquet and ORC files are Arrow's bytes, which
differ from release to release; of them the dump shows what Lakelet decides: schema, field ids, row groups, which
columns carry ranges, and the rows. The sync marker of an Avro file is random and is shown as sixteen S.
"""

from __future__ import annotations

import datetime as dt
import io
import json
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from decimal import Decimal
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import orc

from lakelet import Lake, Table
from lakelet.commit.index_changes import read_index_entries
from lakelet.format.avro.container import read_header
from lakelet.format.index import deletion_vectors
from lakelet.format.index.hash_index import decode_hash_index
from lakelet.format.manifest.index_manifest import encode_index_manifest
from lakelet.format.manifest.manifest_file import decode_manifest_list
from lakelet.format.metadata.snapshot_json import encode_snapshot
from lakelet.format.sst.sst_reader import BytesSource, SstReader
from lakelet.format.sst.sst_writer import SstSettings, SstWriter
from lakelet.format.wal.wal_group import WalKey, encode_group
from lakelet.format.wal.wal_log import WalHeader, encode_wal_header
from lakelet.format.wal.wal_record import DELETE, PUT, encode_record
from lakelet.model.arrow.arrow_types import arrow_schema
from lakelet.model.data_file import DeletionVectorRange, IndexFile
from lakelet.model.manifest import EntryKind, IndexManifestEntry
from lakelet.model.type_parser import parse_type
from lakelet.model.types import Field
from lakelet.storage.memory import MemoryStore

_SYNC = b"S" * 16
_PLAIN = {"file.compression": "none", "manifest.compression": "none", "file.format": "avro"}
_COLUMNS = [
    ("id", "BIGINT NOT NULL"),
    ("dt", "DATE"),
    ("name", "STRING"),
    ("price", "DECIMAL(10, 2)"),
    ("place", "ROW<city STRING, at ARRAY<DOUBLE>>"),
]
_ROWS = [
    {
        "id": 1,
        "dt": dt.date(2024, 1, 1),
        "name": "short",
        "price": Decimal("1.50"),
        "place": {"city": "Ulm", "at": [48.4, None]},
    },
    {"id": 2, "dt": dt.date(2024, 1, 1), "name": "longer than sixteen characters", "price": None, "place": None},
    {"id": 3, "dt": None, "name": None, "price": Decimal("-3.00"), "place": {"city": None, "at": []}},
]


_SST = {
    "sst-delta": SstSettings(block_bytes=512, restart_interval=2),
    "sst-plain": SstSettings(bloom_bits_per_key=0, delta_encoding=False),
}


class CountingClock:
    """A second per question, from the beginning of 2024."""

    def __init__(self) -> None:
        self._now = 1_704_067_200_000

    def now_ms(self) -> int:
        self._now += 1000
        return self._now

    def monotonic(self) -> float:
        return self._now / 1000

    def sleep(self, seconds: float) -> None:
        self._now += int(seconds * 1000)


class CountingIds:
    """Names in a row."""

    def __init__(self) -> None:
        self._count = 0

    def uuid(self) -> str:
        self._count += 1
        return f"00000000-0000-4000-8000-{self._count:012d}"

    def jitter(self) -> float:
        return 0.5


def dumps() -> dict[str, str]:
    """Every dump by the name of its file."""
    found: dict[str, str] = {}
    for make in (_avro_table, _json_table, _parquet_table, _orc_table, _keyed_table, _thin_table):
        store, names = make()
        for name, path in names.items():
            data = store.get(path)
            found[f"{name}.txt"] = _hash_index(path, data) if name == "hash-index" else _dump(path, data)
        if make is _avro_table:
            listing = [info.path for info in store.list("")]
            found["layout.txt"] = "\n".join(sorted(listing)) + "\n"
    for name, settings in _SST.items():
        found[f"{name}.txt"] = _sst(name, settings)
    found["wal.txt"] = _wal()
    return found


def _sst(name: str, settings: SstSettings) -> str:
    """Rows with one value of every type and one without, as an SST file."""
    fields = [Field(number, name, parse_type(text)) for number, (name, text, _) in enumerate(_EVERY)]
    schema = arrow_schema(fields)
    rows = pa.RecordBatch.from_pylist([{name: value for name, _, value in _EVERY}, {}] * 2, schema)
    sink = io.BytesIO()
    writer = SstWriter(sink, 3, fields, settings, create_ms=CountingClock().now_ms())
    keys = pa.array([b"shop-0001", b"shop-0002", b"shop-0002-\x00", b"shop-1"], pa.large_binary())
    writer.write(keys, pa.array([700, 701, 5, 2**40]), pa.array([0, 1, 2, 3], pa.int8()), rows.columns)
    writer.close()
    lines = [f"# {name}.sst", *_hex(sink.getvalue()), ""]
    reader = SstReader(BytesSource(f"{name}.sst", sink.getvalue()))
    for part in reader.scan():
        for at, key in enumerate(part.keys):
            lines.append(f"key {key!r}, sequence number {part.sequences[at]}, row kind {part.kinds[at]}")
            row = {field.name: part.column(place)[at].as_py() for place, field in enumerate(fields)}
            lines += json.dumps(row, indent=1, default=_shown).splitlines()
    return "\n".join(lines) + "\n"


def _wal() -> str:
    """A log with a single record, a group of two, and one of a row under a name."""
    key = WalKey(b"name of a write", 1_700_000_000_000, b"note")
    records = [
        encode_record(PUT, b"k1", b"row 1"),
        encode_record(PUT, b"k2", b"row 2"),
        encode_record(DELETE, b"k1", b"row 1"),
    ]
    groups = (encode_group(records[0], 1), encode_group(b"".join(records[1:]), 2), encode_group(records[0], 1, [key]))
    data = encode_wal_header(WalHeader("8f2c-table", 3, 7, "writer", "0a1b")) + b"".join(groups)
    return "\n".join(["# wal-7.log", *_hex(data)]) + "\n"


def _lake() -> tuple[MemoryStore, Lake]:
    store = MemoryStore("golden")
    lake = Lake(store, clock=CountingClock(), ids=CountingIds())
    lake.create_database("shop")
    return store, lake


def _avro_table() -> tuple[MemoryStore, dict[str, str]]:
    store, lake = _lake()
    table = lake.create_table("shop.orders", _COLUMNS, partitioned_by=["dt"], options=_PLAIN, comment="golden")
    table.write(_ROWS, commit_user="job", commit_identifier=1, watermark=7, properties={"source": "golden"})
    table.add_column("note", "STRING", default="none", comment="added later")
    table.write([{"id": 4, "dt": dt.date(2024, 1, 1)}], mode="overwrite_partitions")
    _put_deletion_vectors(table)
    root = "shop.db/orders"
    first, second = (snapshot.delta_manifest_list for snapshot in table.snapshots())
    manifests = sorted(info.path for info in store.list(f"{root}/manifest") if "/manifest-0" in info.path)
    data = sorted(info.path for info in store.list(root) if "/bucket-" in info.path)
    names = {
        "metadata": f"{root}/metadata",
        "schema-0": f"{root}/schema/schema-0",
        "schema-1": f"{root}/schema/schema-1",
        "snapshot-1": f"{root}/snapshot/snapshot-1",
        "snapshot-2": f"{root}/snapshot/snapshot-2",
        "latest-hint": f"{root}/snapshot/LATEST",
        "manifest-list-append": f"{root}/manifest/{first}",
        "manifest-list-overwrite": f"{root}/manifest/{second}",
        "manifest-append": manifests[0],
        "manifest-overwrite": manifests[1],
        "index-manifest": f"{root}/manifest/index-manifest-golden-0",
        "deletion-vectors": f"{root}/index/index-golden-0",
        "data-avro": next(path for path in data if "dt=2024-01-01" in path),
    }
    return store, names


def _put_deletion_vectors(table: Table) -> None:
    """Deletion vectors beside the newest snapshot, which no write here makes yet."""
    home, snapshot = table.scan().home, table.latest_snapshot()
    assert snapshot is not None
    (_, file), *_ = table.files()
    vector = deletion_vectors.encode(np.array([0, 2, 70_000], np.int64))
    data = b"\x01" + vector
    home.store.put(home.paths.index("index-golden-0"), data)
    place = DeletionVectorRange(file.name, 1, len(vector) - 8, 3)
    entry = IndexManifestEntry(
        EntryKind.ADD,
        table.scan().plan().splits[0].partition,
        0,
        IndexFile("DELETION_VECTORS", "index-golden-0", len(data), 1, (place,)),
    )
    home.store.put(home.paths.manifest("index-manifest-golden-0"), encode_index_manifest([entry], codec="null"))
    changed = replace(snapshot, index_manifest="index-manifest-golden-0")
    home.store.put(home.paths.snapshot(snapshot.id), encode_snapshot(changed))


def _json_table() -> tuple[MemoryStore, dict[str, str]]:
    store, lake = _lake()
    options = {**_PLAIN, "manifest.format": "json", "bucket": "2", "bucket-key": "id"}
    table = lake.create_table("shop.orders", _COLUMNS, options=options)
    table.write(_ROWS)
    (snapshot,) = table.snapshots()
    folder = "shop.db/orders/manifest"
    (manifest,) = [info.path for info in store.list(folder) if "/manifest-0" in info.path]
    return store, {"manifest-list-json": f"{folder}/{snapshot.delta_manifest_list}", "manifest-json": manifest}


_EVERY = [
    ("bool", "BOOLEAN", True),
    ("tiny", "TINYINT", -1),
    ("small", "SMALLINT", 300),
    ("int", "INT", 70_000),
    ("big", "BIGINT", 2**40),
    ("float", "FLOAT", 1.5),
    ("double", "DOUBLE", math.nan),
    ("decimal9", "DECIMAL(9, 2)", Decimal("1.25")),
    ("decimal18", "DECIMAL(18, 2)", Decimal("1.25")),
    ("decimal38", "DECIMAL(38, 2)", Decimal("1.25")),
    ("char", "CHAR(3)", "abc"),
    ("string", "STRING", "text"),
    ("bytes", "BYTES", b"\x00\xff"),
    ("date", "DATE", dt.date(2024, 1, 1)),
    ("time", "TIME(3)", dt.time(1, 2, 3, 4000)),
    ("ts3", "TIMESTAMP(3)", dt.datetime(2024, 1, 1, 1, 2, 3, 4000)),
    ("ts6", "TIMESTAMP(6)", dt.datetime(2024, 1, 1, 1, 2, 3, 4)),
    ("ltz6", "TIMESTAMP(6) WITH LOCAL TIME ZONE", dt.datetime(2024, 1, 1, 1, 2, 3, 4, tzinfo=dt.UTC)),
    ("list", "ARRAY<INT>", [1, None]),
    ("map", "MAP<STRING, ROW<a INT>>", [("k", {"a": 1})]),
    ("row", "ROW<a INT NOT NULL, b ARRAY<STRING>>", {"a": 1, "b": []}),
]


def _data_file(file_format: str) -> tuple[MemoryStore, dict[str, str]]:
    store, lake = _lake()
    columns = [(name, text) for name, text, _ in _EVERY]
    table = lake.create_table("shop.every", columns, options={**_PLAIN, "file.format": file_format})
    table.write([{name: value for name, _, value in _EVERY}, {}])
    ((path, _),) = table.files()
    return store, {f"data-{file_format}": path}


def _parquet_table() -> tuple[MemoryStore, dict[str, str]]:
    return _data_file("parquet")


def _orc_table() -> tuple[MemoryStore, dict[str, str]]:
    return _data_file("orc")


def _keyed(**options: str) -> tuple[MemoryStore, Table]:
    """A table with dynamic buckets that was upserted and deleted from."""
    store, lake = _lake()
    columns = [("amount", "DOUBLE"), ("dt", "DATE"), ("id", "BIGINT"), ("changed", "INT")]
    table = lake.create_table(
        "shop.orders",
        columns,
        primary_key=["dt", "id"],
        partitioned_by=["dt"],
        options={**_PLAIN, "file.format": "parquet", "sequence.field": "changed", **options},
    )
    day = dt.date(2024, 1, 1)
    table.write([{"id": number, "dt": day, "amount": number / 2, "changed": 5} for number in (3, 1, 2)])
    rows = [{"id": 4, "dt": day, "amount": math.nan, "changed": 6}, {"id": 3, "dt": day, "amount": 0.0, "changed": 6}]
    table.write(rows, kinds=["+I", "-D"])
    return store, table


def _keyed_table() -> tuple[MemoryStore, dict[str, str]]:
    store, table = _keyed()
    first, second = table.snapshots()
    root = "shop.db/orders"
    (manifest,) = decode_manifest_list(store.get(f"{root}/manifest/{second.delta_manifest_list}"), path="golden")
    (entry,) = read_index_entries(table.scan().home, second)
    assert first.index_manifest != second.index_manifest
    return store, {
        "hash-index": f"{root}/index/{entry.file.name}",
        "index-manifest-hash": f"{root}/manifest/{second.index_manifest}",
        "manifest-keyed": f"{root}/manifest/{manifest.name}",
        "data-keyed-parquet": table.files()[1][0],
    }


def _thin_table() -> tuple[MemoryStore, dict[str, str]]:
    store, table = _keyed(**{"data-file.thin-mode": "true", "bucket": "1"})
    return store, {"data-keyed-thin": table.files()[1][0]}


def _hash_index(path: str, data: bytes) -> str:
    return "\n".join([f"# {path}", *_hex(data), "", f"hashes {decode_hash_index(data, path=path).tolist()}"]) + "\n"


def _dump(path: str, data: bytes) -> str:
    decode: Callable[[bytes], Iterator[str]]
    if data.startswith(b"Obj\x01"):
        data, decode = data.replace(read_header(data, path=path).sync, _SYNC), _avro
    elif data.startswith(b"PAR1"):
        return "\n".join([f"# {path}", *_parquet(data)]) + "\n"
    elif data.startswith(b"ORC"):
        return "\n".join([f"# {path}", *_orc(data)]) + "\n"
    elif data[:1] == b"{" or data.isdigit():
        return f"# {path}\n{data.decode()}\n"
    else:
        decode = _vectors
    return "\n".join([f"# {path}", *_hex(data), "", *decode(data)]) + "\n"


def _hex(data: bytes) -> Iterator[str]:
    for start in range(0, len(data), 16):
        line = data[start : start + 16]
        text = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in line)
        yield f"{start:06x}  {line.hex(' '):<47}  {text}"


def _avro(data: bytes) -> Iterator[str]:
    reader = fastavro.reader(io.BytesIO(data))
    yield f"codec {reader.codec}"
    yield from json.dumps(reader.writer_schema, indent=1, default=str).splitlines()
    for row in reader:
        yield from json.dumps(row, indent=1, default=_shown, sort_keys=False).splitlines()


def _parquet(data: bytes) -> Iterator[str]:
    with pq.ParquetFile(pa.BufferReader(data)) as file:
        footer = file.metadata
        yield f"rows {footer.num_rows}, row groups {footer.num_row_groups}, footer version {footer.format_version}"
        yield from _schema(file.schema_arrow)
        yield ""
        for index in range(footer.num_columns):
            column, chunk = footer.schema.column(index), footer.row_group(0).column(index)
            ranged = chunk.statistics is not None and chunk.statistics.has_min_max
            levels = f"levels {column.max_definition_level}/{column.max_repetition_level}"
            width = f"({column.length})" if column.physical_type == "FIXED_LEN_BYTE_ARRAY" else ""
            kind = f"{column.physical_type}{width} {column.logical_type}"
            yield f"{column.path}: {kind}, {levels}, {chunk.compression}, {'range' if ranged else 'no range'}"
        yield ""
        for row in file.read().to_pylist():
            yield from json.dumps(row, indent=1, default=_shown).splitlines()


def _orc(data: bytes) -> Iterator[str]:
    file = orc.ORCFile(pa.BufferReader(data))
    yield f"rows {file.nrows}, stripes {file.nstripes}, compression {file.compression}"
    yield from _schema(file.schema)
    yield ""
    for row in file.read().to_pylist():
        yield from json.dumps(row, indent=1, default=_shown).splitlines()


def _schema(schema: pa.Schema) -> Iterator[str]:
    def lines(field: pa.Field, depth: int) -> Iterator[str]:
        pairs = (field.metadata or {}).items()
        notes = ", ".join(f"{key.decode()}={value.decode()}" for key, value in sorted(pairs) if b"id" in key)
        kind = field.type
        name = (
            "map"
            if pa.types.is_map(kind)
            else "list"
            if pa.types.is_list(kind)
            else "struct"
            if pa.types.is_struct(kind)
            else kind
        )
        yield f"{'  ' * depth}{field.name}: {name}{'' if field.nullable else ' not null'} [{notes}]"
        inner = []
        if pa.types.is_map(kind):
            inner = [kind.key_field, kind.item_field]
        elif pa.types.is_list(kind):
            inner = [kind.value_field]
        elif pa.types.is_struct(kind):
            inner = list(kind)
        for child in inner:
            yield from lines(child, depth + 1)

    for field in schema:
        yield from lines(field, 0)


def _vectors(data: bytes) -> Iterator[str]:
    yield f"version {data[0]}"
    yield f"deleted rows {deletion_vectors.decode(data[1:], path='golden').tolist()}"


def _shown(value: Any) -> str:
    return value.hex(" ") if isinstance(value, bytes) else str(value)
