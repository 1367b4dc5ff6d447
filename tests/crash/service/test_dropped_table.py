"""A drop with cascade that dies at any call: the next start finishes it, and nothing of the table ever comes back."""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from lakelet.catalog.lake import Lake
from lakelet.clock import SystemClock
from lakelet.service.tables.registry import TableRegistry
from lakelet.service.values import AlterTableRequest, CreateTableRequest, DropTableRequest
from lakelet.storage.decorated import DecoratedStore
from lakelet.storage.memory import MemoryStore
from lakelet.storage.store import ObjectStore
from lakelet.testing.instrumented_stores import CountingStore, CrashStore, SimulatedCrash, changes
from tests.crash.warehouse import copied

NAME = "Events"


class OneByOneStore(DecoratedStore):
    """A store that deletes folders object by object, the newest names or the oldest first."""

    def __init__(self, store: ObjectStore, *, newest_first: bool) -> None:
        super().__init__(store)
        self._newest_first = newest_first

    def delete_folder(self, path: str) -> None:
        self.delete([info.path for info in self._store.list(path)])

    def delete(self, paths: Sequence[str]) -> None:
        for path in sorted(paths, reverse=self._newest_first):
            self._store.delete([path])


def opened(store: ObjectStore, logs: Path) -> TableRegistry:
    made = TableRegistry(Lake(store), logs, SystemClock())
    made.load()
    return made


def prepared(store: ObjectStore, logs: Path) -> None:
    tables = opened(store, logs)
    made, _ = tables.create(CreateTableRequest(NAME))
    for number in range(3):
        tables.alter(AlterTableRequest(NAME, buffer_size=1000 + number))
    writer = made.open_writer()
    for id in ("a", "b"):
        writer.put({"id": id, "timestamp": None, "payload_rest": None, "dt": None})
        writer.flush()
    made.close()


@pytest.mark.parametrize("newest_first", [True, False])
def test_a_drop_that_dies_is_finished_by_the_next_start(tmp_path: Path, newest_first: bool) -> None:
    stored = MemoryStore()
    prepared(stored, tmp_path / "wal")
    request = DropTableRequest(NAME, cascade=True)
    counting = CountingStore(copied(stored))
    opened(OneByOneStore(counting, newest_first=newest_first), tmp_path / "counted").drop(request)
    for number in range(1, counting.changing_calls + 1):
        left = copied(stored)
        crashing = CrashStore(left, crash_at=number, only=changes)
        with suppress(SimulatedCrash):
            opened(OneByOneStore(crashing, newest_first=newest_first), tmp_path / f"run-{number}").drop(request)
        again = opened(left, tmp_path / f"run-{number}")
        # Either the drop had not begun, and the table is whole, or it is gone.
        if NAME in again.names():
            assert again.open(NAME).table.scan().count() == 2
            again.drop(request)
        assert again.names() == []
        assert again.left_out() == {}
        again.create(CreateTableRequest(NAME))
        assert again.open(NAME).table.scan().count() == 0
        again.close()
