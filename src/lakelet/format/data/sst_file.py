"""SST data files: the rows of a primary-key table by key, as `docs/spec/sst.md` draws them.

Above the `sst` package, beside Parquet, ORC and Avro. The value of an entry has the sequence number, the row kind and the columns
of the table; its key is encoded by the function that the writer is given. So `_KEY_` columns are neither written nor read, and a
table without a primary key has no such files. No other engine knows them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from lakelet.errors import CorruptionError, InvalidError
from lakelet.format.data.data_file_errors import decoding, open_input
from lakelet.format.data.data_file_format import FormatWriter, KeyedRows, WriteSettings
from lakelet.format.sst.sst_block import COMPRESSIONS
from lakelet.format.sst.sst_parts import SstMeta
from lakelet.format.sst.sst_reader import Source
from lakelet.format.sst.sst_scan import SstScan
from lakelet.format.sst.sst_writer import FRONT_TYPES, SstSettings, SstWriter
from lakelet.model.arrow.arrow_types import to_arrow
from lakelet.model.types import Field
from lakelet.options import (
    SST_BLOCK_SIZE,
    SST_BLOOM_BITS_PER_KEY,
    SST_DELTA_ENCODING,
    SST_RESTART_INTERVAL,
    TableOptions,
)
from lakelet.storage.store import ObjectStore, OutputFile

NAME = "sst"
_FRONT = {"_SEQUENCE_NUMBER": 1, "_VALUE_KIND": 2}
"""The columns in front of those of the table, by their places in a value."""
_ALIASES = {"zstandard": "zstd", "null": "none", "uncompressed": "none"}
# Entries are laid out in arrays of a few numbers for each row.
_WRITTEN_ROWS = 65_536


class SstFormat:
    """The format of rows that are looked up by key."""

    name = NAME

    def open_writer(
        self, output: OutputFile, fields: Sequence[Field], settings: WriteSettings, *, without_ranges: frozenset[str]
    ) -> FormatWriter:
        """Starts an SST file; it has no ranges that could be left out."""
        if settings.keyed is None:
            raise InvalidError("SST files hold rows by their key: a table without a primary key cannot have them")
        return _Writer(output, fields, settings, settings.keyed)

    def read(
        self, store: ObjectStore, path: str, fields: Sequence[Field], columns: Sequence[str], *, batch_rows: int
    ) -> Iterator[pa.RecordBatch]:
        """The named columns of all rows, in key order, some blocks at a time."""
        wanted = [field for field in fields if field.name in columns]
        schema = pa.schema([(field.name, to_arrow(field.type)) for field in wanted])
        where = f"{store.location}/{path}"
        with open_input(store, path) as file:
            scan = open_scan(_Input(store, path, where, file), is_remote=store.is_remote)
            places = [stored_place(scan.meta, field, where) for field in wanted]
            for batch in scan.batches(places):
                renamed = batch.select([]) if not wanted else pa.RecordBatch.from_arrays(batch.columns, schema=schema)
                for begin in range(0, batch.num_rows, batch_rows):
                    yield renamed.slice(begin, batch_rows)


def open_scan(source: Source, *, is_remote: bool = False) -> SstScan:
    """Open a data file. CorruptionError also for another version, as for every file of the table that cannot be read."""
    try:
        return SstScan.open(source, is_remote=is_remote)
    except InvalidError as error:
        raise CorruptionError(str(error)) from error


class StoredSource:
    """A file of a store that is opened for every read, so that it may be kept for long."""

    def __init__(self, store: ObjectStore, path: str, size: int) -> None:
        self.path = f"{store.location}/{path}"
        self.size = size
        self._store = store
        self._name = path

    def read(self, offset: int, size: int) -> bytes:
        """A range; CorruptionError where the file ends before."""
        return self._store.get_range(self._name, offset, min(size, self.size - offset))


class _Input:
    """A file of a store, open for reads."""

    def __init__(self, store: ObjectStore, path: str, where: str, file: pa.NativeFile) -> None:
        self.path = where
        self.size = file.size()
        self._file = file
        self._of = (store, path)

    def read(self, offset: int, size: int) -> bytes:
        """A range; fewer bytes where the file ends before."""
        with decoding(*self._of, "SST"):
            found: bytes = self._file.read_at(size, offset)
            return found


def stored_place(meta: SstMeta, field: Field, where: str) -> int:
    """The place of a column in the values of a file."""
    if field.name in _FRONT:
        return _FRONT[field.name]
    for number, stored in enumerate(meta.fields):
        if stored.name == field.name:
            if to_arrow(stored.type) != to_arrow(field.type):
                raise CorruptionError(f"{where}: column {field.name} is of type {stored.type}, expected {field.type}")
            return number + len(FRONT_TYPES)
    raise CorruptionError(f"{where}: column {field.name} is not in the SST file")


class _Writer:
    def __init__(self, output: OutputFile, fields: Sequence[Field], settings: WriteSettings, keyed: KeyedRows) -> None:
        self._names = [field.name for field in fields if field.name not in _FRONT]
        self._keyed = keyed
        self._output = output
        options = TableOptions(settings.extra)
        layout = SstSettings(
            block_bytes=options.get(SST_BLOCK_SIZE),
            restart_interval=options.get(SST_RESTART_INTERVAL),
            bloom_bits_per_key=options.get(SST_BLOOM_BITS_PER_KEY),
            compression=_compression(settings.compression),
            delta_encoding=options.get(SST_DELTA_ENCODING),
        )
        stored = [field for field in fields if field.name not in _FRONT]
        self._writer = SstWriter(output, keyed.schema_id, stored, layout, create_ms=settings.create_ms)

    def write(self, table: pa.Table) -> None:
        for batch in table.combine_chunks().to_batches(_WRITTEN_ROWS):
            sequences, kinds = (batch.column(name) for name in _FRONT)
            columns = [batch.column(name) for name in self._names]
            self._writer.write(self._keyed.key_bytes(batch), sequences, kinds, columns)

    def size(self) -> int:
        return self._output.tell()

    def close(self) -> None:
        self._writer.close()


def _compression(name: str) -> str:
    """The compression of blocks of a `file.compression` value."""
    lower = name.lower()
    lower = _ALIASES.get(lower, lower)
    if lower not in COMPRESSIONS:
        expected = ", ".join(COMPRESSIONS)
        raise InvalidError(f"option 'file.compression': expected one of {expected} for SST, found {name!r}")
    return lower
