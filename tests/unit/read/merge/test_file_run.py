"""A data file as a source of sorted rows."""

from __future__ import annotations

from lakelet.lsm.source.row_source import RowRequest, RowSource
from lakelet.predicate.row_filter import row_filter
from lakelet.read.merge.file_run import FileRun
from lakelet.read.merge.key_value_files import KeyValueFiles
from lakelet.read.split_files import files_of
from tests.unit.read.key_value_table import KeyValueTable, schema_of_columns


def test_a_file_gives_its_rows_as_any_source_does() -> None:
    table = KeyValueTable(schema_of_columns({"k": "INT NOT NULL", "v": "STRING"}, ["k"]))
    file = table.write([(4, 0, {"k": 1, "v": "a"}), (9, 3, {"k": 2, "v": "b"}), (5, 2, {"k": 3, "v": "c"})])
    fields = tuple(table.schema.fields)
    below = row_filter(None, table.schema.fields)
    reader = KeyValueFiles(table.home, table.schema.trimmed_primary_keys, fields, below, table.schema_of)
    (split_file,) = files_of([table.split()])
    source: RowSource = FileRun(split_file, reader)
    assert source.data is file
    request = RowRequest(fields, below, sequences=True, kinds=False, batch_rows=2, buffer_bytes=1 << 16)
    batches = list(source.batches(request))
    assert [batch.num_rows for batch in batches] == [2, 1]
    assert all(batch.schema.equals(request.schema) for batch in batches)
    assert [tuple(row.values()) for batch in batches for row in batch.to_pylist()] == [
        (4, 1, "a"),
        (9, 2, "b"),
        (5, 3, "c"),
    ]
