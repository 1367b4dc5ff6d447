"""deltalake's side: a load and a merge."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from benchmarks.contender import repeated, serve, timed
from benchmarks.keyed.keyed_rows import SCHEMA, half_new_ids, rows_of, scattered


def load(folder: str, rows: int) -> dict[str, Any]:
    """A table of one load."""
    with timed() as timer:
        write_deltalake(folder, pa.RecordBatchReader.from_batches(SCHEMA, scattered(rows, rows, 0)))
    return timer.taken


def upsert(folders: list[str], rows: int, count: int) -> dict[str, Any]:
    """A merge by id into copies of one table, from opening it, and a read of all rows after it."""
    data = rows_of(half_new_ids(rows, count), 1)

    def merge(number: int) -> None:
        merging = DeltaTable(folders[number]).merge(
            data, "target.id = source.id", source_alias="source", target_alias="target"
        )
        merging.when_matched_update_all().when_not_matched_insert_all().execute()

    taken = repeated(merge, len(folders) - 1)
    with timed() as timer:
        found = DeltaTable(folders[-1]).to_pyarrow_table().num_rows
    return {**taken, "read_seconds": timer.taken["seconds"], "rows": found}


if __name__ == "__main__":
    serve(load, upsert)
