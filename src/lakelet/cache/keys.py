"""The keys of the four levels.

A branch has its own line of snapshots and schemas and is therefore part of a table's key. A snapshot is known by its id and its
delta manifest list: a rollback reuses ids. A schema version is known by its id and by the newest version of its table, whose
bytes `line` stands for: a table that was dropped and created again, or fast-forwarded, has other schemas under the same ids.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from lakelet.errors import InvalidError

MAIN = "main"


@dataclass(frozen=True, slots=True)
class TableCacheKey:
    """A table of a catalog, on one of its branches."""

    catalog: str
    database: str
    table: str
    branch: str = MAIN
    # Every look-up of every level hashes the key of its table.
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash((self.catalog, self.database, self.table, self.branch)))

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[type[TableCacheKey], tuple[str, ...]]:
        # Hashes of text differ between processes.
        return TableCacheKey, (self.catalog, self.database, self.table, self.branch)

    def __str__(self) -> str:
        branch = "" if self.branch == MAIN else f"@{self.branch}"
        return f"{self.catalog}.{self.database}.{self.table}{branch}"

    @staticmethod
    def parse(text: str, default_catalog: str) -> TableCacheKey:
        """The table that `[catalog.]database.table[@branch]` names."""
        name, _, branch = text.partition("@")
        parts = name.split(".")
        if len(parts) == 2:
            parts = [default_catalog, *parts]
        if len(parts) != 3 or not all(parts):
            raise InvalidError(f"table {text!r}: expected database.table or catalog.database.table")
        catalog, database, table = parts
        return TableCacheKey(catalog, database, table, branch or MAIN)

    def on_branch(self, branch: str) -> TableCacheKey:
        """The same table on another branch."""
        return TableCacheKey(self.catalog, self.database, self.table, branch)


@dataclass(frozen=True, slots=True)
class SnapshotCacheKey:
    """A snapshot of a table."""

    table: TableCacheKey
    snapshot_id: int
    delta_manifest_list: str


@dataclass(frozen=True, slots=True)
class SchemaCacheKey:
    """A schema version of a table."""

    table: TableCacheKey
    schema_id: int
    line: str = ""


@dataclass(frozen=True, slots=True)
class PartitionCacheKey:
    """The partitions of a snapshot, or one of them by its path (`year=2023/month=11`)."""

    table: TableCacheKey
    snapshot_id: int
    delta_manifest_list: str
    partition_path: str | None = None


@dataclass(frozen=True, slots=True)
class DerivedCacheKey:
    """Something computed from immutable files of a table, such as its decoded manifests: `name` identifies it for good."""

    table: TableCacheKey
    name: tuple[object, ...]
    # Names may hold a whole schema, and one look-up hashes its key several times.
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash((self.table, self.name)))

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[type[DerivedCacheKey], tuple[object, ...]]:
        return DerivedCacheKey, (self.table, self.name)


CacheKey = TableCacheKey | SnapshotCacheKey | SchemaCacheKey | PartitionCacheKey | DerivedCacheKey


def table_of(key: CacheKey) -> TableCacheKey:
    """The table that a key of any level is about."""
    return key if isinstance(key, TableCacheKey) else key.table
