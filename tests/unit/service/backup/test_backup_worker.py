"""The worker behind flushes: passes run in its thread, failures wait on disk, a restart goes on."""

import threading
from pathlib import Path

from lakelet.clock import SystemClock
from lakelet.errors import NotFoundError, UnavailableError
from lakelet.service.backup.backup_worker import BackupWorker, PostponedError
from lakelet.service.backup.retry_queue import RetryQueue, WaitingTable

PATIENCE_SECONDS = 30


class QuickClock(SystemClock):
    """A clock in which a second takes a millisecond."""

    def monotonic(self) -> float:
        return super().monotonic() * 1000


def test_noted_tables_are_copied_once_for_many_flushes(tmp_path: Path) -> None:
    began, go, seen = threading.Event(), threading.Event(), []

    def run(table: str) -> None:
        seen.append(table)
        began.set()
        assert go.wait(PATIENCE_SECONDS)

    worker = BackupWorker(run, RetryQueue(tmp_path), SystemClock())
    worker.start([])
    worker.note("d.t")
    assert began.wait(PATIENCE_SECONDS)
    # What is noted while the pass runs may not be in it.
    for _ in range(100):
        worker.note("d.t")
    go.set()
    assert worker.settle(PATIENCE_SECONDS)
    worker.stop()
    assert seen == ["d.t", "d.t"]
    assert RetryQueue(tmp_path).load() == []
    assert (worker.passes, worker.failed_passes, worker.waiting) == (2, 0, 0)


def test_failed_pass_is_tried_again_until_it_succeeds(tmp_path: Path) -> None:
    left = [UnavailableError("down"), UnavailableError("still down"), RuntimeError("odd")]

    def run(_: str) -> None:
        if left:
            raise left.pop(0)

    worker = BackupWorker(run, RetryQueue(tmp_path), QuickClock())
    worker.start(["d.t"])
    assert worker.settle(PATIENCE_SECONDS)
    worker.stop()
    assert (worker.passes, worker.failed_passes, worker.failing()) == (1, 3, {})
    assert RetryQueue(tmp_path).load() == []


def test_a_pass_that_another_node_runs_is_put_off_and_has_not_failed(tmp_path: Path) -> None:
    left = [PostponedError(5.0), PostponedError(5.0)]

    def run(_: str) -> None:
        if left:
            raise left.pop(0)

    worker = BackupWorker(run, RetryQueue(tmp_path), QuickClock())
    worker.start(["d.t"])
    assert worker.settle(PATIENCE_SECONDS)
    worker.stop()
    assert (worker.passes, worker.failed_passes, left) == (1, 0, [])


def test_table_that_failed_is_in_the_queue_of_the_next_process(tmp_path: Path) -> None:
    failed = threading.Event()

    def fail(_: str) -> None:
        failed.set()
        raise UnavailableError("down")

    worker = BackupWorker(fail, RetryQueue(tmp_path), SystemClock())
    worker.start([])
    worker.note("d.Tää/ü")
    assert failed.wait(PATIENCE_SECONDS)
    worker.stop()
    (kept,) = RetryQueue(tmp_path).load()
    assert (kept.table, kept.attempts, kept.error) == ("d.Tää/ü", 1, "down")
    seen: list[str] = []
    restarted = BackupWorker(seen.append, RetryQueue(tmp_path), SystemClock())
    restarted.start([])
    assert restarted.settle(PATIENCE_SECONDS)
    restarted.stop()
    assert seen == ["d.Tää/ü"]
    assert RetryQueue(tmp_path).load() == []


def test_dropped_table_leaves_the_queue(tmp_path: Path) -> None:
    def gone(_: str) -> None:
        raise NotFoundError("dropped")

    worker = BackupWorker(gone, RetryQueue(tmp_path), SystemClock())
    worker.start(["d.t"])
    assert worker.settle(PATIENCE_SECONDS)
    worker.stop()
    assert RetryQueue(tmp_path).load() == []


def test_torn_entry_is_left_out(tmp_path: Path) -> None:
    queue = RetryQueue(tmp_path)
    queue.put(WaitingTable("d.t", 1))
    queue.put(WaitingTable("d.u", 0, 2, "x"))
    (Path(queue.folder) / "torn.json").write_bytes(b'{"table": "d.')
    assert queue.load() == [WaitingTable("d.u", 0, 2, "x"), WaitingTable("d.t", 1)]
