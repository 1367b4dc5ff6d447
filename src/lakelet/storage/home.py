"""Where a table lives: its store and paths, with the clock and the source of names that its stages use."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from lakelet.clock import Clock, SystemClock
from lakelet.ids import Ids, RandomIds
from lakelet.storage.paths import TablePaths
from lakelet.storage.store import ObjectStore


@dataclass(frozen=True, slots=True)
class TableHome:
    """Everything a stage needs to reach the files of one table; picklable, like its store."""

    store: ObjectStore
    paths: TablePaths
    clock: Clock = field(default_factory=SystemClock)
    ids: Ids = field(default_factory=RandomIds)
    # The modules whose classes the program lets tables name as callbacks.
    callback_modules: tuple[str, ...] = ()

    def on_branch(self, branch: str) -> TableHome:
        """The same table on another branch."""
        return replace(self, paths=self.paths.on_branch(branch))

    def where(self, path: str) -> str:
        """The path as messages show it."""
        return f"{self.store.location.rstrip('/')}/{path}"
