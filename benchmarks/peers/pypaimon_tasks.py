"""pypaimon's side: its Python code, and its native library (pypaimon-rust) called directly.

Runs in the environment of pypaimon (`make setup-conformance`), whose pyarrow is an old one. The native side is called
directly because pypaimon falls back to Python silently where the library does not support a table.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pypaimon import CatalogFactory, Schema
from pypaimon.common.predicate import Predicate
from pypaimon_rust.datafusion import PaimonCatalog

from benchmarks.append.rows import SCHEMA, table
from benchmarks.contender import repeated, serve, timed
from benchmarks.keyed.keyed_rows import KEYS, load_ids, rows_of
from benchmarks.keyed.keyed_rows import SCHEMA as KEYED_SCHEMA

TABLE = "bench.rows"
KEYED_TABLE = "bench.keyed"


def write(rows: int, folder: str, native: bool) -> dict[str, Any]:
    """A new table's first write."""
    data = table(rows)
    catalog = CatalogFactory.create({"warehouse": folder})
    catalog.create_database("bench", True)
    catalog.create_table(TABLE, Schema.from_pyarrow_schema(SCHEMA), False)
    target = _open(folder, native)
    with timed() as timer:
        _write(target, data, native)
    return {**timer.taken}


def read(folder: str, native: bool) -> dict[str, Any]:
    """All rows of a table, from opening it."""
    with timed() as timer:
        data = _read(_open(folder, native), native)
    return {**timer.taken, "rows": data.num_rows}


def write_keyed(rows: int, key: str, buckets: int, folder: str, native: bool, repeats: int) -> dict[str, Any]:
    """The first write of a new primary-key table."""
    data = rows_of(load_ids(rows), 0)
    fields = [field.with_nullable(False) if field.name in KEYS[key] else field for field in KEYED_SCHEMA]
    schema = Schema.from_pyarrow_schema(
        pa.schema(fields), primary_keys=KEYS[key], options={"bucket": str(buckets), "file.compression.zstd-level": "1"}
    )
    data = data.cast(pa.schema(fields))
    tables = []
    for number in range(repeats + 1):
        catalog = CatalogFactory.create({"warehouse": f"{folder}/{number}"})
        catalog.create_database("bench", True)
        catalog.create_table(KEYED_TABLE, schema, False)
        tables.append(_open(f"{folder}/{number}", native, KEYED_TABLE))
    return repeated(lambda number: _write(tables[number], data, native), repeats)


def read_keyed(folder: str, columns: list[str] | None, native: bool, repeats: int) -> dict[str, Any]:
    """The rows of a primary-key table, from opening it."""
    counts: list[int] = []
    taken = repeated(
        lambda _: counts.append(_read(_open(folder, native, KEYED_TABLE), native, columns).num_rows), repeats
    )
    return {**taken, "rows": counts[-1]}


def plan(folder: str, column: str, value: str, native: bool) -> dict[str, Any]:
    """The plan of a scan with an equality filter, from opening the table."""
    with timed() as timer:
        target = _open(folder, native)
        builder = target.new_read_builder()
        if native:
            builder = builder.with_filter({"method": "equal", "field": column, "literals": [value]})
        else:
            index = [field.name for field in target.table_schema.fields].index(column)
            builder = builder.with_filter(Predicate("equal", index, column, [value]))
        splits = builder.new_scan().plan().splits()
    rows = sum(split.row_count() if native else split.row_count for split in splits)
    return {**timer.taken, "rows": rows}


def _open(folder: str, native: bool, name: str = TABLE) -> Any:
    if native:
        return PaimonCatalog({"warehouse": folder}).get_table(name)
    return CatalogFactory.create({"warehouse": folder}).get_table(name)


def _write(target: Any, data: pa.Table, native: bool) -> None:
    builder = target.new_batch_write_builder()
    writer, commit = builder.new_write(), builder.new_commit()
    for batch in data.to_batches():
        writer.write_arrow_batch(batch) if not native else writer.write_arrow(batch)
    commit.commit(writer.prepare_commit())
    writer.close()


def _read(target: Any, native: bool, columns: list[str] | None = None) -> pa.Table:
    builder = target.new_read_builder()
    if columns is not None:
        builder = builder.with_projection(columns)
    splits = builder.new_scan().plan().splits()
    if native:
        return pa.Table.from_batches(builder.new_read().read(splits))
    return builder.new_read().to_arrow(splits)


if __name__ == "__main__":
    serve(write, read, plan, write_keyed, read_keyed)
