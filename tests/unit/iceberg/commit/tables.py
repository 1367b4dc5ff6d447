"""Iceberg tables in a SQLite catalog for tests of commits, and catalogs that fail when they are told to."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyiceberg.catalog import Catalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import Transform, parse_transform

from lakelet.iceberg.catalog.iceberg_catalog import IcebergCatalog
from lakelet.iceberg.table import IcebergTable
from lakelet.iceberg.transaction import IcebergTransaction, MadeSnapshot
from lakelet.iceberg.write.table_writer import TableWriter

NAME = "shop.orders"


def new_catalog(folder: Path) -> IcebergCatalog:
    """A catalog of its own in a folder."""
    properties = {"type": "sql", "uri": f"sqlite:///{folder}/catalog.db", "warehouse": f"file://{folder}"}
    catalog = IcebergCatalog("ice", properties)
    catalog.create_namespace("shop", if_not_exists=True)
    return catalog


def new_table(
    catalog: IcebergCatalog,
    columns: pa.Schema,
    partitions: Mapping[str, str] | None = None,
    *,
    name: str = NAME,
    properties: Mapping[str, str] | None = None,
) -> IcebergTable:
    """A table with partitions such as {"day": "identity"}."""
    catalog.library.create_table(name, columns, properties=dict(properties or {}))
    table = catalog.table(name)
    if partitions:
        set_partitions(table, partitions)
    return catalog.table(name)


def set_partitions(table: IcebergTable, partitions: Mapping[str, str]) -> None:
    """Lets the table be partitioned by these alone from now on."""
    live = table.reloaded().library
    with live.update_spec() as update:
        for field in live.spec().fields:
            update.remove_field(field.name)
        for column, transform in partitions.items():
            update.add_field(column, _transform(transform), f"{column}_{transform.split('[')[0]}_{len(live.specs())}")


def _transform(text: str) -> Transform[Any, Any]:
    return parse_transform(text)


def write(
    table: IcebergTable,
    rows: pa.Table | list[dict[str, object]],
    mode: str = "append",
    partition: Mapping[str, object] | None = None,
    **options: Any,
) -> MadeSnapshot | None:
    """One insert from begin to end."""
    transaction = begin(table, rows, mode, partition, **options)
    return transaction.finish_insert()


_tasks = itertools.count()


def begin(
    table: IcebergTable,
    rows: pa.Table | list[dict[str, object]],
    mode: str = "append",
    partition: Mapping[str, object] | None = None,
    **options: Any,
) -> IcebergTransaction:
    """An insert whose files are written and not committed."""
    table = table.reloaded()
    transaction = IcebergTransaction(table, **options)
    plan = transaction.begin_insert(mode, partition)
    schema = table.metadata.schema().as_arrow()
    data = rows if isinstance(rows, pa.Table) else pa.Table.from_pylist(rows, schema)
    writer = TableWriter(plan, str(next(_tasks)))
    for batch in data.to_batches():
        writer.write(batch)
    transaction.update_commit_data(writer.close())
    return transaction


def rows_of(table: IcebergTable, branch: str | None = None) -> list[dict[str, object]]:
    """All rows as pyiceberg reads them, in order."""
    library = table.reloaded().library
    scan = library.scan() if branch is None else library.scan().use_ref(branch)
    return sorted(scan.to_arrow().to_pylist(), key=repr)


def files_below(folder: Path) -> set[str]:
    """All data files and metadata files but those of the catalog."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file() and path.suffix != ".db"}


def check_sums(table: IcebergTable, branch: str = "main") -> None:
    """The summary's totals are those of the files there are."""
    library = table.reloaded().library
    snapshot = library.metadata.snapshot_by_name(branch)
    assert snapshot is not None
    assert snapshot.summary is not None
    files = [
        entry.data_file for one in snapshot.manifests(library.io) for entry in one.fetch_manifest_entry(library.io)
    ]
    data = [file for file in files if file.content == 0]
    assert int(snapshot.summary["total-data-files"] or 0) == len(data)
    assert int(snapshot.summary["total-records"] or 0) == sum(file.record_count for file in data)
    assert int(snapshot.summary["total-files-size"] or 0) == sum(file.file_size_in_bytes for file in files)


class CatalogHooks:
    """A catalog whose `commit_table` first or afterwards does what it is told, once for every element of the list."""

    def __init__(self, catalog: IcebergCatalog) -> None:
        self.library: Catalog = catalog.library
        self.calls = 0
        self.before: list[Callable[[], None] | None] = []
        self.after: list[Callable[[], None] | None] = []
        self._commit = catalog.library.commit_table
        self.library.commit_table = self._hooked  # type: ignore[method-assign]

    def _hooked(self, table: Any, requirements: Any, updates: Any) -> Any:
        self.calls += 1
        before = self.before.pop(0) if self.before else None
        after = self.after.pop(0) if self.after else None
        if before is not None:
            before()
        response = self._commit(table, requirements, updates)
        if after is not None:
            after()
        return response


def raising(error: BaseException) -> Callable[..., None]:
    """A hook that raises."""

    def hook(*_: object) -> None:
        raise error

    return hook


def spec_of(schema: Schema, **transforms: str) -> PartitionSpec:
    """A spec with one field for each column."""
    return PartitionSpec(
        *(
            PartitionField(schema.find_field(column).field_id, 1000 + place, _transform(text), f"{column}_{place}")
            for place, (column, text) in enumerate(transforms.items())
        )
    )
