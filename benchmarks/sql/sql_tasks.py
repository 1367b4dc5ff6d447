"""SQL over Lakelet's tables and over the same files by DuckDB alone, in one process, turn by turn."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

import lakelet
from benchmarks.contender import serve, timed
from benchmarks.sql.tpch_queries import KEYS, QUERIES

SHARE = 10
"""One row in this many is written again where rows need a merge."""


def make(folder: str, scale: float, buckets: int) -> dict[str, Any]:
    """The tables of TPC-H, once compacted and once with a tenth of the rows written again."""
    source = Path(folder, "source")
    generator = str(Path(sys.executable).with_name("tpchgen-cli"))
    subprocess.run(
        [generator, "parquet", "-s", str(scale), "--output-dir", str(source)], check=True, capture_output=True
    )
    lake = lakelet.connect(f"{folder}/lake")
    rows = 0
    for database in ("plain", "merged"):
        lake.create_database(database)
    for name, key in KEYS.items():
        read = pq.ParquetFile(source / f"{name}.parquet")
        schema = _plain(read.schema_arrow)
        options = {"bucket": str(buckets if read.metadata.num_rows > 100_000 else 1)}
        for database in ("plain", "merged"):
            table = lake.create_table(f"{database}.{name}", schema, primary_key=key, options=options)
            table.write(batch.cast(schema) for batch in read.iter_batches(65_536))
            table.compact(full=True)
        again = lake.table(f"merged.{name}")
        again.set_options({"write-only": "true"})
        again.write(pa.Table.from_batches(batch.cast(schema) for batch in read.iter_batches(65_536)).take(_tenth(read)))
        rows += read.metadata.num_rows
    return {"rows": rows}


def _plain(schema: pa.Schema) -> pa.Schema:
    """Types that both sides have: no string views."""
    views = {pa.string_view(): pa.string()}
    return pa.schema([pa.field(one.name, views.get(one.type, one.type)) for one in schema])


def _tenth(read: pq.ParquetFile) -> pa.Array:
    return pa.array(range(0, read.metadata.num_rows, SHARE), pa.int64())


def turns(folder: str, repeats: int) -> dict[str, Any]:
    """Every query by each side in turn; the least time of each counts."""
    lake = lakelet.connect(f"{folder}/lake")
    alone = duckdb.connect()
    for name in KEYS:
        files = [f"{folder}/lake/{path}" for path, _ in lake.table(f"plain.{name}").files()]
        columns = ", ".join(lake.table(f"plain.{name}").schema.names)
        alone.execute(f"CREATE VIEW {name} AS SELECT {columns} FROM read_parquet({files!r})")
    sides = {
        "duckdb": lambda query: alone.sql(query).to_arrow_table(),
        "plain": lambda query: (lake.sql("USE plain"), lake.sql(query).to_arrow())[1],
        "merged": lambda query: (lake.sql("USE merged"), lake.sql(query).to_arrow())[1],
    }
    least: dict[str, list[float]] = {side: [float("inf")] * len(QUERIES) for side in sides}
    for _ in range(repeats):
        for number, query in enumerate(QUERIES):
            answers = {}
            for side, run in sides.items():
                begin = time.perf_counter()
                answers[side] = run(query)
                least[side][number] = min(least[side][number], time.perf_counter() - begin)
            for side in ("plain", "merged"):
                assert answers[side].to_pylist() == answers["duckdb"].to_pylist(), (number + 1, side)
    alone.close()
    return {
        "seconds": sum(least["plain"]),
        **{f"{side}_seconds": sum(times) for side, times in least.items()},
        **{f"{side}_times": times for side, times in least.items()},
    }


def insert(folder: str, rows: int, repeats: int) -> dict[str, Any]:
    """INSERT … SELECT of rows of one table into another, and a write of the same rows read beforehand."""
    lake = lakelet.connect(f"{folder}/lake")
    source = lake.table("plain.orders")
    schema = source.schema
    columns = [(field.name, field.type) for field in schema.fields]
    least = {"insert": float("inf"), "write": float("inf")}
    # Named in the statement below.
    data = source.scan(limit=rows).to_arrow()
    for number in range(repeats):
        for way in tuple(least):
            table = lake.create_table(
                f"merged.{way}_{number}", columns, primary_key=["o_orderkey"], options={"bucket": "2"}
            )
            with timed() as timer:
                if way == "insert":
                    lake.sql(f"INSERT INTO merged.{way}_{number} SELECT * FROM data")
                else:
                    table.write(data)
            least[way] = min(least[way], timer.taken["seconds"])
            assert table.scan().count() == data.num_rows
            lake.drop_table(f"merged.{way}_{number}")
    return {
        "seconds": least["insert"],
        "insert_seconds": least["insert"],
        "write_seconds": least["write"],
        "rows": data.num_rows,
    }


if __name__ == "__main__":
    serve(make, turns, insert)
