"""Rows into the partitions of an Iceberg table, by Lakelet's writers and by pyiceberg's `append`, in the same catalog."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from pyiceberg.transforms import IdentityTransform

import lakelet
from benchmarks.append.rows import batches
from benchmarks.contender import serve, timed
from lakelet.iceberg.catalog.iceberg_catalog import IcebergCatalog
from lakelet.iceberg.transaction import IcebergTransaction
from lakelet.iceberg.write.local_insert import insert_batches

_TABLE = "bench.rows"
_SEED = 7


def _rows(rows: int, partitions: int) -> pa.Table:
    """The rows of all benchmarks, spread evenly over the partitions."""
    table = pa.Table.from_batches(list(batches(rows)))
    part = np.random.default_rng(_SEED).integers(0, partitions, rows)
    return table.append_column("part", pa.array(part, pa.int32()))


def _catalog(folder: str, schema: pa.Schema) -> IcebergCatalog:
    catalog = lakelet.connect(folder).catalogs.open("iceberg")
    catalog.create_namespace("bench")
    with catalog.library.create_table_transaction(_TABLE, schema) as change, change.update_spec() as spec:
        spec.add_field("part", IdentityTransform())
    return catalog


def ours(rows: int, partitions: int, folder: str) -> dict[str, Any]:
    """Lakelet's writers and commit."""
    table = _rows(rows, partitions)
    catalog = _catalog(folder, table.schema)
    with timed() as timer:
        transaction = IcebergTransaction(catalog.table(_TABLE))
        made = insert_batches(transaction, transaction.begin_insert(), table.to_batches())
    assert made is not None
    return {**timer.taken, "files": made.added_files, "rows": made.added_rows}


def append(rows: int, partitions: int, folder: str) -> dict[str, Any]:
    """pyiceberg's `append`."""
    table = _rows(rows, partitions)
    catalog = _catalog(folder, table.schema)
    with timed() as timer:
        catalog.library.load_table(_TABLE).append(table)
    found = catalog.library.load_table(_TABLE).inspect.files()
    return {**timer.taken, "files": found.num_rows, "rows": sum(found["record_count"].to_pylist())}


def bounded(rows: int, partitions: int, folder: str) -> dict[str, Any]:
    """Lakelet's writers, with rows made while they are written: what remains is the writer's memory."""
    first = _rows(1, partitions)
    catalog = _catalog(folder, first.schema)
    generator = np.random.default_rng(_SEED)
    with timed() as timer:
        transaction = IcebergTransaction(catalog.table(_TABLE))
        made = insert_batches(
            transaction,
            transaction.begin_insert(),
            (
                batch.append_column("part", pa.array(generator.integers(0, partitions, batch.num_rows), pa.int32()))
                for batch in batches(rows)
            ),
        )
    assert made is not None
    return {**timer.taken, "files": made.added_files, "rows": made.added_rows}


if __name__ == "__main__":
    serve(ours, append, bounded)
