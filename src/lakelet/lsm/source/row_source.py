"""The protocol of sorted runs that are merged: data files, and runs in memory.

    SourceStats    what is known before a row is read: key range, sequence numbers, retracts     cuts buckets into sections
    batches        rows in key order, in the columns asked for                                   the merge
    search         all rows of some keys                                                         lookups

Rows of a source come in key order. A key may have several rows in a source that is no file (a memtable keeps every version for an
engine that folds): they are neighbours, oldest first. This module reads nothing; files are `read.merge.file_run` and
`read.lookup.point_reader`, memory is `memory_run`.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lakelet.lsm.key_value_columns import KIND_FIELD, SEQUENCE_FIELD
from lakelet.model.arrow.arrow_types import arrow_schema
from lakelet.model.row_arrays import Kinds, Mask
from lakelet.model.types import Field
from lakelet.predicate.row_filter import RowFilter

Places = NDArray[np.int64]


class SourceStats(Protocol):
    """The metadata of a source; a `DataFile` is one. Keys are BinaryRows of the trimmed primary key."""

    @property
    def min_key(self) -> bytes:
        """The least key."""

    @property
    def max_key(self) -> bytes:
        """The greatest key."""

    @property
    def min_sequence(self) -> int:
        """The least sequence number."""

    @property
    def max_sequence(self) -> int:
        """The greatest sequence number."""

    @property
    def row_count(self) -> int:
        """The number of rows."""

    @property
    def delete_row_count(self) -> int | None:
        """The number of retracts, None where it is unknown."""

    @property
    def level(self) -> int:
        """The level of the source in the bucket's tree; 0 for what is no file."""

    @property
    def size(self) -> int:
        """The bytes that are stored; 0 for what is no file."""


@dataclass(frozen=True, slots=True)
class RowRequest:
    """The columns that a merge reads from a source: `fields` are columns of the table in its current types.

    `below` is a filter over columns of the key and the partition, `sequences` and `kinds` say whether these columns are needed.
    """

    fields: tuple[Field, ...]
    below: RowFilter
    sequences: bool
    kinds: bool
    batch_rows: int
    buffer_bytes: int

    @property
    def schema(self) -> pa.Schema:
        """The columns of the batches: sequence numbers and kinds first, where they are requested."""
        own = (*((SEQUENCE_FIELD,) if self.sequences else ()), *((KIND_FIELD,) if self.kinds else ()))
        return pa.schema([field.with_nullable(True) for field in arrow_schema([*own, *self.fields])])


class LookupKeys(Protocol):
    """The keys of a lookup, by column in key order, and as bytes (`lsm.key_bytes`)."""

    @property
    def columns(self) -> Sequence[pa.Array]:
        """The columns of the trimmed primary key, in the types of the table now."""

    @property
    def encoded(self) -> Sequence[bytes]:
        """The keys as bytes that compare like keys."""


class Hits(Protocol):
    """Rows that a lookup found in one place, and for each the place of its key among those looked for.

    `kinds` is None where all rows are additions. Values are fetched lazily, so that a superseded row costs none.
    """

    @property
    def places(self) -> Places:
        """The place of each row's key among the keys of the lookup."""

    @property
    def kinds(self) -> Kinds | None:
        """The row kind of each row."""

    def keep(self, mask: Mask) -> Hits:
        """Some of the rows."""

    def sequences(self) -> NDArray[np.int64]:
        """The sequence number of each row."""

    def rows(self, fields: Sequence[Field]) -> pa.RecordBatch:
        """Columns of the rows, in the types of the table now."""


class RowSource(Protocol):
    """Sorted rows of one bucket."""

    @property
    def data(self) -> SourceStats:
        """The metadata of the rows."""

    def batches(self, request: RowRequest) -> Generator[pa.RecordBatch, None, None]:
        """The rows that pass the filter, in key order; a merge may stop before the end and close it."""


class LookupSource(Protocol):
    """Rows of one bucket that are found by key. The files of a bucket are one together: their key ranges are searched at once."""

    def search(self, keys: LookupKeys) -> Sequence[Hits]:
        """All rows of the keys; of rows with one sequence number the newer is found later."""


class Run(RowSource, LookupSource, Protocol):
    """A run overlaid on the files of a bucket: merged with them, and searched with them."""
