"""The location of a table: its store and paths, with the clock and the source of names that its stages use.

It also says whether new files, which are invisible before a snapshot references them, are written deferred: they are where one
process writes and commits, for the commit syncs all files that its snapshot references first. An unpickled home writes durably
again, since its messages may outlive its process; and it has no metadata source of its own, so that executors read the store, and
no REST catalogs, whose secrets stay where the program is.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace

from lakelet.clock import Clock, SystemClock
from lakelet.events.event import TableFormat, TableName
from lakelet.ids import Ids, RandomIds
from lakelet.storage.metadata_source import MetadataSource
from lakelet.storage.paths import TablePaths
from lakelet.storage.rest_catalogs import RestCatalogs
from lakelet.storage.store import ObjectStore, OutputFile

_LEFT_BEHIND = ("defers", "metadata", "rest_catalogs")


@dataclass(frozen=True, slots=True)
class TableHome:
    """Everything a stage needs to reach the files of one table; picklable, like its store."""

    store: ObjectStore
    paths: TablePaths
    clock: Clock = field(default_factory=SystemClock)
    ids: Ids = field(default_factory=RandomIds)
    # The modules whose classes tables may name as callbacks.
    callback_modules: tuple[str, ...] = ()
    # The last fields, since pickling leaves them out.
    defers: bool = field(default=False, compare=False)
    # Reads the table's metadata in place of the store, such as a cache; `commit/metadata/source` is its only user.
    metadata: MetadataSource | None = field(default=None, compare=False, repr=False)
    # Where the table may be published, as the program that opened the lake allows it.
    rest_catalogs: RestCatalogs | None = field(default=None, compare=False, repr=False)

    def __reduce__(self) -> tuple[type[TableHome], tuple[object, ...]]:
        return TableHome, tuple(getattr(self, one.name) for one in fields(self) if one.name not in _LEFT_BEHIND)

    def for_queries(self) -> TableHome:
        """The same table for readers: its newest snapshot and schema may be as stale as the metadata source is allowed to be."""
        return self if self.metadata is None else replace(self, metadata=self.metadata.for_queries())

    def uncached(self) -> TableHome:
        """The same table without a metadata source of its own: metadata is read from the store."""
        return self if self.metadata is None else replace(self, metadata=None)

    def deferring(self) -> TableHome:
        """The same table with deferred writes, for files that this process syncs before a commit references them."""
        return self if self.defers else replace(self, defers=True)

    def put_new(self, path: str, data: bytes) -> None:
        """Write a file that nothing references yet."""
        self.store.put(path, data, deferred=self.defers)

    def open_new(self, path: str) -> OutputFile:
        """Open a stream that writes such a file."""
        return self.store.open_output(path, deferred=self.defers)

    def on_branch(self, branch: str) -> TableHome:
        """The same table on another branch."""
        return replace(self, paths=self.paths.on_branch(branch))

    @property
    def table_name(self) -> TableName:
        """The table as events name it."""
        return TableName(
            TableFormat.NATIVE,
            self.paths.identifier,
            self.where(self.paths.root),
            warehouse=self.store.location,
        )

    def where(self, path: str) -> str:
        """The path with its location, for messages."""
        return f"{self.store.location.rstrip('/')}/{path}"
