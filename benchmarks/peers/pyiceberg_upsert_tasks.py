"""pyiceberg's side of the upsert, apart from its plan, whose process is not to load a catalog."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog

from benchmarks.contender import repeated, serve, timed
from benchmarks.keyed.keyed_rows import half_new_ids, rows_of, scattered


def load(folder: str, rows: int) -> dict[str, Any]:
    """A table of one load."""
    Path(folder).mkdir(parents=True)
    catalog = _catalog(folder)
    catalog.create_namespace("bench")
    data = pa.Table.from_batches(scattered(rows, rows, 0))
    target = catalog.create_table("bench.keyed", data.schema)
    with timed() as timer:
        target.append(data)
    return {**timer.taken, "metadata": target.metadata_location}


def upsert(folder: str, metadata: str, repeats: int, rows: int, count: int) -> dict[str, Any]:
    """An upsert by id into the loaded table, under a new name each time, from opening it, and a read of all rows after it."""
    data = rows_of(half_new_ids(rows, count), 1)
    catalog = _catalog(folder)
    first = len(catalog.list_tables("bench"))
    names = [f"bench.copy{first + number}" for number in range(repeats + 1)]
    for name in names:
        catalog.register_table(name, metadata)
    taken = repeated(lambda number: catalog.load_table(names[number]).upsert(data, join_cols=["id"]), repeats)
    with timed() as timer:
        found = catalog.load_table(names[-1]).scan().to_arrow().num_rows
    return {**taken, "read_seconds": timer.taken["seconds"], "rows": found}


def _catalog(folder: str) -> SqlCatalog:
    return SqlCatalog("bench", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}")


if __name__ == "__main__":
    serve(load, upsert)
