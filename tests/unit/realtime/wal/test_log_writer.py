"""Group commit: those who come during a sync share the next one."""

import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from lakelet.realtime.wal import log_writer
from lakelet.realtime.wal.wal_file import WalFile
from tests.unit.realtime.written_table import WAIT_SECONDS, WrittenTable


def test_rows_that_come_during_a_sync_share_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = WrittenTable(tmp_path)
    with written.writer() as writer:
        begun, go, sync = threading.Event(), threading.Event(), WalFile.sync

        def slow(self: WalFile) -> None:
            begun.set()
            go.wait(WAIT_SECONDS)
            sync(self)

        monkeypatch.setattr(WalFile, "sync", slow)
        before = writer.status().syncs
        threads = [
            threading.Thread(target=writer.put, args=({"id": number, "v": "a", "x": None},)) for number in range(9)
        ]
        threads[0].start()
        assert begun.wait(WAIT_SECONDS)
        for thread in threads[1:]:
            thread.start()
        while len(writer._log._waiting) < 8:
            threading.Event().wait(0.001)
        assert writer.scan().count() == 0
        go.set()
        for thread in threads:
            thread.join()
        assert writer.scan().count() == 9
        assert writer.status().syncs == before + 2


@pytest.mark.parametrize("is_its_turn", [False, True], ids=["while it waits", "when it is its turn"])
def test_whoever_is_interrupted_holds_up_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_its_turn: bool
) -> None:
    """The row of the interrupted call is not written; calls before and behind it are done."""
    written = WrittenTable(tmp_path)
    with written.writer() as writer:
        begun, go, sync = threading.Event(), threading.Event(), WalFile.sync

        def slow(self: WalFile) -> None:
            begun.set()
            go.wait(WAIT_SECONDS)
            sync(self)

        class Interrupted:
            """A lock whose second taker is interrupted."""

            def __init__(self) -> None:
                self.lock, self.taken = threading.Lock(), 0

            def acquire(self) -> None:
                self.taken += 1
                if self.taken == 1 or is_its_turn:
                    self.lock.acquire()
                if self.taken > 1:
                    raise KeyboardInterrupt

            def release(self) -> None:
                self.lock.release()

        def row(number: int) -> dict[str, object]:
            return {"id": number, "v": "a", "x": None}

        def interrupted() -> None:
            with pytest.raises(KeyboardInterrupt):
                writer.put(row(1))

        monkeypatch.setattr(WalFile, "sync", slow)
        first = threading.Thread(target=writer.put, args=(row(0),))
        first.start()
        assert begun.wait(WAIT_SECONDS)
        with monkeypatch.context() as patch:
            patch.setattr(log_writer, "threading", SimpleNamespace(Lock=Interrupted))
            second = threading.Thread(target=interrupted)
            second.start()
            if is_its_turn:
                while not writer._log._waiting:
                    threading.Event().wait(0.001)
            else:
                second.join()
        third = threading.Thread(target=writer.put, args=(row(2),))
        third.start()
        while len(writer._log._waiting) < 1 + is_its_turn:
            threading.Event().wait(0.001)
        go.set()
        for thread in (first, second, third):
            thread.join(WAIT_SECONDS)
            assert not thread.is_alive()
        writer.put(row(3))
        assert sorted(writer.scan().to_arrow()["id"].to_pylist()) == [0, 2, 3]
