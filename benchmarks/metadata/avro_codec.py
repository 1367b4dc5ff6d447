"""The Avro codec against fastavro, on a manifest of 10,000 entries with statistics of nine columns.

Run it as `python -m benchmarks.metadata.avro_codec [entries]`. It prints one JSON object: milliseconds (best of several), and
how many times faster than fastavro in the same process. Seeded, so that runs compare.
"""

from __future__ import annotations

import io
import json
import os
import platform
import random
import sys
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import fastavro

from lakelet.format.avro import decode, encode
from lakelet.format.avro.compiled import load_kernels

PLAN_COLUMNS = ("_KIND", "_PARTITION", "_BUCKET", "_FILE._FILE_NAME", "_FILE._ROW_COUNT", "_FILE._LEVEL")


def stats_type(name: str) -> dict[str, Any]:
    """The record of the statistics of some columns."""
    counts = ["null", {"type": "array", "items": ["null", "long"]}]
    return record(name, _MIN_VALUES="bytes", _MAX_VALUES="bytes", _NULL_COUNTS=counts)


def record(name: str, **fields: Any) -> dict[str, Any]:
    """An Avro record type."""
    return {"type": "record", "name": name, "fields": [{"name": n, "type": t} for n, t in fields.items()]}


def entry_schema() -> dict[str, Any]:
    """The Avro schema of a manifest entry."""
    strings = {"type": "array", "items": "string"}
    file = record(
        "record__FILE",
        _FILE_NAME="string",
        _FILE_SIZE="long",
        _ROW_COUNT="long",
        _MIN_KEY="bytes",
        _MAX_KEY="bytes",
        _KEY_STATS=stats_type("record__FILE__KEY_STATS"),
        _VALUE_STATS=stats_type("record__FILE__VALUE_STATS"),
        _MIN_SEQUENCE_NUMBER="long",
        _MAX_SEQUENCE_NUMBER="long",
        _SCHEMA_ID="long",
        _LEVEL="int",
        _EXTRA_FILES=strings,
        _CREATION_TIME=["null", {"type": "long", "logicalType": "timestamp-millis"}],
        _DELETE_ROW_COUNT=["null", "long"],
        _EMBEDDED_FILE_INDEX=["null", "bytes"],
        _FILE_SOURCE=["null", "int"],
        _VALUE_STATS_COLS=["null", strings],
        _EXTERNAL_PATH=["null", "string"],
        _FIRST_ROW_ID=["null", "long"],
        _WRITE_COLS=["null", strings],
    )
    entry = record(
        "record", _VERSION="int", _KIND="int", _PARTITION="bytes", _BUCKET="int", _TOTAL_BUCKETS="int", _FILE=file
    )
    return {**entry, "namespace": "org.apache.paimon.avro.generated"}


def make_entries(count: int) -> list[dict[str, Any]]:
    """Entries as an append table with one string partition and nine columns has them."""
    pick = random.Random(7)
    optional = ("_EMBEDDED_FILE_INDEX", "_VALUE_STATS_COLS", "_EXTERNAL_PATH", "_FIRST_ROW_ID", "_WRITE_COLS")
    entries = []
    for i in range(count):
        counts = [pick.choice((0, pick.randrange(1000))) for _ in range(9)]
        file = {
            "_FILE_NAME": f"data-{uuid.UUID(int=pick.getrandbits(128))}-{i}.parquet",
            "_FILE_SIZE": pick.randrange(10**8),
            "_ROW_COUNT": pick.randrange(10**6),
            "_MIN_KEY": bytes(12),
            "_MAX_KEY": bytes(12),
            "_KEY_STATS": {"_MIN_VALUES": bytes(12), "_MAX_VALUES": bytes(12), "_NULL_COUNTS": []},
            "_VALUE_STATS": {
                "_MIN_VALUES": bytes(60) + pick.randbytes(64),
                "_MAX_VALUES": bytes(60) + pick.randbytes(64),
                "_NULL_COUNTS": counts,
            },
            "_MIN_SEQUENCE_NUMBER": i,
            "_MAX_SEQUENCE_NUMBER": i + 10,
            "_SCHEMA_ID": 0,
            "_LEVEL": 0,
            "_EXTRA_FILES": [],
            "_CREATION_TIME": 1_700_000_000_000 + i,
            "_DELETE_ROW_COUNT": 0,
            "_FILE_SOURCE": 0,
            **dict.fromkeys(optional),
        }
        day = bytes(12) + f"{i // 100:08}".encode()
        entries.append(
            {"_VERSION": 2, "_KIND": 0, "_PARTITION": day, "_BUCKET": 0, "_TOTAL_BUCKETS": -1, "_FILE": file}
        )
    return entries


def best_ms(call: Callable[[], object], times: int = 7) -> float:
    """The shortest of several runs, in milliseconds."""
    runs = []
    for _ in range(times):
        begin = time.perf_counter()
        call()
        runs.append(time.perf_counter() - begin)
    return round(min(runs) * 1e3, 2)


def main() -> None:
    """Measure and print."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    begin = time.perf_counter()
    compiled = load_kernels()
    load_ms = round((time.perf_counter() - begin) * 1e3)
    schema = entry_schema()
    parsed = fastavro.parse_schema(schema)
    entries = make_entries(count)

    def write_peer() -> bytes:
        out = io.BytesIO()
        fastavro.writer(out, parsed, entries, codec="zstandard", codec_compression_level=1)
        return out.getvalue()

    data = write_peer()
    array = decode(data, path="manifest")
    ours = encode(array, schema)
    assert decode(ours, path="manifest").equals(array)

    def in_threads() -> None:
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda _: decode(ours, path="manifest"), range(8)))

    peer_decode, peer_encode = best_ms(lambda: list(fastavro.reader(io.BytesIO(data))), 3), best_ms(write_peer, 3)
    times = {
        "decode_all": (best_ms(lambda: decode(data, path="manifest")), peer_decode),
        "decode_own_file": (best_ms(lambda: decode(ours, path="manifest")), peer_decode),
        "decode_projected": (best_ms(lambda: decode(ours, path="manifest", columns=PLAN_COLUMNS)), peer_decode),
        "decode_8_files_in_4_threads": (best_ms(in_threads), round(8 * peer_decode, 2)),
        "encode": (best_ms(lambda: encode(array, schema)), peer_encode),
    }
    report = {
        "benchmark": "avro_codec",
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
        "entries": count,
        "file_bytes": len(ours),
        "compiled": compiled,
        "load_kernels_ms": load_ms,
        "results": {
            name: {"ms": mine, "fastavro_ms": peer, "times_faster": round(peer / mine, 1)}
            for name, (mine, peer) in times.items()
        },
    }
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
