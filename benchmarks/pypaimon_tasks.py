"""pypaimon's side: its Python code, and its native library (pypaimon-rust) called directly.

Runs in the environment of pypaimon (`make setup-conformance`), whose pyarrow is an old one. The native side is called
directly because pypaimon falls back to Python without a word where the library does not support a table.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from contender import serve, timed
from pypaimon import CatalogFactory, Schema
from pypaimon.common.predicate import Predicate
from pypaimon_rust.datafusion import PaimonCatalog
from rows import SCHEMA, table

TABLE = "bench.rows"


def write(rows: int, folder: str, native: bool) -> dict[str, Any]:
    """A new table's first write."""
    data = table(rows)
    catalog = CatalogFactory.create({"warehouse": folder})
    catalog.create_database("bench", True)
    catalog.create_table(TABLE, Schema.from_pyarrow_schema(SCHEMA), False)
    target = _open(folder, native)
    with timed() as timer:
        builder = target.new_batch_write_builder()
        writer, commit = builder.new_write(), builder.new_commit()
        for batch in data.to_batches():
            writer.write_arrow_batch(batch) if not native else writer.write_arrow(batch)
        commit.commit(writer.prepare_commit())
        writer.close()
    return {**timer.taken}


def read(folder: str, native: bool) -> dict[str, Any]:
    """All rows of a table, from opening it."""
    with timed() as timer:
        builder = _open(folder, native).new_read_builder()
        splits = builder.new_scan().plan().splits()
        if native:
            data = pa.Table.from_batches(builder.new_read().read(splits))
        else:
            data = builder.new_read().to_arrow(splits)
    return {**timer.taken, "rows": data.num_rows}


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


def _open(folder: str, native: bool) -> Any:
    if native:
        return PaimonCatalog({"warehouse": folder}).get_table(TABLE)
    return CatalogFactory.create({"warehouse": folder}).get_table(TABLE)


if __name__ == "__main__":
    serve(write, read, plan)
