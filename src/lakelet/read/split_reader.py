"""Read splits that need no merge, as Arrow batches.

Files are read in groups that share a schema version and a format. Parquet files that need nothing but decoding go through one
`pyarrow.dataset` scan, which reads several files and row groups at once and prunes row groups by the filter; files that
need more (an older schema with other names or types, deletion vectors, INT96 timestamps, ORC, Avro) are read one
by one, converted, and filtered afterwards. Rows come in the order of the splits and files.

A group is read by the physical names its schema version gave the columns; no reader is asked to match field ids.
Partition columns come from the manifest: files that were adopted from elsewhere do not have them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from lakelet.format.data.data_file_formats import format_of_file
from lakelet.format.data.parquet_file import NAME as PARQUET
from lakelet.format.data.parquet_file import needs_int96
from lakelet.format.rows.binary_row import decode_row
from lakelet.model.arrow.arrow_types import arrow_schema, to_arrow
from lakelet.model.data_file import DataFile
from lakelet.model.schema import TableSchema
from lakelet.model.split import Split
from lakelet.model.types import FLOATS, Atomic, Field
from lakelet.predicate.row_filter import RowFilter
from lakelet.read.evolve import deleted_mask, evolve_batch, same_layout
from lakelet.read.parquet_scan import BATCH_ROWS, parquet_scanner
from lakelet.read.row_counts import joined
from lakelet.read.split_files import SplitFile, deleted_positions, files_of, naming
from lakelet.storage.home import TableHome

if TYPE_CHECKING:
    import pyarrow.dataset as ds


class SplitReader:
    """Reads columns of splits, filtered. `fields` are the columns wanted, in order, of the table's schema now."""

    def __init__(
        self,
        home: TableHome,
        table_fields: Sequence[Field],
        columns: Sequence[str],
        row_filter: RowFilter,
        schema_of: Callable[[int], TableSchema],
    ) -> None:
        by_name = {field.name: field for field in table_fields}
        self._home = home
        self._columns = tuple(columns)
        self._filter = row_filter
        self._schema_of = schema_of
        self._constants: dict[tuple[int, bytes], dict[str, pa.Scalar]] = {}
        # Rows can only be counted by some column.
        needed = dict.fromkeys([*columns, *row_filter.columns]) or (table_fields[0].name,)
        self._fields = tuple(by_name[name] for name in needed)
        self.schema = pa.schema(
            [field.with_nullable(True) for field in arrow_schema([by_name[name] for name in columns])]
        )

    def batches(self, splits: Sequence[Split]) -> Iterator[pa.RecordBatch]:
        """The rows, batch by batch, none of them empty."""
        for (schema_id, plain), group in groupby(files_of(splits), key=self._group_key):
            files = list(group)
            source = self._scan_dataset(files, schema_id) if plain else self._read_files(files, schema_id)
            for batch in source:
                if batch.num_rows:
                    yield batch

    def table(self, splits: Sequence[Split]) -> pa.Table:
        """All rows as one table."""
        groups = [(key, list(group)) for key, group in groupby(files_of(splits), key=self._group_key)]
        tables = []
        for (schema_id, plain), files in groups:
            if plain and not self._filter.residual:
                with naming(self._home, files):
                    tables.append(self._conform(self._scanner(files, schema_id, whole=True).to_table()))
            else:
                tables.append(pa.Table.from_batches(self.batches_of(files, schema_id, plain), self.schema))
        return joined(tables, self.schema)

    def batches_of(self, files: Sequence[SplitFile], schema_id: int, plain: bool) -> Iterator[pa.RecordBatch]:
        """The rows of one group of files."""
        yield from self._scan_dataset(files, schema_id) if plain else self._read_files(files, schema_id)

    def _group_key(self, file: SplitFile) -> tuple[int, bool]:
        return file.data.schema_id, file.vector is None and self._is_plain(file.data)

    def _is_plain(self, file: DataFile) -> bool:
        """Whether the wanted columns of the file need no conversion to the table's current schema."""
        if not file.name.endswith(f".{PARQUET}"):
            return False
        stored = {field.id: field for field in self._schema_of(file.schema_id).fields}
        for field in self._fields:
            old = stored.get(field.id)
            if old is None or old.name != field.name or not same_layout(old.type, field.type):
                return False
            is_float = isinstance(field.type, Atomic) and field.type.kind in FLOATS
            if is_float and file.write_columns is not None and field.name not in file.write_columns:
                return False
        return not needs_int96(tuple(stored.values()))

    def _scanner(self, files: Sequence[SplitFile], schema_id: int, *, whole: bool = False) -> ds.Scanner:
        schema = pa.schema([field.with_nullable(True) for field in arrow_schema(self._schema_of(schema_id).fields)])
        names = self._columns if not self._filter.residual else [field.name for field in self._fields]
        wanted = {field.name for field in self._fields}
        constants = [_guarantee(self._partition(file), wanted) for file in files]
        return parquet_scanner(
            self._home,
            [file.path for file in files],
            schema,
            names,
            self._filter.pushdown,
            whole=whole,
            constants=constants,
        )

    def _partition(self, file: SplitFile) -> dict[str, pa.Scalar]:
        """The values of the partition columns of a file, by the names they had when it was written."""
        key = (file.data.schema_id, file.partition)
        found = self._constants.get(key)
        if found is None:
            schema = self._schema_of(file.data.schema_id)
            values = decode_row(file.partition, schema.partition_types) if schema.partition_keys else ()
            found = self._constants[key] = {
                name: pa.scalar(value, to_arrow(data_type))
                for name, data_type, value in zip(schema.partition_keys, schema.partition_types, values, strict=True)
            }
        return found

    def _scan_dataset(self, files: Sequence[SplitFile], schema_id: int) -> Iterator[pa.RecordBatch]:
        with naming(self._home, files):
            for batch in self._scanner(files, schema_id).to_batches():
                kept = self._filter.apply_residual(batch) if self._filter.residual else batch
                yield self._project(kept)

    def _read_files(self, files: Sequence[SplitFile], schema_id: int) -> Iterator[pa.RecordBatch]:
        stored = self._schema_of(schema_id).fields
        wanted = {field.id for field in self._fields}
        keys = self._schema_of(schema_id).partition_keys
        in_file = [field.name for field in stored if field.name not in keys]
        names = [field.name for field in stored if field.id in wanted and field.name not in keys]
        names = names or in_file[:1] or [stored[0].name]
        for file in files:
            constants = self._partition(file)
            with naming(self._home, [file]):
                positions = deleted_positions(self._home, file)
                at = 0
                for batch in format_of_file(file.data.name).read(
                    self._home.store, file.path, stored, names, batch_rows=BATCH_ROWS
                ):
                    start, at = at, at + batch.num_rows
                    kept = batch if positions is None else batch.filter(deleted_mask(positions, start, batch.num_rows))
                    for name, value in constants.items():
                        if name in kept.schema.names:
                            continue
                        kept = kept.append_column(name, pa.repeat(value, kept.num_rows))
                    yield self._project(self._filter.apply(evolve_batch(kept, stored, self._fields)))

    def _project(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if not self._columns:
            return batch.select([])
        return pa.RecordBatch.from_arrays([batch.column(name) for name in self._columns], schema=self.schema)

    def _conform(self, table: pa.Table) -> pa.Table:
        if not self._columns:
            return table.select([])
        return pa.Table.from_arrays([table.column(name) for name in self._columns], schema=self.schema)


def _guarantee(constants: Mapping[str, pa.Scalar], wanted: set[str]) -> pc.Expression | None:
    """The partition expression of a file for a dataset. NaN equals nothing, so floats are left out."""
    known: pc.Expression | None = None
    for name, value in constants.items():
        if name in wanted and not pa.types.is_floating(value.type):
            term = pc.field(name) == value if value.is_valid else pc.field(name).is_null()
            known = term if known is None else known & term
    return known
