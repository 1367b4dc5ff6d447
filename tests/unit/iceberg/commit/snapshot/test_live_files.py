"""Reading the files of a snapshot, of many manifests at a time."""

import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakelet.iceberg.commit.snapshot import live_files
from lakelet.iceberg.commit.snapshot.live_files import LiveFiles
from tests.unit.iceberg.commit.tables import new_catalog, new_table, write

MANIFESTS = 12


class Watched:
    """Files of which it is known how many are opened at a time. The first ones wait for each other where `together` is given."""

    def __init__(self, io: Any, together: int = 1) -> None:
        self.io, self.now, self.most = io, 0, 0
        self.opened: list[str] = []
        self._lock, self._barrier = threading.Lock(), threading.Barrier(together)
        self._waiting = together

    def new_input(self, path: str) -> Any:
        with self._lock:
            self.now += 1
            self.most = max(self.most, self.now)
            self.opened.append(path)
            waits = path.endswith(".avro") and "-m" in path and self._waiting > 0
            self._waiting -= waits
        if waits:
            self._barrier.wait(300)
        try:
            return self.io.new_input(path)
        finally:
            with self._lock:
                self.now -= 1


@pytest.fixture
def snapshot(tmp_path: Path) -> tuple[Any, Any]:
    """The files of a table, and its snapshot of many manifests."""
    properties = {"commit.manifest-merge.enabled": "false"}
    table = new_table(new_catalog(tmp_path), pa.schema([("id", pa.int64())]), properties=properties)
    for number in range(MANIFESTS):
        write(table, [{"id": number}])
    now = table.reloaded().library
    return now.io, now.current_snapshot()


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_at_most_so_many_at_a_time_in_the_order_of_the_list(
    snapshot: tuple[Any, Any], threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    io, head = snapshot
    expected = [one.path for one in LiveFiles(io).data(head)]
    assert len(set(expected)) == MANIFESTS
    monkeypatch.setattr(live_files, "_THREADS", threads)
    watched = Watched(io, threads)
    live = LiveFiles(watched)  # type: ignore[arg-type]
    assert [one.path for one in live.data(head)] == expected
    assert watched.most == threads
    # Each is read once, for all attempts.
    before = len(watched.opened)
    assert [one.path for one in live.data(head)] == expected
    assert len(watched.opened) == before == MANIFESTS + 1


def test_a_manifest_that_is_gone(snapshot: tuple[Any, Any]) -> None:
    io, head = snapshot
    lost = LiveFiles(io).manifests(head)[7].manifest_path
    Path(lost.removeprefix("file://")).unlink()
    with pytest.raises(FileNotFoundError):
        list(LiveFiles(io).data(head))
