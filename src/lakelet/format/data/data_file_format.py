"""The protocol of data file formats.

A format turns batches in the table's Arrow types into a file and back. It knows nothing of partitions, buckets,
snapshots or schema evolution: `fields` are those of the schema the file was written under, and columns are asked for by
the names they have there. Formats are looked up by the ending of a file's name in `data_files`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa

from lakelet.model.types import Field
from lakelet.storage.store import ObjectStore, OutputFile


@dataclass(frozen=True, slots=True)
class KeyedRows:
    """What rows of a primary-key table are stored under: the schema's id, and the bytes of the key of each row of a batch."""

    schema_id: int
    key_bytes: Callable[[pa.RecordBatch], pa.Array]


@dataclass(frozen=True, slots=True)
class WriteSettings:
    """The encoding settings of files. `extra` are the options under the format's own prefix, such as `parquet.…`.

    `sorted_columns` names columns whose neighbouring values lie close together, for formats that can store differences. `keyed`
    is for formats that store rows by key, and None where rows have none. `create_ms` is when a file is begun.
    """

    compression: str = "zstd"
    compression_level: int = 1
    extra: Mapping[str, str] = field(default_factory=dict)
    sorted_columns: frozenset[str] = frozenset()
    keyed: KeyedRows | None = None
    create_ms: int = 0


class FormatWriter(Protocol):
    """One file being written."""

    def write(self, table: pa.Table) -> None:
        """Appends rows; each call makes a row group, stripe or block of its own."""
        ...

    def size(self) -> int:
        """Bytes written so far, about."""
        ...

    def close(self) -> None:
        """Writes what ends the file; the output itself is closed by its owner."""
        ...


class DataFileFormat(Protocol):
    """A kind of data file."""

    @property
    def name(self) -> str:
        """The value of `file.format`, which is also the ending of file names."""
        ...

    def open_writer(
        self, output: OutputFile, fields: Sequence[Field], settings: WriteSettings, *, without_ranges: frozenset[str]
    ) -> FormatWriter:
        """Starts a file of these columns. The footer must not hold minima and maxima of columns in `without_ranges`,
        since they contain NaN and readers that prune by such a footer would lose rows."""
        ...

    def read(
        self, store: ObjectStore, path: str, fields: Sequence[Field], columns: Sequence[str], *, batch_rows: int
    ) -> Iterator[pa.RecordBatch]:
        """The named columns in the types of `fields`, in file order."""
        ...
