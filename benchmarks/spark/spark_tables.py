"""The tables and Parquet files that Spark reads in benchmarks, made without Spark."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import lakelet
from benchmarks.append.rows import BATCH_ROWS
from benchmarks.append.rows import SCHEMA as PLAIN_SCHEMA
from benchmarks.append.rows import batch as plain_batch
from lakelet.format.index import deletion_vectors
from lakelet.format.manifest.index_manifest import encode_index_manifest
from lakelet.format.manifest.manifest_columns import EMPTY_ROW
from lakelet.format.metadata.snapshot_json import encode_snapshot
from lakelet.model.data_file import DeletionVectorRange, IndexFile
from lakelet.model.manifest import EntryKind, IndexManifestEntry
from lakelet.table import Table

PLAIN = "bench.plain"
KEYED = "bench.keyed"
MANY = "bench.many"
SEED = 20261115


def make_plain(folder: str, rows: int, files: int) -> Table:
    """An append table of a number of files."""
    table = _database(folder).create_table(PLAIN, PLAIN_SCHEMA, options={"write-only": "true"})
    each = -(-rows // files)
    first = 0
    for start in range(0, rows, each):
        count = min(each, rows - start)
        sizes = [min(BATCH_ROWS, count - at) for at in range(0, count, BATCH_ROWS)]
        table.write(pa.Table.from_batches([plain_batch(first + at, size) for at, size in enumerate(sizes)]))
        first += len(sizes)
    return table


def make_many_files(folder: str, files: int) -> Table:
    """A table of as many partitions as files, all small, by one commit."""
    schema = pa.schema([("part", pa.int32()), ("id", pa.int64()), ("price", pa.float64())])
    table = _database(folder).create_table(MANY, schema, partitioned_by=["part"])
    parts = np.repeat(np.arange(files, dtype=np.int32), 2)
    table.write(pa.table([parts, np.arange(2 * files), np.arange(2 * files) / 2], schema=schema))
    return table


def delete_share(table: Table, share: float) -> int:
    """Deletes a share of every file's rows by deletion vectors in the newest snapshot, as other writers would; how many."""
    home, snapshot = table.home, table.latest_snapshot()
    assert snapshot is not None
    random = np.random.default_rng(SEED)
    data, places = b"\x01", []
    for _, file in table.files():
        gone = max(1, round(file.row_count * share))
        vector = deletion_vectors.encode(np.sort(random.choice(file.row_count, gone, replace=False)))
        places.append(DeletionVectorRange(file.name, len(data), len(vector) - 8, gone))
        data += vector
    home.store.put(home.paths.index("index-bench-0"), data)
    index = IndexFile("DELETION_VECTORS", "index-bench-0", len(data), len(places), tuple(places))
    entry = IndexManifestEntry(EntryKind.ADD, EMPTY_ROW, 0, index)
    home.store.put(home.paths.manifest("index-manifest-bench-0"), encode_index_manifest([entry], codec="null"))
    changed = replace(snapshot, index_manifest="index-manifest-bench-0")
    home.store.put(home.paths.snapshot(snapshot.id), encode_snapshot(changed))
    return sum(place.cardinality or 0 for place in places)


def make_parquet(folder: str, batches: Iterable[pa.RecordBatch], schema: pa.Schema, rows_per_file: int) -> None:
    """Bare Parquet files of about a number of rows, compressed as Lakelet's are."""
    Path(folder).mkdir(parents=True)
    writer, written, number = None, 0, 0
    for batch in batches:
        if writer is None:
            path = Path(folder, f"part-{number:03}.parquet")
            writer = pq.ParquetWriter(path, schema, compression="zstd", compression_level=1)
        writer.write_batch(batch)
        written += batch.num_rows
        if written >= rows_per_file:
            writer.close()
            writer, written, number = None, 0, number + 1
    if writer is not None:
        writer.close()


def paths_of(folder: str, table: Table) -> list[str]:
    """The table's files as Spark is told them."""
    return [str(Path(folder, path)) for path, _ in table.files()]


def _database(folder: str) -> lakelet.Lake:
    lake = lakelet.connect(folder)
    lake.create_database("bench")
    return lake
