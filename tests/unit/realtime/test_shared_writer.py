"""One writer shared by threads that put, delete and read while memtables are flushed all the time."""

import itertools
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from lakelet.errors import InvalidError
from lakelet.realtime.row_writer import RowWriter
from tests.unit.realtime.written_table import WAIT_SECONDS, WrittenTable

ROUNDS = 40
SMALL = {"memtable.size": "1 kb", "wal.sync": "never"}


def together(*calls: Callable[[], None]) -> None:
    """Run calls in threads; the first error of any of them."""
    errors: list[BaseException] = []

    def run(call: Callable[[], None]) -> None:
        try:
            call()
        except BaseException as error:
            errors.append(error)
            raise

    threads = [threading.Thread(target=run, args=(call,)) for call in calls]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threading, "excepthook", lambda _: None)
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    if errors:
        raise errors[0]


def test_what_was_read_once_never_goes_back(tmp_path: Path) -> None:
    written = WrittenTable(tmp_path)
    done = threading.Event()
    with written.writer(SMALL) as writer:

        def put(key: int) -> Callable[[], None]:
            def run() -> None:
                for number in range(ROUNDS):
                    writer.put({"id": key, "v": "a" * 50, "x": float(number)})
                    found = writer.get({"id": key})
                    assert found is not None
                    assert found["x"] == number
                if key == 0:
                    done.set()

            return run

        def read() -> None:
            newest = dict.fromkeys(range(3), -1.0)
            while not done.is_set():
                for row in writer.scan(["id", "x"]).to_arrow().to_pylist():
                    assert row["x"] >= newest[row["id"]]
                    newest[row["id"]] = row["x"]
                for key, before in newest.items():
                    found = writer.get({"id": key}, ["x"])
                    assert (before < 0 and found is None) or (found is not None and found["x"] >= before)

        together(put(0), put(1), put(2), read)
        assert writer.status().failed_flushes == 0
    assert [(row[0], row[2]) for row in written.rows()] == [(key, ROUNDS - 1.0) for key in range(3)]


def test_rows_of_an_append_table_are_counted_once(tmp_path: Path) -> None:
    written = WrittenTable(tmp_path, key=(), options={"compaction.min.file-num": "2"})
    put, done = [0], threading.Event()
    with written.writer(SMALL) as writer:

        def append() -> None:
            for number in range(ROUNDS):
                writer.put({"id": number, "v": "a" * 100, "x": None})
                put[0] = number + 1
            done.set()

        def count() -> None:
            while not done.is_set():
                least = put[0]
                found = writer.scan(["id"]).to_arrow()["id"].to_pylist()
                assert len(found) == len(set(found))
                assert least <= len(found) <= put[0] + 1

        together(append, count)
    assert sorted(row[0] for row in written.rows()) == list(range(ROUNDS))


def test_a_close_waits_for_those_who_put(tmp_path: Path) -> None:
    written = WrittenTable(tmp_path)
    writer: RowWriter = written.writer(SMALL)
    put: list[int] = []
    begun = threading.Event()

    def puts() -> None:
        for number in itertools.count():
            writer.put({"id": number, "v": None, "x": None})
            put.append(number)
            if number == 5:
                begun.set()

    def puts_until_closed() -> None:
        with pytest.raises(InvalidError, match="closed"):
            puts()

    def close() -> None:
        assert begun.wait(WAIT_SECONDS)
        writer.close()

    together(puts_until_closed, close)
    assert [row[0] for row in sorted(written.rows())] == put
