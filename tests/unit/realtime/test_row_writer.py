"""`table.writer()`: rows are read back at once, committed by a flush, and survive the end of the process."""

import threading
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest

from lakelet.errors import ConflictError, CorruptionError, InvalidError, TooLargeError, UnavailableError
from lakelet.model.schema import TableSchema
from lakelet.realtime import flush_worker
from lakelet.storage.home import TableHome
from tests.unit.realtime.written_table import COLUMNS, WAIT_SECONDS, WrittenTable, kill, sorted_rows


@pytest.fixture
def written(tmp_path: Path) -> WrittenTable:
    return WrittenTable(tmp_path)


def row(number: int, text: str | None = "a") -> dict[str, object]:
    return {"id": number, "v": text, "x": number / 2}


def test_a_row_is_read_back_before_it_is_committed(written: WrittenTable) -> None:
    with written.writer() as writer:
        writer.put(row(1))
        assert writer.get({"id": 1}) == row(1)
        assert writer.get({"id": 1}, ["x"]) == {"x": 0.5}
        assert writer.get({"id": 2}) is None
        assert written.rows() == []
        writer.flush()
        assert written.rows() == [(1, "a", 0.5)]
        assert writer.get({"id": 1}) == row(1)
        writer.put(row(1, "b"))
        assert writer.get({"id": 1}) == row(1, "b")
        assert sorted_rows(writer.scan().to_arrow()) == [(1, "b", 0.5)]
    assert written.rows() == [(1, "b", 0.5)]


def test_a_delete_hides_the_row_and_is_committed(written: WrittenTable) -> None:
    with written.writer() as writer:
        writer.put_many([row(1), row(2)])
        writer.flush()
        assert writer.delete({"id": 1})
        assert not writer.delete({"id": 1})
        assert not writer.delete({"id": 7})
        assert writer.get({"id": 1}) is None
        assert writer.scan().count() == 1
        assert len(written.rows()) == 2
    assert written.rows() == [(2, "a", 1.0)]
    changes = written.table.changes(1)
    assert changes.select(["_row_kind", "id", "v"]).to_pylist() == [{"_row_kind": "-D", "id": 1, "v": "a"}]


def test_a_scan_takes_conditions_columns_and_a_limit(written: WrittenTable) -> None:
    with written.writer() as writer:
        writer.put_many([row(number, "old") for number in range(6)])
        writer.flush()
        writer.put_many([row(number, "new") for number in range(3, 9)])
        writer.delete({"id": 4})
        assert sorted_rows(writer.scan(["id"], "v = 'old'").to_arrow()) == [(0,), (1,), (2,)]
        assert sorted_rows(writer.scan(["id"], "v = 'new'").to_arrow()) == [(3,), (5,), (6,), (7,), (8,)]
        assert sorted_rows(writer.scan(["v"], "id = 4").to_arrow()) == []
        assert writer.scan(limit=7).count() == 7
        assert writer.scan(limit=100).count() == 8
        assert writer.scan(limit=0).count() == 0
        assert pa.table(writer.scan(["x"], limit=2)).schema.names == ["x"]


def test_the_newest_of_several_memtables_wins(written: WrittenTable, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, go = threading.Event(), threading.Event()
    flush = flush_worker.flush_memtable

    def late(*arguments: object) -> object:
        begun.set()
        go.wait(WAIT_SECONDS)
        return flush(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(flush_worker, "flush_memtable", late)
    options = {"memtable.size": "300 b", "memtable.flush-threshold": "0.1", "memtable.concurrent-flushes": "1"}
    with written.writer(options) as writer:
        for text in ("one", "two", "three"):
            writer.put(row(1, text))
        assert begun.wait(WAIT_SECONDS)
        states = [memtable.state for memtable in writer.status().memtables]
        assert states == ["flushing", "immutable", "active"]
        assert writer.get({"id": 1}) == row(1, "three")
        assert sorted_rows(writer.scan().to_arrow()) == [(1, "three", 0.5)]
        go.set()
    snapshots = written.table.snapshots()
    assert [snapshot.commit_identifier for snapshot in snapshots] == [1, 2, 3]
    assert len({snapshot.commit_user for snapshot in snapshots}) == 1
    assert written.rows() == [(1, "three", 0.5)]


def test_without_room_a_put_waits_and_is_refused(written: WrittenTable, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> object:
        raise UnavailableError("the store is away")

    options = {"memtable.size": "300 b", "memtable.flush-threshold": "0.1", "memtable.wait-timeout": "20 ms"}
    with monkeypatch.context() as patch:
        patch.setattr(flush_worker, "flush_memtable", fails)
        writer = written.writer(options)
        for number in range(3):
            writer.put(row(number))
        with writer._memtables.changed:
            assert writer._memtables.changed.wait_for(lambda: writer._worker.failures, WAIT_SECONDS)
        with pytest.raises(UnavailableError, match=r"3 memtables are full.*wait-timeout.*the store is away") as refused:
            writer.put(row(9))
        # Nothing was done: the caller may come again.
        assert refused.value.retry_after_seconds == 1.0
        with pytest.raises(UnavailableError):
            writer.put_many([row(10), row(11)])
        status = writer.status()
        assert status.failed_flushes > 0
        assert status.last_error == "the store is away"
        assert writer.scan().count() == 3
        with pytest.raises(UnavailableError, match="3 memtables are full"):
            writer.close()
    assert written.rows() == []
    with written.writer() as writer:
        assert [log.outcome for log in writer.recovered] == ["committed"] * 3
    assert written.rows() == [(0, "a", 0.0), (1, "a", 0.5), (2, "a", 1.0)]


def test_a_failed_flush_keeps_the_rows_and_is_repeated(written: WrittenTable, monkeypatch: pytest.MonkeyPatch) -> None:
    flush, failures = flush_worker.flush_memtable, [UnavailableError("away"), ValueError("a defect")]

    def fails_twice(*arguments: object) -> object:
        if failures:
            raise failures.pop(0)
        return flush(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(flush_worker, "flush_memtable", fails_twice)
    with written.writer() as writer:
        writer.put(row(1))
        with pytest.raises(UnavailableError, match="their flush failed: "):
            writer.flush()
        assert writer.get({"id": 1}) == row(1)
        while writer.status().memtables[0].sequence_number == 1:
            with suppress(UnavailableError):
                writer.flush()
        assert written.rows() == [(1, "a", 0.5)]
        assert (writer.status().last_error, writer.status().failed_flushes) == (None, 2)


def test_rows_of_a_killed_writer_are_committed_once(written: WrittenTable) -> None:
    writer = written.writer()
    writer.put_many([row(number) for number in range(5)])
    writer.delete({"id": 2})
    kill(writer)
    with written.writer() as writer:
        (found,) = writer.recovered
        assert (found.records, found.outcome, found.torn_bytes) == (6, "committed", 0)
        assert len(written.rows()) == 4
    before = written.table.latest_snapshot()
    with written.writer() as writer:
        assert [log.outcome for log in writer.recovered] == ["empty"]
    assert written.table.latest_snapshot() == before
    assert written.log_names() == ["LOCK", "RESERVE", "TABLE", "wal-3.log"]


def test_a_crash_between_commit_and_deletion_applies_nothing_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = WrittenTable(tmp_path, key=(), options={})
    with monkeypatch.context() as patch:
        patch.setattr("lakelet.realtime.wal.wal_folder.WalFolder.remove", lambda *_: None)
        with written.writer() as writer:
            writer.put_many([row(1), row(1)])
    assert written.log_names() == ["LOCK", "RESERVE", "TABLE", "wal-1.log", "wal-2.log"]
    with written.writer() as writer:
        assert [log.outcome for log in writer.recovered] == ["committed before", "empty"]
        assert writer.scan().count() == 2
    assert written.rows() == [(1, "a", 0.5), (1, "a", 0.5)]


def test_a_torn_tail_is_told_and_the_rows_before_are_committed(written: WrittenTable) -> None:
    writer = written.writer()
    writer.put(row(1))
    writer.put(row(2))
    kill(writer)
    log = written.log_folder() / "wal-1.log"
    log.write_bytes(log.read_bytes()[:-3])
    with written.writer() as writer:
        assert writer.recovered[0].torn_bytes > 0
    assert written.rows() == [(1, "a", 0.5)]


def test_a_damaged_log_is_told_and_stays(written: WrittenTable) -> None:
    writer = written.writer()
    writer.put(row(1))
    writer.put(row(2))
    kill(writer)
    log = written.log_folder() / "wal-1.log"
    data = bytearray(log.read_bytes())
    data[-60] ^= 1
    log.write_bytes(data)
    for _ in range(2):
        with pytest.raises(CorruptionError, match=r"wal-1\.log: the record at byte"):
            written.writer()
    assert log.read_bytes() == data


def test_a_log_of_another_table_is_told(written: WrittenTable, tmp_path: Path) -> None:
    other = WrittenTable(tmp_path / "other")
    writer = other.writer()
    writer.put(row(1))
    kill(writer)
    with written.writer():
        pass
    (other.log_folder() / "wal-1.log").rename(written.log_folder() / "wal-9.log")
    with pytest.raises(InvalidError, match="rows of another table"):
        written.writer()
    assert written.rows() == []


def test_a_second_writer_is_refused_until_the_first_is_closed(written: WrittenTable) -> None:
    with written.writer(), pytest.raises(ConflictError, match="in use by another writer"):
        written.writer()
    written.writer().close()


def test_a_closed_writer_takes_nothing(written: WrittenTable) -> None:
    writer = written.writer()
    writer.close()
    writer.close()
    assert writer.status().closed
    for call in (
        lambda: writer.put(row(1)),
        lambda: writer.get({"id": 1}),
        lambda: writer.delete({"id": 1}),
        writer.scan,
        writer.flush,
    ):
        with pytest.raises(InvalidError, match="closed"):
            call()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"id": None, "v": "a", "x": 1.0}, "id"),
        ({"id": 1, "v": "a"}, r"lacks column 'x', and a writer takes whole rows: .*write\.missing-columns"),
        ({"id": 1, "v": "a", "x": 1.0, "y": 2}, "y"),
        ({"id": "one", "v": "a", "x": 1.0}, "id"),
        ({"id": 1, "v": "a" * 2000, "x": 1.0}, r"more than a memtable holds.*1024"),
        (7, "expected a mapping"),
    ],
)
def test_rows_that_do_not_fit_are_refused(written: WrittenTable, wrong: object, message: str) -> None:
    with written.writer({"memtable.size": "1 kb"}) as writer:
        with pytest.raises((InvalidError, TooLargeError), match=message):
            writer.put(wrong)  # type: ignore[arg-type]
        writer.put(row(2))
        assert writer.scan().count() == 1
    assert written.rows() == [(2, "a", 1.0)]


def test_keys_that_are_none_are_refused(written: WrittenTable) -> None:
    with written.writer() as writer:
        for key in ({}, {"v": "a"}, {"id": None}, 7):
            with pytest.raises(InvalidError):
                writer.get(key)  # type: ignore[arg-type]


def test_an_append_table_keeps_every_row_in_order(tmp_path: Path) -> None:
    written = WrittenTable(tmp_path, key=(), options={})
    writer = written.writer()
    writer.put_many([row(2), row(1)])
    writer.flush()
    writer.put(row(1))
    assert writer.scan(["id"]).to_arrow()["id"].to_pylist() == [2, 1, 1]
    for call in (writer.get, writer.delete):
        with pytest.raises(InvalidError, match="no primary key"):
            call({"id": 1})
    kill(writer)
    written.writer().close()
    assert written.table.scan(["id"]).to_arrow()["id"].to_pylist() == [2, 1, 1]


@pytest.mark.parametrize("mode", ["dynamic", "cross-partition", "partitioned"])
def test_every_bucket_mode_is_written(tmp_path: Path, mode: str) -> None:
    columns = [*COLUMNS, ("p", "STRING")]
    written = WrittenTable(
        tmp_path,
        columns=columns,
        key=("id", "p") if mode == "partitioned" else ("id",),
        partitions=() if mode == "dynamic" else ("p",),
        options={"bucket": "1"} if mode == "partitioned" else {"dynamic-bucket.target-row-num": "2"},
    )
    key = {"id": 1, "p": "one"} if mode == "partitioned" else {"id": 1}
    with written.writer() as writer:
        writer.put_many([{**row(number), "p": "one"} for number in range(6)])
        writer.flush()
        writer.put({**row(2, "b"), "p": "two"})
        writer.delete(key)
        writer.put({**row(8), "p": "two"})
        writer.delete({"id": 8, "p": "two"} if mode == "partitioned" else {"id": 8})
        seen = sorted_rows(writer.scan().to_arrow())
        writer.flush()
        assert sorted_rows(writer.scan().to_arrow()) == seen
    kept = {0, 2, 3, 4, 5}
    expected = [(number, "b" if number == 2 else "a", number / 2, "two" if number == 2 else "one") for number in kept]
    expected += [(2, "a", 1.0, "one")] if mode == "partitioned" else []
    assert written.rows() == seen == sorted(expected, key=repr)


@pytest.mark.parametrize(
    ("options", "columns", "message"),
    [
        ({"bucket": "-2"}, COLUMNS, "'bucket' = '-2'"),
        ({"bucket": "1", "rowkind.field": "v"}, COLUMNS, r"rowkind\.field"),
    ],
)
def test_tables_that_are_not_supported_are_refused_by_name(
    tmp_path: Path, options: dict[str, str], columns: list[tuple[str, str]], message: str
) -> None:
    written = WrittenTable(tmp_path, options=options, columns=columns)
    with pytest.raises(InvalidError, match=message):
        written.writer()


def test_an_alter_under_an_open_writer_is_followed(written: WrittenTable) -> None:
    with written.writer() as writer:
        writer.put(row(1))
        table = written.table
        table.rename_column("v", "text")
        table.add_column("n", "BIGINT")
        table.drop_column("x")
        assert writer.get({"id": 1}) == {"id": 1, "text": "a", "n": None}
        with pytest.raises(InvalidError, match="v"):
            writer.put(row(2))
        writer.put({"id": 2, "text": "b", "n": 5})
        assert sorted_rows(writer.scan().to_arrow()) == [(1, "a", None), (2, "b", 5)]
        table.add_column("x", "DOUBLE")
        assert writer.get({"id": 1}) == {"id": 1, "text": "a", "n": None, "x": None}
    assert written.rows() == [(1, "a", None, None), (2, "b", 5, None)]


def test_a_log_of_an_older_schema_is_replayed(written: WrittenTable) -> None:
    writer = written.writer()
    writer.put(row(1))
    kill(writer)
    written.table.rename_column("v", "text")
    written.table.drop_column("x")
    written.table.add_column("x", "DOUBLE")
    written.writer().close()
    assert written.rows() == [(1, "a", None)]


def test_an_alter_during_a_call_carries_its_rows_over(written: WrittenTable) -> None:
    batch = pa.table({"id": [1], "v": ["a"], "x": [0.5]})
    with written.writer() as writer:

        def batches() -> object:
            yield batch
            written.table.rename_column("v", "text")
            writer.put({"id": 7, "text": "b", "x": 1.0})
            yield batch.set_column(0, "id", pa.array([2]))

        writer.put_many(batches())
    assert written.rows() == [(1, "a", 0.5), (2, "a", 0.5), (7, "b", 1.0)]


def test_a_table_that_was_made_anew_does_not_get_the_rows(written: WrittenTable, tmp_path: Path) -> None:
    import lakelet

    writer = written.writer()
    writer.put(row(1))
    lake = lakelet.connect(str(tmp_path / "warehouse"))
    lake.drop_table("d.t")
    lake.create_table("d.t", COLUMNS, primary_key=["id"], options={"bucket": "2"})
    with pytest.raises(UnavailableError, match="created again"):
        writer.close()
    assert written.rows() == []


def test_a_table_that_is_made_anew_during_the_flush_does_not_get_the_rows(
    written: WrittenTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import lakelet
    from lakelet.realtime import flush

    read = flush.latest_schema

    def too_late(home: TableHome) -> TableSchema:
        lake = lakelet.connect(str(tmp_path / "warehouse"))
        lake.drop_table("d.t")
        lake.create_table("d.t", COLUMNS, primary_key=["id"], options={"bucket": "2"})
        return read(home)

    writer = written.writer()
    writer.put(row(1))
    with monkeypatch.context() as patch:
        patch.setattr(flush, "latest_schema", too_late)
        with pytest.raises(UnavailableError, match="created again"):
            writer.close()
    assert written.rows() == []


def test_a_forked_process_is_refused(written: WrittenTable, monkeypatch: pytest.MonkeyPatch) -> None:
    with written.writer() as writer, monkeypatch.context() as patch:
        patch.setattr("os.getpid", lambda: 1)
        for call in (lambda: writer.put(row(1)), writer.flush, writer.close):
            with pytest.raises(InvalidError, match="another process"):
                call()


def test_threads_share_syncs_and_lose_nothing(written: WrittenTable) -> None:
    with written.writer({"memtable.size": "4 kb"}) as writer:

        def put(worker: int) -> None:
            for number in range(20):
                writer.put(row(worker * 100 + number))

        threads = [threading.Thread(target=put, args=(worker,)) for worker in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert writer.scan().count() == 160
        assert writer.status().failed_flushes == 0
    assert len(written.rows()) == 160


@pytest.mark.parametrize("policy", ["interval", "never"])
def test_other_policies_of_sync_write_the_same(written: WrittenTable, policy: str) -> None:
    writer = written.writer({"wal.sync": policy, "wal.sync-interval": "1 ms"})
    writer.put_many([row(1), row(2)])
    kill(writer)
    written.writer().close()
    assert len(written.rows()) == 2


def test_another_writers_later_commit_is_seen_after_the_flush(written: WrittenTable) -> None:
    with written.writer() as writer:
        writer.put(row(1, "ours"))
        written.table.write(pa.table({"id": [1], "v": ["theirs"], "x": [0.0]}))
        assert writer.get({"id": 1}) == row(1, "ours")
        writer.flush()
        assert writer.get({"id": 1}) == row(1, "ours")
        written.table.write(pa.table({"id": [1], "v": ["theirs"], "x": [0.0]}))
        assert writer.get({"id": 1}) == {"id": 1, "v": "theirs", "x": 0.0}


def test_a_flush_that_is_committed_but_not_yet_told_counts_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = WrittenTable(tmp_path, key=(), options={})
    committed, go, flush = threading.Event(), threading.Event(), flush_worker.flush_memtable

    def told_late(*arguments: object) -> object:
        made = flush(*arguments)  # type: ignore[arg-type]
        committed.set()
        go.wait(WAIT_SECONDS)
        return made

    monkeypatch.setattr(flush_worker, "flush_memtable", told_late)
    with written.writer({"memtable.size": "300 b", "memtable.flush-threshold": "0.1"}) as writer:
        writer.put(row(1))
        assert committed.wait(WAIT_SECONDS)
        seen = writer.scan().count()
        go.set()
    assert seen == 1
    assert written.rows() == [(1, "a", 0.5)]


def test_rows_put_together_are_all_there_or_none(tmp_path: Path) -> None:
    written = WrittenTable(tmp_path)
    good = [{"id": number, "v": "x" * 1000, "x": None} for number in range(6000)]
    with written.table.writer(wal_folder=written.logs) as writer:
        before = writer.status().syncs
        writer.put_together(good)
        assert writer.status().syncs == before + 1
        with pytest.raises(InvalidError):
            writer.put_together([{"id": number, "v": "y", "x": None} for number in range(6000)] + [{"id": None}])
        assert writer.scan().to_arrow().column("v").unique().to_pylist() == ["x" * 1000]
    assert len(written.rows()) == 6000
