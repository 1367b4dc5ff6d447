"""Primary-key tables in memory for tests of compaction, and concurrent changes of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lakelet import Lake, Table
from lakelet.commit.index_changes import read_index_entries
from lakelet.commit.metadata.schemas import latest_schema
from lakelet.commit.metadata.snapshots import latest_snapshot
from lakelet.compact.compaction import Committer, Compaction, commit_compaction
from lakelet.model.commit_message import CommitMessage
from lakelet.model.data_file import DataFile
from lakelet.model.snapshot import Snapshot
from lakelet.storage.memory import MemoryStore
from lakelet.storage.store import ObjectStore
from tests.crash.warehouse import SteppingClock
from tests.unit.hooked_store import HookedStore

COLUMNS = (("id", "BIGINT"), ("v", "INT"))
Row = tuple[Any, ...]


@dataclass
class KeyedBucket:
    """A table `d.t`, by default of one bucket whose writes compact nothing."""

    columns: Sequence[tuple[str, str]] = COLUMNS
    key: Sequence[str] = ("id",)
    partitions: Sequence[str] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    store: MemoryStore = field(default_factory=MemoryStore)

    def __post_init__(self) -> None:
        lake = Lake(self.store, clock=SteppingClock())
        lake.create_database("d")
        self.create()

    def create(self) -> None:
        """Makes the table, perhaps again."""
        Lake(self.store, clock=SteppingClock()).create_table(
            "d.t",
            list(self.columns),
            primary_key=list(self.key),
            partitioned_by=list(self.partitions),
            options={"bucket": "1", "write-only": "true", **self.options},
        )

    @property
    def table(self) -> Table:
        return self.on(self.store)

    def on(self, store: ObjectStore) -> Table:
        """The table through another store."""
        return Lake(store, clock=SteppingClock()).table("d.t")

    def write(self, *rows: Row, kinds: Sequence[str] | None = None, **more: Any) -> Snapshot | None:
        """One commit of rows, which may end early."""
        names = self.table.schema.names
        data = [dict(zip(names, row, strict=False)) for row in rows]
        return self.table.write(data, kinds=None if kinds is None else list(kinds), **more)

    def rows(self, **scan: Any) -> list[Row]:
        """What readers see, in order."""
        return sorted((tuple(row.values()) for row in self.table.scan(**scan).to_arrow().to_pylist()), key=repr)

    def files(self) -> list[DataFile]:
        """The live files, by level and least sequence number."""
        return sorted((file for _, file in self.table.files()), key=lambda file: (file.level, file.min_sequence))

    def levels(self) -> list[int]:
        return [file.level for file in self.files()]

    def vectors(self) -> dict[str, int | None]:
        """How many rows of each file are marked as outdated."""
        snapshot = self.table.latest_snapshot()
        assert snapshot is not None
        return {
            place.data_file: place.cardinality
            for entry in read_index_entries(self.table._home, snapshot)
            for place in entry.file.deletion_vectors or ()
        }

    def prepared(self, *, full: bool = True) -> tuple[CommitMessage, ...]:
        """A compaction that is done but not committed."""
        home = self.table._home
        snapshot = latest_snapshot(home)
        assert snapshot is not None
        compaction = Compaction(home, latest_schema(home), full)
        return compaction.rewrite(compaction.plan(snapshot))

    def commit(self, messages: Sequence[CommitMessage]) -> tuple[Snapshot | None, tuple[CommitMessage, ...]]:
        """What became of it."""
        return commit_compaction(self.table._home, messages, Committer("compactor"))

    def interrupted(self, when: Callable[[str, str], bool], after: Callable[[], object]) -> Table:
        """The table on a store where somebody comes in once, after the first call for which `when` holds."""
        hooked = HookedStore(self.store)
        hooked.when, hooked.after = when, after
        return self.on(hooked)

    def check_no_orphans(self) -> None:
        """Every data and index file belongs to some snapshot, and is there."""
        table = self.table
        named = {path for snapshot in table.snapshots() for path, _ in table.files(version=snapshot.id)}
        named |= {
            table._home.paths.index(entry.file.name)
            for snapshot in table.snapshots()
            for entry in read_index_entries(table._home, snapshot)
        }
        paths = {info.path for info in self.store.list("d.db/t") if "/bucket-" in info.path or "/index/" in info.path}
        assert paths == named, f"orphans {paths - named}, missing {named - paths}"


def before_snapshot(call: str, path: str) -> bool:
    """The moment in which a commit has looked at the newest snapshot, and has not made its own."""
    return call == "put" and "manifest-list" in path


class Second:
    """The same moment of the second commit on a store: of the compaction that follows a write."""

    def __init__(self) -> None:
        self.made = 0

    def __call__(self, call: str, path: str) -> bool:
        self.made += call == "put_if_absent" and "/snapshot-" in path
        return self.made == 1 and before_snapshot(call, path)
