"""Group commit: those who come during a sync share the next one."""

import threading
from pathlib import Path

import pytest

from lakelet.realtime.wal_file import WalFile
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
