"""Splits to Arrow batches.

Files are read in groups that share a schema version and a format. Parquet files that need nothing but decoding go through one
`pyarrow.dataset` scan, which reads several files and row groups at once and prunes row groups by the filter; files that
need more (an older schema with other names or types, deletion vectors, INT96 timestamps, ORC, Avro) are read one
by one, converted, and filtered afterwards. Rows come in the order of the splits and files.

A group is read by the physical names its schema version gave the columns; no reader is asked to match field ids.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

import pyarrow as pa
from pyarrow.fs import LocalFileSystem, PyFileSystem

from lakelet.errors import CorruptionError, NotFoundError, UnavailableError
from lakelet.format import deletion_vectors
from lakelet.format.data_file_errors import store_failed
from lakelet.format.data_files import format_of_file
from lakelet.format.parquet_file import NAME as PARQUET
from lakelet.format.parquet_file import needs_int96, open_parquet
from lakelet.model.arrow_types import arrow_schema
from lakelet.model.data_file import DataFile
from lakelet.model.schema import TableSchema
from lakelet.model.split import DeletionVector, Split
from lakelet.model.types import Field
from lakelet.predicate.row_filter import RowFilter
from lakelet.read.evolve import deleted_mask, evolve_batch, same_layout
from lakelet.storage.home import TableHome

if TYPE_CHECKING:
    import pyarrow.dataset as ds

_BATCH_ROWS = 131_072
# Where all rows are wanted at once, larger batches and more read-ahead hold nothing that is not held anyway.
_TABLE_BATCH_ROWS = 1 << 20
_TABLE_BATCH_READAHEAD = 16
_TABLE_FRAGMENT_READAHEAD = 4
# A stream of batches holds the row groups in flight, decoded; more of them than these take memory and save no time.
_BATCH_READAHEAD = 4
_FRAGMENT_READAHEAD = 1


@dataclass(frozen=True, slots=True)
class _File:
    data: DataFile
    path: str
    vector: DeletionVector | None
    snapshot_id: int


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
        self._fields = tuple(by_name[name] for name in dict.fromkeys([*columns, *row_filter.columns]))
        self.schema = pa.schema(
            [field.with_nullable(True) for field in arrow_schema([by_name[name] for name in columns])]
        )

    def batches(self, splits: Sequence[Split]) -> Iterator[pa.RecordBatch]:
        """The rows, batch by batch, none of them empty."""
        for (schema_id, plain), group in groupby(_files(splits), key=self._group_key):
            files = list(group)
            source = self._scan_dataset(files, schema_id) if plain else self._read_files(files, schema_id)
            for batch in source:
                if batch.num_rows:
                    yield batch

    def table(self, splits: Sequence[Split]) -> pa.Table:
        """All rows as one table."""
        groups = [(key, list(group)) for key, group in groupby(_files(splits), key=self._group_key)]
        tables = []
        for (schema_id, plain), files in groups:
            if plain and not self._filter.residual:
                with _named(self._home, files):
                    tables.append(self._conform(self._scanner(files, schema_id, whole=True).to_table()))
            else:
                tables.append(pa.Table.from_batches(self.batches_of(files, schema_id, plain), self.schema))
        return pa.concat_tables(tables) if tables else self.schema.empty_table()

    def batches_of(self, files: Sequence[_File], schema_id: int, plain: bool) -> Iterator[pa.RecordBatch]:
        """The rows of one group of files."""
        yield from self._scan_dataset(files, schema_id) if plain else self._read_files(files, schema_id)

    def _group_key(self, file: _File) -> tuple[int, bool]:
        return file.data.schema_id, file.vector is None and self._is_plain(file.data)

    def _is_plain(self, file: DataFile) -> bool:
        """Whether the wanted columns stand in the file just as the table has them now."""
        if not file.name.endswith(f".{PARQUET}"):
            return False
        stored = {field.id: field for field in self._schema_of(file.schema_id).fields}
        for field in self._fields:
            old = stored.get(field.id)
            if old is None or old.name != field.name or not same_layout(old.type, field.type):
                return False
        return bool(self._fields) and not needs_int96(tuple(stored.values()))

    def _scanner(self, files: Sequence[_File], schema_id: int, *, whole: bool = False) -> ds.Scanner:
        import pyarrow.dataset as ds  # noqa: PLC0415 - it loads pandas where that is installed, which takes a second.

        filesystem, _ = self._home.store.arrow_path(files[0].path)
        # Column chunks are fetched ahead only where a request takes long; buffered chunks stay until their file is done.
        remote = not isinstance(filesystem, LocalFileSystem)
        parquet = ds.ParquetFileFormat(default_fragment_scan_options=ds.ParquetFragmentScanOptions(pre_buffer=remote))
        fragments = [self._fragment(parquet, file) for file in files]
        schema = pa.schema([field.with_nullable(True) for field in arrow_schema(self._schema_of(schema_id).fields)])
        names = self._columns if not self._filter.residual else [field.name for field in self._fields]
        return ds.FileSystemDataset(fragments, schema, parquet, filesystem).scanner(
            columns=list(names),
            filter=self._filter.pushdown,
            batch_size=_TABLE_BATCH_ROWS if whole else _BATCH_ROWS,
            batch_readahead=_TABLE_BATCH_READAHEAD if whole else _BATCH_READAHEAD,
            fragment_readahead=_TABLE_FRAGMENT_READAHEAD if whole else _FRAGMENT_READAHEAD,
            use_threads=True,
        )

    def _fragment(self, parquet: ds.ParquetFileFormat, file: _File) -> ds.ParquetFileFragment:
        filesystem, path = self._home.store.arrow_path(file.path)
        if isinstance(filesystem, PyFileSystem):
            # Arrow's threads would call Python from a scan that nobody finished while the interpreter shuts down, and hang.
            return parquet.make_fragment(pa.py_buffer(self._home.store.get(file.path)))
        return parquet.make_fragment(path, filesystem=filesystem)

    def _scan_dataset(self, files: Sequence[_File], schema_id: int) -> Iterator[pa.RecordBatch]:
        with _named(self._home, files):
            for batch in self._scanner(files, schema_id).to_batches():
                kept = self._filter.apply_residual(batch) if self._filter.residual else batch
                yield self._project(kept)

    def _read_files(self, files: Sequence[_File], schema_id: int) -> Iterator[pa.RecordBatch]:
        stored = self._schema_of(schema_id).fields
        wanted = {field.id for field in self._fields}
        names = [field.name for field in stored if field.id in wanted] or [stored[0].name]
        for file in files:
            with _named(self._home, [file]):
                positions = self._deleted(file)
                at = 0
                for batch in format_of_file(file.data.name).read(
                    self._home.store, file.path, stored, names, batch_rows=_BATCH_ROWS
                ):
                    start, at = at, at + batch.num_rows
                    kept = batch if positions is None else batch.filter(deleted_mask(positions, start, batch.num_rows))
                    yield self._project(self._filter.apply(evolve_batch(kept, stored, self._fields)))

    def _deleted(self, file: _File) -> deletion_vectors.Positions | None:
        if file.vector is None:
            return None
        path, place = file.vector.index_path, file.vector.place
        info = self._home.store.head(path)
        if info is None:
            raise NotFoundError(f"{self._home.where(path)} does not exist")
        # The recorded length leaves out the size before and the checksum after the vector, except in the 64-bit form.
        length = min(place.length + deletion_vectors.READ_SLACK, info.size - place.offset)
        data = self._home.store.get_range(path, place.offset, length)
        return deletion_vectors.decode(data, path=self._home.where(path))

    def _project(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays([batch.column(name) for name in self._columns], schema=self.schema)

    def _conform(self, table: pa.Table) -> pa.Table:
        return pa.Table.from_arrays([table.column(name) for name in self._columns], schema=self.schema)


def _files(splits: Sequence[Split]) -> Iterator[_File]:
    for split in splits:
        for data, path, vector in zip(split.files, split.paths, split.deletion_vectors, strict=True):
            yield _File(data, path, vector, split.snapshot_id)


class _named:
    """Turns what goes wrong inside into an error that names the file."""

    def __init__(self, home: TableHome, files: Sequence[_File]) -> None:
        self._home = home
        self._files = files

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        # A store says only that a file is not there; what that means is told by the snapshot.
        if not isinstance(error, (NotFoundError, pa.ArrowException, OSError)):
            return
        for file in self._files:
            self._blame(file, error)
        if store_failed(error):
            raise UnavailableError(
                f"reading below {self._home.where(self._home.paths.root)} failed: {error}"
            ) from error
        raise CorruptionError(
            f"one of {len(self._files)} files below {self._home.where(self._home.paths.root)} cannot be read: {error}"
        ) from error

    def _blame(self, file: _File, error: BaseException) -> None:
        where = self._home.where(file.path)
        info = self._home.store.head(file.path)
        if info is None:
            if self._home.store.head(self._home.paths.snapshot(file.snapshot_id)) is None:
                raise NotFoundError(
                    f"{where} is gone: snapshot {file.snapshot_id} was expired while it was read"
                ) from error
            raise CorruptionError(f"{where} is missing, although snapshot {file.snapshot_id} names it") from error
        if info.size != file.data.size:
            raise CorruptionError(f"{where} has {info.size} bytes; its manifest says {file.data.size}") from error
        if store_failed(error):
            return
        if len(self._files) == 1:
            raise CorruptionError(f"{where} cannot be read: {error}") from error
        if file.data.name.endswith(f".{PARQUET}"):
            try:
                with open_parquet(self._home.store, file.path) as parquet:
                    for _ in parquet.iter_batches():
                        continue
            except (pa.ArrowException, OSError) as found:
                raise CorruptionError(f"{where} cannot be read: {found}") from error
