"""Where a table lives: its store and paths, with the clock and the source of names that its stages use.

It also says whether new files, which nobody sees before a snapshot names them, are written deferred. They are where one process
writes and commits: the commit syncs whatever its snapshot is the first to name. A home that is pickled writes durably
again, for the messages of another process may outlive it; and it brings no source of metadata, so that executors ask the store.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace

from lakelet.clock import Clock, SystemClock
from lakelet.events.event import TableFormat, TableName
from lakelet.ids import Ids, RandomIds
from lakelet.storage.metadata_source import MetadataSource
from lakelet.storage.paths import TablePaths
from lakelet.storage.store import ObjectStore, OutputFile

_LEFT_BEHIND = ("defers", "metadata")


@dataclass(frozen=True, slots=True)
class TableHome:
    """Everything a stage needs to reach the files of one table; picklable, like its store."""

    store: ObjectStore
    paths: TablePaths
    clock: Clock = field(default_factory=SystemClock)
    ids: Ids = field(default_factory=RandomIds)
    # The modules whose classes the program lets tables name as callbacks.
    callback_modules: tuple[str, ...] = ()
    # These come last, for what is pickled leaves them out.
    defers: bool = field(default=False, compare=False)
    # What answers questions about the table's metadata in place of the store; `commit/metadata/source` is the door to it.
    metadata: MetadataSource | None = field(default=None, compare=False, repr=False)

    def __reduce__(self) -> tuple[type[TableHome], tuple[object, ...]]:
        return TableHome, tuple(getattr(self, one.name) for one in fields(self) if one.name not in _LEFT_BEHIND)

    def for_queries(self) -> TableHome:
        """The same table for those who only read rows: the version may be as old as the source of metadata is allowed to be."""
        return self if self.metadata is None else replace(self, metadata=self.metadata.for_queries())

    def uncached(self) -> TableHome:
        """The same table without a source of its own: the store itself is asked."""
        return self if self.metadata is None else replace(self, metadata=None)

    def deferring(self) -> TableHome:
        """The same table, for files that this process syncs before anything names them."""
        return replace(self, defers=True)

    def put_new(self, path: str, data: bytes) -> None:
        """Writes a file that nothing names yet."""
        self.store.put(path, data, deferred=self.defers)

    def open_new(self, path: str) -> OutputFile:
        """Writes such a file as a stream."""
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
        """The path as messages show it."""
        return f"{self.store.location.rstrip('/')}/{path}"
