"""The rows of a version with their places, for statements that find rows by any condition and then change them.

    column …, __lakelet_file, __lakelet_row     or other names for the place, where columns have these names

In a table without a primary key the place is the number of a file and the number of the row among the file's visible
rows. It is the same however often the file is read, so that the rows found are the ones deleted. In a primary-key table
rows are identified by their key; there `__lakelet_row` only distinguishes the rows of one read, and the file is always 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakelet.commit.metadata.schemas import SchemaVersions
from lakelet.model.arrow.arrow_types import arrow_schema
from lakelet.model.schema import TableSchema
from lakelet.model.snapshot import Snapshot
from lakelet.model.split import Split
from lakelet.options import TableOptions
from lakelet.predicate.row_filter import row_filter
from lakelet.read.split_reader import SplitReader
from lakelet.scan.plan import Planner
from lakelet.storage.home import TableHome
from lakelet.table.read.table_scan import TableScan

FILE = "__lakelet_file"
ROW = "__lakelet_row"
_PLACES_AT_ONCE = 1 << 20


class LocatedRows:
    """The rows of one snapshot with their places."""

    def __init__(self, home: TableHome, schema: TableSchema, snapshot: Snapshot | None) -> None:
        self._home = home
        self._table_schema = schema
        self._snapshot = snapshot
        self._schema_of = SchemaVersions(home, {schema.id: schema})
        self._splits: dict[int, Split] = {}
        self._numbers: dict[str, int] = {}
        self._next = count()

    @property
    def schema(self) -> pa.Schema:
        """The columns, and those of the place."""
        return self.schema_with(FILE, ROW)

    def schema_with(self, file: str, row: str) -> pa.Schema:
        """The same with other names for the place's columns."""
        columns = [field.with_nullable(True) for field in arrow_schema(self._table_schema.fields)]
        return pa.schema([*columns, pa.field(file, pa.int32()), pa.field(row, pa.int64())])

    def read(
        self,
        columns: Sequence[str] | None = None,
        condition: pc.Expression | None = None,
        *,
        file: str = FILE,
        row: str = ROW,
    ) -> Iterator[pa.RecordBatch]:
        """The rows in some columns, in the order of the schema. Files that cannot match the condition are pruned, rows that do
        not match it are kept."""
        wanted = pa.schema([one for one in self.schema_with(file, row) if columns is None or one.name in columns])
        if self._snapshot is None:
            return
        names = [name for name in wanted.names if name not in (file, row)]
        for batch, number, start in self._with_places(names, condition):
            arrays = [batch.column(name) for name in names]
            if file in wanted.names:
                arrays.append(pa.array(np.full(batch.num_rows, number, np.int32)))
            if row in wanted.names:
                arrays.append(pa.array(np.arange(start, start + batch.num_rows, dtype=np.int64)))
            yield pa.RecordBatch.from_arrays(arrays, schema=wanted)

    def file(self, number: int) -> Split:
        """The file of that number, among those that were read, as a commit that removes it needs it."""
        return self._splits[number]

    def is_emptied(self, number: int, gone: np.ndarray[tuple[int], np.dtype[np.int64]]) -> bool:
        """Whether these are known to be all rows of a file."""
        split = self._splits[number]
        return _is_counted(split) and split.least_rows == len(gone)

    def left(self, number: int, gone: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Iterator[pa.RecordBatch]:
        """The rows of a file without the deleted ones (their numbers, ascending)."""
        split, start = self._splits[number], 0
        if self.is_emptied(number, gone):
            return
        for batch in self._reader(self._table_schema.names).batches([split]):
            keep = np.ones(batch.num_rows, bool)
            low, high = np.searchsorted(gone, [start, start + batch.num_rows])
            keep[gone[low:high] - start] = False
            start += batch.num_rows
            if keep.any():
                yield batch.filter(pa.array(keep))

    def _with_places(
        self, names: Sequence[str], condition: pc.Expression | None
    ) -> Iterator[tuple[pa.RecordBatch, int, int]]:
        """Batches of these columns, each with its file and the number of its first row."""
        if self._table_schema.primary_keys:
            yield from self._numbered(names, condition)
            return
        assert self._snapshot is not None
        planner = Planner(self._home, self._table_schema, self._schema_of, TableOptions(self._table_schema.options))
        plan = planner.plan(self._snapshot, condition, whole_entries=True)
        for one in (one for split in plan.splits for one in split.single_files()):
            number = self._number(one)
            start = 0
            for batch in self._file_rows(one, names):
                yield batch, number, start
                start += batch.num_rows

    def _numbered(
        self, names: Sequence[str], condition: pc.Expression | None
    ) -> Iterator[tuple[pa.RecordBatch, int, int]]:
        """The merged rows of a primary-key table."""
        needed = names or self._table_schema.primary_keys[:1]
        scan = TableScan(self._home, self._table_schema, self._snapshot, tuple(needed), condition)
        start = 0
        for batch in scan.to_batches():
            yield batch, 0, start
            start += batch.num_rows

    def _number(self, one: Split) -> int:
        name = one.files[0].name
        number = self._numbers.setdefault(name, next(self._next))
        self._splits.setdefault(number, one)
        return number

    def _file_rows(self, one: Split, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        if names or not _is_counted(one):
            yield from self._reader(names or self._table_schema.names[:1]).batches([one])
            return
        # The number of rows is known without reading them.
        for start in range(0, one.least_rows, _PLACES_AT_ONCE):
            rows = min(_PLACES_AT_ONCE, one.least_rows - start)
            yield pa.RecordBatch.from_arrays([pa.nulls(rows)], [""])

    def _reader(self, names: Sequence[str]) -> SplitReader:
        fields = self._table_schema.fields
        return SplitReader(self._home, fields, names, row_filter(None, fields), self._schema_of)


def _is_counted(one: Split) -> bool:
    """Whether the number of visible rows of a file is known."""
    vector = one.deletion_vectors[0]
    return vector is None or vector.place.cardinality is not None
