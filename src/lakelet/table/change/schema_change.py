"""The schema changes of a table, each an atomic new schema version."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from lakelet.callbacks.iceberg.rest_settings import check_rest_settings
from lakelet.commit.callbacks.callback_classes import check_callbacks
from lakelet.commit.metadata.schemas import change_schema
from lakelet.commit.metadata.version_ids import latest_id
from lakelet.commit.versions.branches import branch_home
from lakelet.errors import InvalidError, LakeletError, NotFoundError
from lakelet.format.metadata.table_metadata import decode_metadata, encode_metadata
from lakelet.model.arrow.given_type import TypeLike, as_type
from lakelet.model.schema import TableSchema
from lakelet.model.schema_change import evolution
from lakelet.model.schema_change.evolution import Path
from lakelet.options import (
    FUNCTION_OPTIONS,
    ICEBERG_STORAGE,
    ICEBERG_STORAGE_LOCATION,
    PARTITION,
    PATH,
    PRIMARY_KEY,
    SCAN_FALLBACK_BRANCH,
    check_alter,
    check_options,
    keeps_iceberg_metadata,
)
from lakelet.storage.home import TableHome
from lakelet.storage.paths import MAIN_BRANCH
from lakelet.table.change.vector_switch import check_switch
from lakelet.table.write.closed_format import warn_of_closed_format
from lakelet.table.write.writable import check_changed_schema

_LOG = logging.getLogger(__name__)
_FIXED = (PARTITION, PATH, PRIMARY_KEY)


@dataclass(frozen=True, slots=True)
class SchemaChanges:
    """Schema changes of a table, each one new schema version. Nested columns are named by a dotted path: `address.city`."""

    home: TableHome

    def add_column(
        self,
        name: Path,
        data_type: TypeLike,
        *,
        default: object | None = None,
        comment: str | None = None,
        after: str | None = None,
        first: bool = False,
    ) -> TableSchema:
        """Adds a nullable column."""
        new = as_type(data_type, str(name))
        text = None if default is None else _literal(default)
        return self._alter(
            lambda schema: evolution.add_column(
                schema, name, new, default=text, comment=comment, after=after, first=first
            )
        )

    def rename_column(self, name: Path, new_name: str) -> TableSchema:
        """Renames a column."""
        return self._alter(lambda schema: evolution.rename_column(schema, name, new_name))

    def drop_column(self, name: Path) -> TableSchema:
        """Drops a column."""
        return self._alter(lambda schema: evolution.drop_column(schema, name))

    def change_type(self, name: Path, data_type: TypeLike) -> TableSchema:
        """Widens a column's type."""
        new = as_type(data_type, str(name))
        return self._alter(lambda schema: evolution.change_type(schema, name, new))

    def change_nullability(self, name: Path, *, nullable: bool) -> TableSchema:
        """Make a NOT NULL column nullable."""
        return self._alter(lambda schema: evolution.change_nullability(schema, name, nullable=nullable))

    def change_column_comment(self, name: Path, comment: str | None) -> TableSchema:
        """Sets a column's comment."""
        return self._alter(lambda schema: evolution.change_comment(schema, name, comment))

    def change_default(self, name: Path, default: object | None) -> TableSchema:
        """Sets a column's default for rows written from now on."""
        text = None if default is None else _literal(default)
        return self._alter(lambda schema: evolution.change_default(schema, name, text))

    def move_column(self, name: Path, *, after: str | None = None, first: bool = False) -> TableSchema:
        """Moves a column among its siblings."""
        return self._alter(lambda schema: evolution.move_column(schema, name, after=after, first=first))

    def set_options(self, options: Mapping[str, object]) -> TableSchema:
        """Sets options."""
        return self._change_options({key: _literal(value) for key, value in options.items()})

    def reset_options(self, names: Sequence[str]) -> TableSchema:
        """Reset options to their defaults."""
        return self._change_options(dict.fromkeys(names))

    def change_comment(self, comment: str | None) -> TableSchema:
        """Sets the table's comment."""
        return self._alter(lambda schema: evolution.change_table_comment(schema, comment))

    def alter(self, change: Callable[[TableSchema], TableSchema]) -> TableSchema:
        """Apply several changes as one new version: `change` maps the schema before all of them to the one after."""
        return self._alter(change)

    def with_options(self, schema: TableSchema, changes: Mapping[str, str | None]) -> TableSchema:
        """A schema with options set, or reset to their defaults for None, if this table allows that."""
        given = {key: text for key, text in changes.items() if text is not None}
        check_options(given)
        check_callbacks(given, self.home.callback_modules)
        for option in _FIXED:
            if changes.get(option.name) not in (None, schema.options.get(option.name)):
                raise InvalidError(f"option '{option.name}' says how a table is made and cannot be changed afterwards")
        changed = evolution.change_options(schema, changes)
        check_rest_settings(given, changed.options, self.home.rest_catalogs)
        if keeps_iceberg_metadata(changed.options) and not keeps_iceberg_metadata(schema.options):
            _check_room_for_iceberg(self.home)
        fallback = changes.get(SCAN_FALLBACK_BRANCH.name)
        if fallback:
            branch_home(self.home, fallback)
        if latest_id(self.home) is not None:
            check_alter(_of_columns(schema, schema.options), _of_columns(schema, changed.options))
            check_switch(self.home, schema, changed)
        return changed

    def _change_options(self, changes: Mapping[str, str | None]) -> TableSchema:
        return self._alter(lambda schema: self.with_options(schema, changes))

    def _alter(self, change: Callable[[TableSchema], TableSchema]) -> TableSchema:
        before: list[TableSchema] = []

        def writable(schema: TableSchema) -> TableSchema:
            changed = change(schema)
            check_changed_schema(schema, changed)
            before[:] = [schema]
            return changed

        schema = change_schema(self.home, writable)
        note_schema(self.home, schema)
        warn_of_closed_format(self.home.where(self.home.paths.root), schema, before[0])
        return schema


def _of_columns(schema: TableSchema, options: Mapping[str, str]) -> dict[str, str]:
    """The options without those about the merge of columns that do not exist yet: they may be set before a column is added."""
    named = {key: next(filter(None, (rule.member(key) for rule in FUNCTION_OPTIONS)), None) for key in options}
    return {key: text for key, text in options.items() if named[key] is None or named[key] in schema.names}


def _check_room_for_iceberg(home: TableHome) -> None:
    """InvalidError where the table's identity is in the place of the Iceberg metadata that would be published."""
    if home.store.head(home.on_branch(MAIN_BRANCH).paths.metadata) is not None:
        raise InvalidError(
            f"option '{ICEBERG_STORAGE.name}': the table's identity is where Iceberg's metadata would lie, "
            f"{home.paths.metadata}; use hadoop-catalog, or '{ICEBERG_STORAGE_LOCATION.name}' = 'catalog-location', "
            "or create the table with table-location"
        )


def note_schema(home: TableHome, schema: TableSchema) -> None:
    """Record a change in the table's metadata file, which is for people: the schema is committed without it."""
    path = home.paths.metadata
    try:
        metadata = decode_metadata(home.store.get(path), path=home.where(path))
        changed = replace(metadata, modify_time_ms=schema.time_ms, schema_id=schema.id)
        home.store.put(path, encode_metadata(changed))
    except NotFoundError:
        return
    except LakeletError as error:
        _LOG.warning("schema %d is committed, but %s could not be updated: %s", schema.id, path, error)


def _literal(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else str(value)
