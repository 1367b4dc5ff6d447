"""The files of one writer: names of their own, and none left after a removal."""

import logging

import pyarrow as pa
import pytest

from lakelet.errors import InvalidError, UnavailableError
from lakelet.format.data.file_settings import FileSettings
from lakelet.format.data.new_files import NewFiles, _Output
from tests.unit.keyed_table import KeyedTable

ROWS = pa.table({"id": pa.array([1], pa.int32())})


def new_files(**options: str) -> tuple[KeyedTable, NewFiles]:
    table = KeyedTable({"id": "INT"}, **options)
    return table, NewFiles(table.home, FileSettings.of(table.schema))


def test_names_count_up() -> None:
    table, files = new_files(**{"data-file.prefix": "part-", "file.suffix.include.compression": "true"})
    names = [files.begin("d.db/t/bucket-0", table.schema.fields, without_ranges=frozenset()).name for _ in range(2)]
    assert [name[-15:] for name in names] == ["-0.zstd.parquet", "-1.zstd.parquet"]
    assert names[0][:-15] == names[1][:-15]
    assert names[0].startswith("part-")


def test_removal_takes_open_and_closed_files() -> None:
    table, files = new_files()
    closed, opened = (files.begin("d.db/t/bucket-0", table.schema.fields, without_ranges=frozenset()) for _ in range(2))
    for file in (closed, opened):
        file.write(ROWS)
    size = closed.close()
    (path,) = table.data_files()
    assert table.store.head(path).size == size  # type: ignore[union-attr]
    files.remove()
    assert table.data_files() == []


def test_a_file_that_cannot_be_begun_is_given_up() -> None:
    table, files = new_files(**{"file.compression": "brotli", "file.format": "avro"})
    with pytest.raises(InvalidError, match="expected one of"):
        files.begin("d.db/t/bucket-0", table.schema.fields, without_ranges=frozenset())
    assert table.data_files() == []


def test_files_that_stay_behind_are_told(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    table, files = new_files()
    files.begin("d.db/t/bucket-0", table.schema.fields, without_ranges=frozenset()).close()

    def unreachable(paths: object) -> None:
        raise UnavailableError("no connection")

    monkeypatch.setattr(table.store, "delete", unreachable)
    with caplog.at_level(logging.WARNING):
        files.remove()
    assert "1 uncommitted files stay behind" in caplog.text


class Recording:
    """An output that records what is written to it."""

    def __init__(self) -> None:
        self.writes: list[bytes] = []
        self.closed = self.aborted = False
        self.fails = False

    def write(self, data: bytes) -> int:
        if self.fails:
            raise UnavailableError("the disk is full")
        self.writes.append(bytes(data))
        return len(data)

    def tell(self) -> int:
        return sum(map(len, self.writes))

    def flush(self) -> None: ...

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.aborted = True


def test_short_writes_are_gathered_and_long_ones_are_not() -> None:
    to = Recording()
    output = _Output(to)  # type: ignore[arg-type]
    for number in range(100):
        output.write(b"ab")
        assert output.tell() == 2 * number + 2
    assert to.writes == []
    output.flush()
    assert to.writes == [b"ab" * 100]
    output.write(b"c")
    output.write(bytes(1 << 20))
    assert [len(one) for one in to.writes] == [200, 1, 1 << 20]
    output.write(b"end")
    assert output.tell() == 201 + (1 << 20) + 3
    output.close()
    output.close()
    assert b"".join(to.writes)[-3:] == b"end"
    assert to.closed


def test_nothing_gathered_is_written_once_it_is_given_up() -> None:
    to = Recording()
    output = _Output(to)  # type: ignore[arg-type]
    output.write(b"abc")
    output.abort()
    output.write(b"more")
    output.flush()
    output.close()
    assert (to.writes, to.aborted, to.closed) == ([], True, False)


def test_a_write_that_fails_at_the_end_leaves_nothing() -> None:
    to = Recording()
    to.fails = True
    output = _Output(to)  # type: ignore[arg-type]
    output.write(b"abc")
    with pytest.raises(UnavailableError, match="full"):
        output.close()
    assert (to.aborted, to.closed) == (True, False)


def test_a_file_of_one_row_is_one_write(monkeypatch: pytest.MonkeyPatch) -> None:
    table, files = new_files()
    to = Recording()
    monkeypatch.setattr(table.store, "open_output", lambda path, deferred: to)
    file = files.begin("d.db/t/bucket-0", table.schema.fields, without_ranges=frozenset())
    file.write(ROWS)
    size = file.close()
    assert [len(one) for one in to.writes] == [size]
