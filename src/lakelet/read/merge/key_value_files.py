"""Read data files of a primary-key table before the merge: the projected columns and those that decide which row wins.

Parquet files that need nothing but decoding go through one dataset scan where they are read whole, since that decodes
their row groups side by side. All others (an older schema, deletion vectors, INT96 timestamps, ORC, Avro) are read one by one and
brought into the types of the table now. A streamed run is decoded batch by batch, never a whole row group.

The key is taken from the columns of the table, which every file has; `_KEY_` columns, which thin files lack, are never read.
Rows that a deletion vector deletes and rows outside the filter over the key are dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow.fs import LocalFileSystem

from lakelet.errors import CorruptionError
from lakelet.format.data.data_file_errors import open_input
from lakelet.format.data.data_file_formats import format_of_file
from lakelet.format.data.parquet_file import needs_int96
from lakelet.format.data.restored_columns import restore_batch
from lakelet.lsm.key_value_columns import KIND_FIELD, SEQUENCE_FIELD, file_fields
from lakelet.model.arrow.arrow_types import arrow_schema, to_arrow
from lakelet.model.schema import TableSchema
from lakelet.model.types import Field
from lakelet.predicate.row_filter import RowFilter
from lakelet.read.evolve import deleted_mask, evolve_batch, same_layout
from lakelet.read.parquet_scan import BATCH_ROWS, matching_row_groups, parquet_scanner
from lakelet.read.split_files import SplitFile, deleted_positions, naming
from lakelet.storage.home import TableHome

_FRAGMENT = "__fragment_index"
# A column chunk is streamed through a buffer of this size at most; a request to a remote store is worth a larger one.
_LOCAL_BUFFER_BYTES = 256 << 10
_SAMPLED_ROWS = 1024
_MOST_BUFFER_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class KeyValueFiles:
    """Reads `fields` of the table's current schema, and the sequence numbers and kinds where they are requested.

    `below` is a filter over columns of the key and the partition that can be pushed down entirely.
    """

    home: TableHome
    key: tuple[str, ...]
    fields: tuple[Field, ...]
    below: RowFilter
    schema_of: Callable[[int], TableSchema]
    _plain: dict[int, bool] = field(default_factory=dict)

    def read(self, files: Sequence[SplitFile], *, sequences: bool, kinds: bool, whole: bool) -> list[pa.Table]:
        """The rows of each file. `whole` says that nothing is gained by small batches."""
        wanted = self._wanted(sequences, kinds)
        plain = [file for file in files if self._is_plain(file)]
        scanned = iter(self._scan(plain, wanted, whole=whole) if plain else ())
        schema = _nullable(wanted)
        return [
            next(scanned)
            if self._is_plain(file)
            else pa.Table.from_batches(self._batches(file, wanted, BATCH_ROWS, _MOST_BUFFER_BYTES), schema)
            for file in files
        ]

    def stream(
        self, files: Sequence[SplitFile], *, sequences: bool, kinds: bool, batch_rows: int, buffer_bytes: int
    ) -> Generator[pa.RecordBatch, None, None]:
        """The rows of files that follow one another, batch by batch. Each column of a file is read through a buffer."""
        wanted = self._wanted(sequences, kinds)
        for file in files:
            yield from self._batches(file, wanted, batch_rows, buffer_bytes)

    def sampled_row_bytes(self, file: SplitFile) -> int:
        """About how much memory a row takes, by the first ones of a file."""
        stored = file_fields(self.schema_of(file.data.schema_id), thin=True)
        ids = {field.id for field in self.fields}
        present = [field for field in stored if field.id in ids]
        with naming(self.home, [file]):
            for batch in self._decoded(file, stored, present, _SAMPLED_ROWS, _LOCAL_BUFFER_BYTES, None):
                if batch.num_rows:
                    return -(-int(batch.nbytes) // int(batch.num_rows))
        return 0

    def matching_rows(self, file: SplitFile) -> int:
        """The number of rows in row groups that may hold matching keys."""
        groups = self._matching_groups(file)
        return file.data.row_count if groups is None else sum(rows for _, rows in groups)

    def _matching_groups(self, file: SplitFile) -> list[tuple[int, int]] | None:
        """The row groups that may hold matching keys, as (place, rows), by their statistics."""
        if self.below.pushdown is None or not self._is_plain(file):
            return None
        with naming(self.home, [file]):
            return matching_row_groups(self.home, file.path, _nullable(self.fields), self.below.pushdown)

    def _wanted(self, sequences: bool, kinds: bool) -> tuple[Field, ...]:
        return (*((SEQUENCE_FIELD,) if sequences else ()), *((KIND_FIELD,) if kinds else ()), *self.fields)

    def _is_plain(self, file: SplitFile) -> bool:
        """Whether the columns of the file need no conversion to the table's current schema."""
        if not file.is_parquet or file.vector is not None:
            return False
        known = self._plain.get(file.data.schema_id)
        if known is None:
            stored = {field.id: field for field in self.schema_of(file.data.schema_id).fields}
            known = not needs_int96(tuple(stored.values())) and all(
                (old := stored.get(field.id)) is not None
                and old.name == field.name
                and same_layout(old.type, field.type)
                for field in self.fields
            )
            self._plain[file.data.schema_id] = known
        return known

    def _scan(self, files: Sequence[SplitFile], wanted: Sequence[Field], *, whole: bool) -> Iterator[pa.Table]:
        schema = _nullable(wanted)
        condition = self.below.pushdown
        names = schema.names if condition is None else [*schema.names, _FRAGMENT]
        with naming(self.home, files):
            scanner = parquet_scanner(self.home, [file.path for file in files], schema, names, condition, whole=whole)
            table = scanner.to_table()
        if condition is None:
            counts = [file.data.row_count for file in files]
        else:
            counts = np.bincount(table.column(_FRAGMENT).to_numpy(), minlength=len(files)).tolist()
            table = table.select(schema.names)
        if sum(counts) != table.num_rows:
            self._refuse_counts(files)
        at = 0
        for file, count in zip(files, counts, strict=True):
            rows = table.slice(at, count)
            self._check_key(file, rows)
            yield rows
            at += count

    def _refuse_counts(self, files: Sequence[SplitFile]) -> None:
        for file in files:
            with open_input(self.home.store, file.path) as source:
                self._check_count(file, pq.read_metadata(source).num_rows)

    def _check_count(self, file: SplitFile, found: int) -> None:
        if found != file.data.row_count:
            where = self.home.where(file.path)
            raise CorruptionError(f"{where}: its manifest says {file.data.row_count} rows, found {found}")

    def _check_key(self, file: SplitFile, rows: pa.Table | pa.RecordBatch) -> None:
        for name in self.key:
            if rows.column(name).null_count:
                raise CorruptionError(f"{self.home.where(file.path)}: key column {name!r} holds NULL")

    def _batches(
        self, file: SplitFile, wanted: Sequence[Field], batch_rows: int, buffer_bytes: int
    ) -> Iterator[pa.RecordBatch]:
        stored = file_fields(self.schema_of(file.data.schema_id), thin=True)
        ids = {field.id for field in wanted}
        present = [field for field in stored if field.id in ids]
        with naming(self.home, [file]):
            positions = deleted_positions(self.home, file)
            groups = self._matching_groups(file)
            at = 0
            for batch in self._decoded(file, stored, present, batch_rows, buffer_bytes, groups):
                start, at = at, at + batch.num_rows
                kept = batch if positions is None else batch.filter(deleted_mask(positions, start, batch.num_rows))
                rows = self.below.apply(evolve_batch(kept, stored, wanted))
                if rows.num_rows:
                    self._check_key(file, rows)
                    yield rows
        if groups is None:
            self._check_count(file, at)

    def _decoded(
        self,
        file: SplitFile,
        stored: Sequence[Field],
        present: Sequence[Field],
        batch_rows: int,
        buffer_bytes: int,
        groups: list[tuple[int, int]] | None,
    ) -> Iterator[pa.RecordBatch]:
        """Columns of a file in the types of its schema."""
        names = [field.name for field in present]
        if not file.is_parquet or needs_int96(stored) or any("." in field.name for field in stored):
            yield from format_of_file(file.data.name).read(
                self.home.store, file.path, stored, names, batch_rows=batch_rows
            )
            return
        schema = pa.schema([(field.name, to_arrow(field.type)) for field in present])
        is_local = isinstance(self.home.store.arrow_path(file.path)[0], LocalFileSystem)
        buffer_size = min(buffer_bytes, _LOCAL_BUFFER_BYTES if is_local else _MOST_BUFFER_BYTES)
        with open_input(self.home.store, file.path) as source:
            parquet = pq.ParquetFile(source, pre_buffer=False, buffer_size=buffer_size)
            if missing := [name for name in names if name not in parquet.schema_arrow.names]:
                where = self.home.where(file.path)
                raise CorruptionError(f"{where}: column {', '.join(missing)} is not in the Parquet file")
            places = None if groups is None else [place for place, _ in groups]
            for batch in parquet.iter_batches(batch_rows, row_groups=places, columns=names):
                yield batch if batch.schema.equals(schema) else restore_batch(batch, schema)


def _nullable(fields: Sequence[Field]) -> pa.Schema:
    return pa.schema([field.with_nullable(True) for field in arrow_schema(fields)])
