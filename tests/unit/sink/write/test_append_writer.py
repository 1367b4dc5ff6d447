"""The writer of append tables: when files roll over, its memory, and the metadata of files."""

import math

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakelet import InvalidError, Lake, Table
from lakelet.model.commit_message import CommitMessage
from lakelet.sink.write.append_writer import AppendWriter
from lakelet.sink.write.settings import SinkSettings
from lakelet.storage.home import TableHome
from lakelet.storage.memory import MemoryStore


class Made:
    """A table with the inside of it."""

    def __init__(self, columns: list[tuple[str, str]], partitions: tuple[str, ...] = (), **options: str) -> None:
        self.store = MemoryStore()
        lake = Lake(self.store)
        lake.create_database("d")
        named = {name.replace("_", "-").replace("file-format", "file.format"): text for name, text in options.items()}
        self.table: Table = lake.create_table("d.t", columns, partitioned_by=partitions, options=named)
        self.home: TableHome = self.table.scan().home
        self.schema = self.table.schema

    def writer(self) -> AppendWriter:
        return AppendWriter(self.home, self.schema)

    def batch(self, **columns: list[object]) -> pa.RecordBatch:
        return pa.RecordBatch.from_pydict(columns, schema=self.table.scan().arrow_schema)

    def data_files(self) -> list[str]:
        return sorted(info.path for info in self.store.list("d.db/t") if "/bucket-" in info.path)


def rows_of(messages: tuple[CommitMessage, ...]) -> list[int]:
    return [file.row_count for message in messages for file in message.new_files]


def test_one_file_for_many_batches() -> None:
    made = Made([("id", "BIGINT")])
    writer = made.writer()
    for start in range(5):
        writer.write(made.batch(id=[start, start + 10]))
    (message,) = writer.prepare_commit()
    (file,) = message.new_files
    assert (file.row_count, file.min_sequence, file.max_sequence, file.level, file.delete_row_count) == (10, 0, 9, 0, 0)
    assert (message.bucket, message.total_buckets, message.deleted_files) == (0, -1, ())
    (path,) = made.data_files()
    assert path.endswith(file.name)
    assert made.store.head(path).size == file.size  # type: ignore[union-attr]


def test_a_file_is_closed_at_its_target_size() -> None:
    made = Made([("id", "BIGINT"), ("s", "STRING")], **{"target-file-size": "20 kb", "file.compression": "none"})
    writer = made.writer()
    for start in range(0, 20_000, 1000):
        numbers = list(range(start, start + 1000))
        writer.write(made.batch(id=numbers, s=[f"{number:040}" for number in numbers]))
    (message,) = writer.prepare_commit()
    sizes = [file.size for file in message.new_files]
    assert len(sizes) > 5
    assert all(size < 3 * 20 * 1024 for size in sizes)
    assert sum(rows_of((message,))) == 20_000
    # Sequence numbers run on from file to file.
    ends = [(file.min_sequence, file.max_sequence) for file in message.new_files]
    assert [low for low, _ in ends] == [0, *(high + 1 for _, high in ends[:-1])]


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_memory_is_bounded_with_many_partitions(file_format: str) -> None:
    limit = 40_000
    options = {"write.batch-memory": f"{limit} b", "file.format": file_format}
    made = Made([("id", "BIGINT"), ("p", "INT"), ("s", "STRING")], ("p",), **options)
    writer = made.writer()
    most = 0
    for start in range(0, 30_000, 3000):
        numbers = list(range(start, start + 3000))
        writer.write(made.batch(id=numbers, p=[number % 60 for number in numbers], s=["x" * 20] * 3000))
        held = sum(part.nbytes for bucket in writer._buckets.values() for part in bucket._buffer)
        assert held == sum(bucket.buffered for bucket in writer._buckets.values())
        most = max(most, held)
    assert 0 < most <= limit
    assert sum(rows_of(writer.prepare_commit())) == 30_000


def test_open_files_are_bounded() -> None:
    made = Made([("id", "BIGINT"), ("p", "INT")], ("p",), **{"write.batch-memory": "1 b"})
    most = SinkSettings.of(made.schema).max_open_files
    writer = made.writer()
    numbers = list(range(most + 50))
    writer.write(made.batch(id=numbers, p=numbers))
    assert sum(bucket.is_open for bucket in writer._buckets.values()) <= most
    assert len(writer.prepare_commit()) == most + 50


def test_rows_with_the_first_nan_begin_a_new_file() -> None:
    made = Made([("id", "BIGINT"), ("x", "DOUBLE"), ("y", "FLOAT")], **{"file.block-size": "1 b"})
    writer = made.writer()
    for x, y in ((1.0, 1.0), (2.0, 2.0), (math.nan, 3.0), (4.0, 4.0), (5.0, math.nan)):
        writer.write(made.batch(id=[1], x=[x], y=[y]))
    (message,) = writer.prepare_commit()
    assert rows_of((message,)) == [2, 2, 1]
    for path, ranged in zip(made.data_files(), ({"id", "x", "y"}, {"id", "y"}, {"id"}), strict=True):
        with pq.ParquetFile(pa.BufferReader(made.store.get(path))) as parquet:
            groups = [parquet.metadata.row_group(number) for number in range(parquet.metadata.num_row_groups)]
            columns = [group.column(index) for group in groups for index in range(3)]
            assert {
                column.path_in_schema for column in columns if column.statistics and column.statistics.has_min_max
            } == ranged


def test_abort_removes_closed_and_open_files() -> None:
    made = Made([("id", "BIGINT")], **{"target-file-size": "1 b"})
    writer = made.writer()
    writer.write(made.batch(id=list(range(10))))
    assert made.data_files()
    writer.abort()
    assert made.data_files() == []
    with pytest.raises(InvalidError, match="start a new one"):
        writer.write(made.batch(id=[1]))


def test_nothing_written_is_no_message() -> None:
    made = Made([("id", "BIGINT")])
    writer = made.writer()
    writer.write(made.batch(id=[]))
    assert writer.prepare_commit() == ()
    assert made.data_files() == []


def test_names_follow_the_options() -> None:
    made = Made(
        [("id", "BIGINT")],
        **{"data-file.prefix": "part-", "file.suffix.include.compression": "true", "file.compression": "snappy"},
    )
    writer = made.writer()
    writer.write(made.batch(id=[1]))
    ((file,),) = [message.new_files for message in writer.prepare_commit()]
    assert file.name.startswith("part-")
    assert file.name.endswith("-0.snappy.parquet")
