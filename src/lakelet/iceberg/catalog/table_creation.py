"""Create and drop Iceberg tables: columns and partition terms of the model to a table of a catalog."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.table import TableProperties
from pyiceberg.table.refs import MAIN_BRANCH
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER

from lakelet.errors import CommitUnknownError, CorruptionError, InvalidError, NotFoundError
from lakelet.events import StateUnknown, TableCreated, publish
from lakelet.iceberg.catalog.iceberg_catalog import IcebergCatalog
from lakelet.iceberg.catalog.library_errors import first_line, lakelet_errors
from lakelet.iceberg.commit.outcomes import Outcome, outcome_of
from lakelet.iceberg.schema.column_types import COMMENT_PROPERTY, iceberg_schema
from lakelet.iceberg.schema.partition_terms import PartitionTerm, new_spec
from lakelet.iceberg.table import IcebergTable
from lakelet.iceberg.trust.lake_files import LakeFileIO
from lakelet.iceberg.trust.table_classes import check_new_properties
from lakelet.model.types import Field

FORMAT_VERSION = TableProperties.FORMAT_VERSION
# The versions that can be written.
VERSIONS = ("1", "2")
_GC_ENABLED = "gc.enabled"


@dataclass(frozen=True, slots=True)
class TablePlan:
    """A table to create. `properties` are the table's, of which `format-version` is the version of its metadata."""

    fields: Sequence[Field]
    partitioned_by: Sequence[PartitionTerm] = ()
    properties: Mapping[str, str] | None = None
    comment: str | None = None
    location: str | None = None


def create_table(catalog: IcebergCatalog, name: str, plan: TablePlan) -> IcebergTable:
    """Creates the table `database.table`; AlreadyExistsError where there is one."""
    properties = dict(plan.properties or {})
    version = properties.setdefault(FORMAT_VERSION, "2")
    check_version(version)
    if plan.comment is not None:
        properties[COMMENT_PROPERTY] = plan.comment
    where = f"table {catalog.name}.{name}"
    check_new_properties(where, properties, catalog.properties)
    default = next((field.name for field in plan.fields if field.default is not None), None)
    if default is not None:
        raise InvalidError(f"{where}: column {default!r} has a default, which needs format version 3 of Iceberg")
    if plan.location is not None and "://" in plan.location and {"#", "?"} & set(plan.location):
        # pyiceberg cuts an address there, and would mix up the files of tables.
        raise InvalidError(f"{where}: location {plan.location!r}: an address cannot have # or ? in it")
    with lakelet_errors(where):
        schema = iceberg_schema(plan.fields, format_version=int(version))
        spec, library = new_spec(schema, plan.partitioned_by), catalog.library
        try:
            made = library.create_table(
                name,
                schema,
                location=plan.location,
                partition_spec=spec,
                sort_order=UNSORTED_SORT_ORDER,
                properties=properties,
            )
        except Exception as error:
            if isinstance(library, RestCatalog) and outcome_of(error, library) is Outcome.UNKNOWN:
                publish(StateUnknown(catalog.table_name(name), MAIN_BRANCH, "creation"))
                raise CommitUnknownError(
                    f"{where}: the catalog did not say whether the table was made: {first_line(error)}"
                ) from error
            raise
    table = IcebergTable(catalog.name, made, catalog.source)
    publish(TableCreated(table.table_name, MAIN_BRANCH))
    return table


def check_version(version: str) -> None:
    """InvalidError unless tables of this format version can be written."""
    if version not in VERSIONS:
        raise InvalidError(f"'{FORMAT_VERSION}' = {version!r}: versions {' and '.join(VERSIONS)} are written")


def drop_table(catalog: IcebergCatalog, name: str) -> bool:
    """Drops a table from its catalog, with its files where table and catalog allow that; returns whether they were removed."""
    try:
        table = catalog.table(name)
        properties, io = table.properties, table.library.io
        if isinstance(io, LakeFileIO) and not io.may_remove(f"{table.location}/any"):
            properties = {**properties, _GC_ENABLED: "false"}
    except (CorruptionError, NotFoundError):
        if not catalog.table_exists(name):
            raise
        # Without its metadata its files are unknown.
        properties = {_GC_ENABLED: "false"}
    return catalog.drop_table(name, purge=properties.get(_GC_ENABLED, "true").lower() != "false")
