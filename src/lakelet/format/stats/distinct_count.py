"""Count distinct values of a column: exactly while they are few, then by a HyperLogLog sketch.

Up to 16,384 different values are kept as they are. Beyond that their hashes (the 32-bit Murmur3 that also finds buckets) go
into 16,384 registers, and the count is an estimate with a standard error of 0.8 %. Either way memory is bounded, whatever
the number of rows; every step works on whole arrays. NULLs are not counted, and 0.0 and -0.0 are one value.

    register    the hash's first 14 bits
    rank        place of the first 1 among the other 18 bits, 19 where there is none; a register keeps the greatest
    estimate    0.7213 / (1 + 1.079 / m) * m² / sum of 2^-register; linear counting where it is below 2.5 m;
                corrected for hashes that fall together where it nears 2^32

See Flajolet, Fusy, Gandouet, Meunier: HyperLogLog, 2007.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakelet.format.rows.binary_row_columns import hash_rows
from lakelet.model.types import DataType

EXACT_VALUES = 16_384
# Values of this size altogether are as good a reason to go over to hashes as too many of them.
_EXACT_BYTES = 8 << 20
_INDEX_BITS = 14
_RANK_BITS = 32 - _INDEX_BITS
_REGISTERS = 1 << _INDEX_BITS


class DistinctCount:
    """Counts the different values of one column of an atomic type, array by array."""

    def __init__(self, data_type: DataType) -> None:
        self._type = data_type
        self._values: pa.Array | None = None
        self._registers: npt.NDArray[np.uint8] | None = None

    def update(self, array: pa.Array) -> None:
        """Takes in more values."""
        present = array.drop_null() if array.null_count else array
        if pa.types.is_floating(present.type):
            present = pc.add(present, pa.scalar(0.0, present.type))
        if self._registers is not None:
            self._add_hashes(present)
            return
        fresh = pc.unique(present)
        values = fresh if self._values is None else pc.unique(pa.concat_arrays([self._values, fresh]))
        self._values = values
        if len(values) > EXACT_VALUES or values.nbytes > _EXACT_BYTES:
            self._registers = np.zeros(_REGISTERS, np.uint8)
            self._add_hashes(values)
            self._values = None

    @property
    def count(self) -> int:
        """The number of distinct values."""
        if self._registers is None:
            return 0 if self._values is None else len(self._values)
        return _estimate(self._registers)

    def _add_hashes(self, values: pa.Array) -> None:
        hashes = hash_rows([values], [self._type]).view(np.uint32)
        low = hashes & np.uint32((1 << _RANK_BITS) - 1)
        # frexp gives the number of bits that a number needs, 0 for 0.
        ranks = (_RANK_BITS + 1 - np.frexp(low)[1]).astype(np.uint8)
        np.maximum.at(self._registers, hashes >> np.uint32(_RANK_BITS), ranks)  # type: ignore[arg-type]


def _estimate(registers: npt.NDArray[np.uint8]) -> int:
    raw = 0.7213 / (1 + 1.079 / _REGISTERS) * _REGISTERS**2 / float(np.exp2(-registers.astype(np.float64)).sum())
    empty = int((registers == 0).sum())
    if raw <= 2.5 * _REGISTERS and empty:
        return round(_REGISTERS * math.log(_REGISTERS / empty))
    if raw <= 2**32 / 30:
        return round(raw)
    return round(-(2**32) * math.log(max(1 - raw / 2**32, 2**-32)))
