"""The files of one writer: names of their own, and none left after a removal."""

import logging

import pyarrow as pa
import pytest

from lakelet.errors import InvalidError, UnavailableError
from lakelet.format.data.file_settings import FileSettings
from lakelet.format.data.new_files import NewFiles
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
