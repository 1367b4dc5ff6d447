"""Rows that a lookup found in a lookup file, and where they lie in the data file that it was made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lakelet.format.index.deletion_vectors import Positions
from lakelet.format.sst.sst_reader import SstRows
from lakelet.model.row_arrays import Kinds, Mask
from lakelet.model.types import Field
from lakelet.read.evolve import evolve_batch
from lakelet.read.lookup.key_bounds import Places
from lakelet.read.lookup.lookup_blocks import LookupFile
from lakelet.read.lookup.lookup_spec import nullable


@dataclass(frozen=True, slots=True)
class SstHits:
    """Rows found in blocks of one lookup file, and the place of the key of each."""

    lookup: LookupFile
    block: SstRows
    stored: tuple[Field, ...]
    numbers: Places
    places: Places
    kinds: Kinds | None

    def keep(self, mask: Mask) -> SstHits:
        """Some of the rows."""
        if mask.all():
            return self
        kinds = None if self.kinds is None else self.kinds[mask]
        return SstHits(self.lookup, self.block, self.stored, self.numbers[mask], self.places[mask], kinds)

    def live(self, deleted: Positions | None) -> SstHits:
        """The rows whose positions are not among these, which ascend."""
        if deleted is None or not len(deleted):
            return self
        own = self.positions()
        at = np.searchsorted(deleted, own)
        return self.keep(~((at < len(deleted)) & (deleted[np.minimum(at, len(deleted) - 1)] == own)))

    def positions(self) -> Places:
        """The position of each row in the data file."""
        found: Places = self.block.column(len(self.stored)).to_numpy()[self.numbers]
        return found

    def sequences(self) -> NDArray[np.int64]:
        """The sequence number of each row."""
        return self.block.sequences[self.numbers]

    def rows(self, fields: Sequence[Field]) -> pa.RecordBatch:
        """Columns of the rows, in the types of the table now."""
        wanted = {field.id for field in fields}
        numbers = pa.array(self.numbers)
        present = [(place, field) for place, field in enumerate(self.stored) if field.id in wanted]
        if not present:
            # A batch without columns does not tell how many rows it has.
            schema = nullable(fields)
            return pa.RecordBatch.from_arrays([pa.nulls(len(numbers), one.type) for one in schema], schema=schema)
        first, count = (int(self.numbers[0]) if len(numbers) else 0), len(numbers)
        if count and self.numbers[-1] - first + 1 == count and (np.diff(self.numbers) == 1).all():
            columns = [self.block.column(place).slice(first, count) for place, _ in present]
        else:
            columns = [self.block.column(place).take(numbers) for place, _ in present]
        batch = pa.RecordBatch.from_arrays(columns, names=[field.name for _, field in present])
        return evolve_batch(batch, self.stored, fields)
