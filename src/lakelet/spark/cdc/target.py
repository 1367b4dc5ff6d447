"""The tables that events go to: found or created, and evolved on the driver before a batch is written."""

from __future__ import annotations

from collections.abc import Sequence

from lakelet.catalog import Lake
from lakelet.errors import InvalidError
from lakelet.model.schema import TableSchema
from lakelet.model.schema_change.evolution import add_column
from lakelet.model.schema_change.merged_types import merged_type
from lakelet.model.types import DataType, Field, string, with_nullable
from lakelet.options import MERGE_ENGINE, ROWKIND_FIELD, TableOptions
from lakelet.spark.cdc.discovery import EventGroup, all_fields
from lakelet.spark.cdc.evolution import evolved
from lakelet.spark.cdc.settings import CdcSettings
from lakelet.spark.opened_lake import open_lake

_DEFAULT_BUCKET = -1


class NoKeyError(InvalidError):
    """A table cannot be made, for nothing tells its primary key."""


def prepared(lake: Lake, name: str, groups: Sequence[EventGroup], settings: CdcSettings) -> TableSchema:
    """The schema of a target that holds the columns of these events, created or evolved where it must be."""
    if not lake.table_exists(name):
        if not settings.create:
            raise InvalidError(f"table {name!r} is not in {lake.location}, and create=False")
        _create(lake, name, groups, settings)
    table = lake.table(name)
    check_target(name, table.schema)

    def change(schema: TableSchema) -> TableSchema:
        for column, rule in settings.made.items():
            if column not in schema.names and settings.policy.columns:
                schema = add_column(schema, [column], with_nullable(rule.type, True))
        return evolved(schema, [one for one in all_fields(groups) if one.name not in settings.made], settings.policy)

    if change(table.schema) is table.schema:
        return table.schema
    return table.alter(change)


def check_target(name: str, schema: TableSchema) -> None:
    """InvalidError unless a mirror of a source can be kept in the table."""
    options = TableOptions(schema.options)
    if not schema.primary_keys:
        raise InvalidError(f"{name} has no primary key: change events are applied by key")
    engine = options.get(MERGE_ENGINE)
    if str(getattr(engine, "value", engine)) != "deduplicate":
        raise InvalidError(f"{name} has merge-engine {engine}: expected deduplicate, which keeps the last row of a key")
    if options.get(ROWKIND_FIELD) is not None:
        raise InvalidError(f"{name} has 'rowkind.field': the kinds of change events are their own")


def _create(lake: Lake, name: str, groups: Sequence[EventGroup], settings: CdcSettings) -> None:
    keys = _key(name, groups, settings)
    types: dict[str, DataType] = {}
    for one in all_fields(groups):
        new = one.type or string()
        types[one.name] = merged_type(types[one.name], new, widens=True) if one.name in types else new
    for column, rule in settings.made.items():
        types[column] = rule.type
    missing = [key for key in keys if key not in types]
    if missing:
        raise NoKeyError(f"no table {name} was made: its key column {', '.join(missing)} is in no event")
    fixed = {*keys, *settings.partitioned_by}
    columns = [Field(-1, column, with_nullable(kind, column not in fixed)) for column, kind in types.items()]
    options = {"bucket": _DEFAULT_BUCKET, **settings.table_options}
    lake.create_database(name.split(".", 1)[0], if_not_exists=True)
    lake.create_table(
        name, columns, primary_key=keys, partitioned_by=settings.partitioned_by, options=options, if_not_exists=True
    )


def _key(name: str, groups: Sequence[EventGroup], settings: CdcSettings) -> Sequence[str]:
    for group in groups:
        given = settings.key_of(group.source.name, name) or group.key_names
        if given:
            return given
    raise NoKeyError(f"no table {name} was made: neither primary_key= nor its events tell a primary key")


def lake_of(settings: CdcSettings) -> Lake:
    """The lake of the targets."""
    return open_lake(settings.warehouse, settings.options)
