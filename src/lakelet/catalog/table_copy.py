"""Copy rows of one version of a table into another table of any layout, in one commit.

copy_table(lake, "shop.orders", "archive.orders", where="dt < '2026-01-01'")
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from lakelet.catalog.lake import Lake
from lakelet.errors import InvalidError
from lakelet.model.schema import TableSchema
from lakelet.model.snapshot import Snapshot
from lakelet.model.types import Field
from lakelet.options import PATH
from lakelet.table import Table


@dataclass(frozen=True, slots=True)
class Copied:
    """The snapshot that holds the copied rows (None: there were none), and the number of rows."""

    snapshot: Snapshot | None
    rows: int


def copy_table(
    lake: Lake,
    source: Table,
    target: str,
    *,
    where: str | pc.Expression | None = None,
    columns: Sequence[str] | None = None,
    version: int | str | None = None,
    mode: str = "append",
) -> Copied:
    """Copy the rows that match, all columns or these; a missing target is created like the source."""
    scan = source.scan(columns, where, version=version)
    create_like(lake, target, scan.schema, [scan.schema.field(name) for name in scan.columns])
    rows = 0

    def counted() -> Iterator[pa.RecordBatch]:
        nonlocal rows
        for batch in scan.to_batches():
            rows += batch.num_rows
            yield batch

    stream = pa.RecordBatchReader.from_batches(scan.arrow_schema, counted())
    snapshot = lake.table(target).write(stream, mode=mode)
    return Copied(snapshot, rows)


def create_like(lake: Lake, name: str, schema: TableSchema, fields: Sequence[Field]) -> None:
    """Create a table with keys, options and comment of a schema, and these of its columns, unless it exists."""
    if lake.table_exists(name):
        return
    names = {field.name for field in fields}
    missing = [key for key in (*schema.primary_keys, *schema.partition_keys) if key not in names]
    if missing:
        raise InvalidError(
            f"{name} cannot be made like the source without its key columns {', '.join(dict.fromkeys(missing))}: "
            "copy them as well, or make the table first"
        )
    lake.create_database(name.split(".", 1)[0], if_not_exists=True)
    lake.create_table(
        name,
        fields,
        primary_key=schema.primary_keys,
        partitioned_by=schema.partition_keys,
        options={key: text for key, text in schema.options.items() if key != PATH.name},
        comment=schema.comment,
        if_not_exists=True,
    )
