"""Uses of pyiceberg's private API, each behind a function here, to be checked on every upgrade.

Subclasses that override pyiceberg's methods are defined where they are used: `commit/snapshot/manifest_writer`,
`write/partition_folder` and `trust/rest_catalog`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, cast
from weakref import WeakKeyDictionary

from pyiceberg.catalog import Catalog, MetastoreCatalog, _import_catalog
from pyiceberg.io import FileIO
from pyiceberg.manifest import ManifestWriter
from pyiceberg.schema import Schema
from pyiceberg.table import CreateTableTransaction, StagedTable, Table, Transaction
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.update import TableRequirement, TableUpdate
from pyiceberg.transforms import UnknownTransform
from pyiceberg.typedef import Identifier, Properties
from pyiceberg.types import NestedField

LoadFileIO: TypeAlias = Callable[..., FileIO]
StageTable: TypeAlias = Callable[
    [Table | None, Identifier, tuple[TableRequirement, ...], tuple[TableUpdate, ...]], StagedTable
]


def import_catalog(name: str, class_name: str, properties: Properties) -> Catalog | None:
    """A catalog by its class name; None where it cannot be imported."""
    return _import_catalog(name, class_name, properties)


def replace_file_io(catalog: Catalog, load: LoadFileIO) -> None:
    """Makes a catalog create its FileIO through `load`."""
    catalog._load_file_io = load  # type: ignore[method-assign]


def wrap_staging(catalog: MetastoreCatalog, wrap: Callable[[StageTable], StageTable]) -> None:
    """Wraps the method by which a catalog stages the metadata of each commit."""
    catalog._update_and_stage_table = wrap(catalog._update_and_stage_table)  # type: ignore[assignment, method-assign]


def delete_old_metadata(catalog: Catalog, io: FileIO, before: TableMetadata, after: TableMetadata) -> None:
    """Removes old metadata files after a commit, as the table's properties say."""
    catalog._delete_old_metadata(io, before, after)


def apply_changes(
    transaction: Transaction, updates: tuple[TableUpdate, ...], requirements: tuple[TableRequirement, ...]
) -> None:
    """Adds changes to an uncommitted transaction."""
    transaction._apply(updates, requirements)


def staged_table(transaction: CreateTableTransaction) -> Table:
    """The table that a transaction would create, with the identity and the location that its catalog gave it."""
    return transaction._table


def fields_by_id(schema: Schema) -> Mapping[int, NestedField]:
    """All columns of a schema, nested ones too."""
    return schema._lazy_id_to_field


def parents_by_id(schema: Schema) -> Mapping[int, int]:
    """The parent of each nested column."""
    return schema._lazy_id_to_parent


def unknown_transform_name(transform: UnknownTransform[Any, Any]) -> str:
    """The name in metadata of a transform that pyiceberg does not know."""
    return transform._transform


def wrap_entry_writer(writer: ManifestWriter, wrap: Callable[[Any], object]) -> None:
    """Wraps the Avro writer by which an open manifest writes its entries."""
    writer._writer = cast(Any, wrap(writer._writer))


def table_location(catalog: Catalog, name: Identifier) -> str | None:
    """The metadata location of a table in the database of an SQL catalog; None where there is no such table."""
    own = cast(Any, catalog)
    query = _LOCATION_QUERIES.get(catalog)
    if query is None:
        query = _LOCATION_QUERIES[catalog] = _location_query(own)
    wanted = {"catalog": own.name, "namespace": Catalog.namespace_to_string(name[:-1]), "table": name[-1]}
    with own.engine.connect() as connection:
        found: str | None = connection.scalar(query, wanted)
    return found


# Making such a statement takes longer than running it.
_LOCATION_QUERIES: WeakKeyDictionary[Catalog, Any] = WeakKeyDictionary()


def _location_query(catalog: Any) -> Any:
    from pyiceberg.catalog.sql import IcebergTables  # noqa: PLC0415 - it needs a driver that need not be there.
    from sqlalchemy import bindparam, select  # noqa: PLC0415

    query = select(IcebergTables.metadata_location).where(
        IcebergTables.catalog_name == bindparam("catalog"),
        IcebergTables.table_namespace == bindparam("namespace"),
        IcebergTables.table_name == bindparam("table"),
    )
    of_kind = catalog._iceberg_type_filter()
    return query if of_kind is None else query.where(of_kind)
