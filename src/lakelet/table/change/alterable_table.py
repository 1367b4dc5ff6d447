"""The schema changes of a table: the methods of `Table` that make a new schema version and touch no row."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from lakelet.model.arrow.given_type import TypeLike
from lakelet.model.schema import TableSchema
from lakelet.model.schema_change.evolution import Path
from lakelet.storage.home import TableHome
from lakelet.table.change.schema_change import SchemaChanges


class AlterableTable:
    """A table whose schema can be changed."""

    _home: TableHome

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
        """Adds a nullable column; rows written before read NULL, rows written without it take the default."""
        return SchemaChanges(self._home).add_column(
            name, data_type, default=default, comment=comment, after=after, first=first
        )

    def rename_column(self, name: Path, new_name: str) -> TableSchema:
        """Renames a column; its values stay."""
        return SchemaChanges(self._home).rename_column(name, new_name)

    def drop_column(self, name: Path) -> TableSchema:
        """Drops a column; a later one of the same name does not get its values back."""
        return SchemaChanges(self._home).drop_column(name)

    def change_type(self, name: Path, data_type: TypeLike) -> TableSchema:
        """Widens a column's type."""
        return SchemaChanges(self._home).change_type(name, data_type)

    def change_nullability(self, name: Path, *, nullable: bool) -> TableSchema:
        """Make a NOT NULL column nullable."""
        return SchemaChanges(self._home).change_nullability(name, nullable=nullable)

    def change_column_comment(self, name: Path, comment: str | None) -> TableSchema:
        """Sets a column's comment."""
        return SchemaChanges(self._home).change_column_comment(name, comment)

    def change_default(self, name: Path, default: object | None) -> TableSchema:
        """Sets a column's default for rows written from now on."""
        return SchemaChanges(self._home).change_default(name, default)

    def move_column(self, name: Path, *, after: str | None = None, first: bool = False) -> TableSchema:
        """Moves a column among its siblings."""
        return SchemaChanges(self._home).move_column(name, after=after, first=first)

    def set_options(self, options: Mapping[str, object]) -> TableSchema:
        """Sets options."""
        return SchemaChanges(self._home).set_options(options)

    def reset_options(self, names: Sequence[str]) -> TableSchema:
        """Reset options to their defaults."""
        return SchemaChanges(self._home).reset_options(names)

    def change_comment(self, comment: str | None) -> TableSchema:
        """Sets the table's comment."""
        return SchemaChanges(self._home).change_comment(comment)

    def alter(self, change: Callable[[TableSchema], TableSchema]) -> TableSchema:
        """Apply several changes as one new version: `change` maps the schema before all of them to the one after. It is made of
        the functions of `model.evolution` and of `with_options`, and is called again after a concurrent change."""
        return SchemaChanges(self._home).alter(change)

    def with_options(self, schema: TableSchema, changes: Mapping[str, str | None]) -> TableSchema:
        """A schema with options set, or reset to their defaults for None, if this table allows that."""
        return SchemaChanges(self._home).with_options(schema, changes)
