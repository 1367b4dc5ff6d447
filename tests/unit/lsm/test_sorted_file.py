"""Sorted files: when they roll over, and the metadata of each."""

import pyarrow as pa
import pyarrow.parquet as pq

from lakelet.format.data.file_settings import FileSettings
from lakelet.format.data.new_files import NewFiles
from lakelet.format.rows.binary_row import decode_row
from lakelet.lsm.sorted_file import SortedFileSpec, SortedFileWriter
from lakelet.model.data_file import FILE_SOURCE_COMPACT
from tests.unit.keyed_table import KeyedTable


def rows(*ids: int, kind: int = 0, first: int = 0) -> pa.Table:
    return pa.table(
        {
            "_SEQUENCE_NUMBER": pa.array(range(first, first + len(ids)), pa.int64()),
            "_VALUE_KIND": pa.array([kind] * len(ids), pa.int8()),
            "id": pa.array(ids, pa.int64()),
        }
    )


def writer(table: KeyedTable, level: int = 0) -> SortedFileWriter:
    spec = SortedFileSpec.of(
        table.schema, FileSettings.of(table.schema, level=level), level=level, source=FILE_SOURCE_COMPACT
    )
    return SortedFileWriter(spec, table.home, NewFiles(table.home, spec.settings), "d.db/t/bucket-0")


def test_each_file_has_its_own_ranges() -> None:
    table = KeyedTable({"id": "BIGINT"}, **{"target-file-size": "1 b"})
    made = writer(table, level=3)
    made.write(rows(1, 2, 5, first=40))
    made.write(rows())
    made.write(rows(7, 8, kind=3, first=10))
    assert not made.is_open
    first, second = made.finish()
    types = [field.type for field in table.schema.trimmed_key_fields]
    assert [(decode_row(file.min_key, types), decode_row(file.max_key, types)) for file in (first, second)] == [
        ((1,), (5,)),
        ((7,), (8,)),
    ]
    assert [(file.min_sequence, file.max_sequence, file.delete_row_count) for file in (first, second)] == [
        (40, 42, 0),
        (10, 11, 2),
    ]
    assert {(file.level, file.source) for file in (first, second)} == {(3, FILE_SOURCE_COMPACT)}


def test_options_per_level() -> None:
    table = KeyedTable({"id": "BIGINT"}, **{"file.format.per.level": "2:orc"})
    made = writer(table, level=2)
    made.write(rows(1))
    assert made.finish()[0].name.endswith(".orc")


def test_row_groups_in_chunks() -> None:
    table = KeyedTable({"id": "BIGINT"})
    made = writer(table)
    made.write(pa.concat_tables([rows(1, 2), rows(3, first=2)]))
    made.write(rows(4, first=3))
    (file,) = made.finish()
    assert (file.row_count, file.max_sequence) == (4, 3)
    (path,) = table.data_files()
    with pq.ParquetFile(pa.BufferReader(table.store.get(path))) as parquet:
        assert [parquet.metadata.row_group(number).num_rows for number in range(parquet.num_row_groups)] == [3, 1]


def test_sequence_numbers_and_sorted_keys_are_stored_as_differences() -> None:
    table = KeyedTable({"id": "BIGINT"})
    made = writer(table)
    made.write(rows(*range(0, 40_000, 2)))
    made.finish()
    (path,) = table.data_files()
    group = pq.ParquetFile(pa.BufferReader(table.store.get(path))).metadata.row_group(0)
    chunks = [group.column(index) for index in range(group.num_columns)]
    differences = {chunk.path_in_schema for chunk in chunks if "DELTA_BINARY_PACKED" in chunk.encodings}
    assert differences == {"_KEY_id", "_SEQUENCE_NUMBER", "id"}


def test_nothing_written_is_no_file() -> None:
    table = KeyedTable({"id": "BIGINT"})
    made = writer(table)
    made.write(rows())
    assert made.finish() == ()
    assert table.data_files() == []
