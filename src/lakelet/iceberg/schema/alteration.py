"""Alter an Iceberg table's columns, partitioning and properties: each change one commit in its catalog.

    current table ─ the change, applied to it ─────── updates and requirements ─────────── catalog
        └──────────────────────── retried after a concurrent commit ───────────────────────┘

A change is a function of the current schema, so that a statement means the same after a concurrent commit.
Only metadata is written. ConflictError after too many concurrent commits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from pyiceberg.schema import Schema
from pyiceberg.table import Table, TableProperties
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.name_mapping import update_mapping
from pyiceberg.table.update import (
    AddPartitionSpecUpdate,
    AddSchemaUpdate,
    AssertCurrentSchemaId,
    AssertDefaultSpecId,
    AssertLastAssignedFieldId,
    AssertLastAssignedPartitionId,
    RemovePropertiesUpdate,
    SetCurrentSchemaUpdate,
    SetDefaultSpecUpdate,
    SetPropertiesUpdate,
    TableRequirement,
    TableUpdate,
    UpgradeFormatVersionUpdate,
)
from pyiceberg.table.update.schema import TABLE_ROOT_ID
from pyiceberg.types import NestedField

from lakelet.errors import ConflictError, InvalidError
from lakelet.iceberg.catalog.library_errors import lakelet_errors
from lakelet.iceberg.catalog.table_creation import FORMAT_VERSION, check_version
from lakelet.iceberg.commit.change_events import publish_change
from lakelet.iceberg.commit.metadata_changes import look_for_change
from lakelet.iceberg.commit.outcomes import Outcome, outcome_of
from lakelet.iceberg.library_internals import apply_changes, fields_by_id, parents_by_id
from lakelet.iceberg.schema.column_types import COMMENT_PROPERTY, model_schema
from lakelet.iceberg.schema.evolution import NO_DEFAULTS, evolved_schema
from lakelet.iceberg.schema.partition_terms import PartitionTerm, changed_spec
from lakelet.iceberg.table import IcebergTable
from lakelet.iceberg.trust.table_classes import check_new_properties
from lakelet.model.schema import TableSchema

_MOST_ATTEMPTS = 8
_Staged = tuple[tuple[TableUpdate, ...], tuple[TableRequirement, ...]]
_NOTHING: _Staged = ((), ())
# The id by which Iceberg's catalogs mean the last added one.
_LAST_ADDED = -1
# Names that only look like table properties.
_NOT_PROPERTIES = {
    "location": "a table stays where its files are",
    "provider": "an Iceberg table stays one",
    "owner": "the catalog says who owns a table",
}


@dataclass(frozen=True, slots=True)
class PartitionChange:
    """Removed partition fields, each by its name or by its term, and added ones."""

    dropped: Sequence[PartitionTerm | str] = ()
    added: Sequence[PartitionTerm] = ()


def alter_columns(table: IcebergTable, change: Callable[[TableSchema], TableSchema]) -> IcebergTable | None:
    """Changes columns and the table's comment; returns the new table, None where nothing changes."""

    def stage(now: IcebergTable) -> _Staged:
        # Which columns are keys, and what properties say, is of no account to the columns of an Iceberg table.
        before = replace(model_schema(now), partition_keys=(), options={})
        after = change(before)
        if after.options:
            # An expression as a default, which tables of ours keep as an option.
            raise InvalidError(f"table {now.full_name}: {NO_DEFAULTS}")
        updates, requirements = (
            _NOTHING if after.fields == before.fields else _schema_updates(now.metadata, after, now.full_name)
        )
        if after.comment != before.comment:
            updates += (_property(COMMENT_PROPERTY, after.comment),)
        return updates, requirements

    return _committed(table, stage)


def alter_partitioning(table: IcebergTable, change: Callable[[TableSchema], PartitionChange]) -> IcebergTable | None:
    """Changes the partitioning of rows written from now on; returns the new table, None where nothing changes."""

    def stage(now: IcebergTable) -> _Staged:
        asked = change(model_schema(now))
        metadata = now.metadata
        spec = changed_spec(metadata, dropped=asked.dropped, added=asked.added)
        if spec.spec_id == metadata.default_spec_id:
            return _NOTHING
        updates: tuple[TableUpdate, ...] = (SetDefaultSpecUpdate.model_validate({"spec-id": spec.spec_id}),)
        if spec.spec_id not in metadata.specs():
            updates = (AddPartitionSpecUpdate(spec=spec), SetDefaultSpecUpdate.model_validate({"spec-id": _LAST_ADDED}))
        return updates, (
            AssertLastAssignedPartitionId.model_validate({"last-assigned-partition-id": metadata.last_partition_id}),
            AssertDefaultSpecId.model_validate({"default-spec-id": metadata.default_spec_id}),
            AssertCurrentSchemaId.model_validate({"current-schema-id": metadata.current_schema_id}),
        )

    return _committed(table, stage)


def alter_properties(table: IcebergTable, changes: Mapping[str, str | None]) -> IcebergTable | None:
    """Sets properties, or removes them where the value is None; returns the new table, None where nothing changes."""
    for key in changes:
        if key in _NOT_PROPERTIES:
            raise InvalidError(f"property '{key}' cannot be changed: {_NOT_PROPERTIES[key]}")
    check_new_properties(f"table {table.full_name}", changes, table.library.io.properties)

    def stage(now: IcebergTable) -> _Staged:
        updates: tuple[TableUpdate, ...] = ()
        there = now.metadata.properties
        for key, text in changes.items():
            if key == FORMAT_VERSION:
                updates += _upgrade(now.metadata, text)
            elif there.get(key) != text:
                updates += (_property(key, text),)
        return updates, ()

    return _committed(table, stage)


def _committed(table: IcebergTable, stage: Callable[[IcebergTable], _Staged]) -> IcebergTable | None:
    """Commits what `stage` makes of the table, retried on the new table after a concurrent commit."""
    for attempt in range(1, _MOST_ATTEMPTS + 1):
        updates, requirements = stage(table)
        if not updates:
            return None
        try:
            with lakelet_errors(f"table {table.full_name}"):
                # pyiceberg changes the table that a transaction is of; this one stays as it was loaded.
                library = table.library
                now = Table(library.name(), library.metadata, library.metadata_location, library.io, library.catalog)
                transaction = now.transaction()
                apply_changes(transaction, updates, requirements)
                try:
                    made = IcebergTable(table.catalog, transaction.commit_transaction(), table.source)
                except Exception as error:
                    if outcome_of(error, library.catalog) is not Outcome.UNKNOWN:
                        raise
                    return look_for_change(table, updates, error)
                publish_change(table, made.metadata, updates)
                return made
        except ConflictError:
            if attempt == _MOST_ATTEMPTS:
                raise
            table = table.reloaded()
    return None


def _schema_updates(metadata: TableMetadata, after: TableSchema, name: str) -> _Staged:
    schema = evolved_schema(metadata, after.fields, table=name)
    same = next((one.schema_id for one in metadata.schemas if one == schema), None)
    if same == metadata.current_schema_id:
        return _NOTHING
    updates: tuple[TableUpdate, ...] = (
        SetCurrentSchemaUpdate.model_validate({"schema-id": _LAST_ADDED if same is None else same}),
    )
    if same is None:
        updates = (AddSchemaUpdate(schema=schema), *updates)
    updates += _mapping_updates(metadata, schema, name)
    return updates, (
        AssertCurrentSchemaId.model_validate({"current-schema-id": metadata.current_schema_id}),
        AssertLastAssignedFieldId.model_validate({"last-assigned-field-id": metadata.last_column_id}),
    )


def _mapping_updates(metadata: TableMetadata, schema: Schema, name: str) -> tuple[TableUpdate, ...]:
    """The updates of the name mapping by which files without ids are read: a renamed column keeps its older names."""
    key = TableProperties.DEFAULT_NAME_MAPPING
    with lakelet_errors(f"table {name}: property '{key}'"):
        mapping = metadata.name_mapping()
        if mapping is None:
            return ()
        old, fields = set(fields_by_id(metadata.schema())), fields_by_id(schema)
        parents = parents_by_id(schema)
        changed = {number: field for number, field in fields.items() if number in old}
        added: dict[int, list[NestedField]] = {}
        for number, field in fields.items():
            parent = parents.get(number, TABLE_ROOT_ID)
            if number not in old and (parent in old or parent == TABLE_ROOT_ID):
                added.setdefault(parent, []).append(field)
        return (_property(key, update_mapping(mapping, changed, added).model_dump_json()),)


def _upgrade(metadata: TableMetadata, version: str | None) -> tuple[TableUpdate, ...]:
    if version is None:
        raise InvalidError(f"property '{FORMAT_VERSION}' cannot be taken away: every table has a format version")
    check_version(version)
    if int(version) < metadata.format_version:
        raise InvalidError(
            f"property '{FORMAT_VERSION}': a table of version {metadata.format_version} cannot go back to {version}"
        )
    if int(version) == metadata.format_version:
        return ()
    return (UpgradeFormatVersionUpdate.model_validate({"format-version": int(version)}),)


def _property(key: str, text: str | None) -> TableUpdate:
    return RemovePropertiesUpdate(removals=[key]) if text is None else SetPropertiesUpdate(updates={key: text})
