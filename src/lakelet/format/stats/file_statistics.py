"""Collect the statistics of a data file while it is written; plans prune by them.

Takes every batch of a file, gives the file's `Stats`. Which columns have which statistics is decided by
options (`metadata.stats-mode`, `fields.<name>.stats-mode`, `metadata.stats-keep-first-n-columns`,
`metadata.stats-dense-store`):

    none            nothing
    counts          how many NULLs
    truncate(N)     that, and minimum and maximum, of text no more than N characters
    full            that, and minimum and maximum as they are

Stored densely, columns without statistics are left out and the others named; otherwise their places stay NULL.

Bounds may be wider than the values but never narrower:

- NaN counts as the greatest value, so the maximum is NaN wherever there is one; the minimum is NaN only
  where there is nothing else. A zero is -0.0 as minimum and 0.0 as maximum, since the two are equal.
- Text is cut by characters (code points), and a maximum that was cut is rounded up: the last character
  that has a successor is replaced by it, what follows is dropped. Surrogates are no successor. Where no
  character has one, neither minimum nor maximum is stored, which means unknown; the count of NULLs stays right.
- Bytes and nested types have no minimum and maximum.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakelet.errors import InvalidError
from lakelet.format.rows.binary_row import COMPACT_DECIMAL, EMPTY_ROW
from lakelet.format.rows.binary_row_columns import encode_rows
from lakelet.model.arrow.arrow_types import to_arrow
from lakelet.model.data_file import Stats
from lakelet.model.types import BINARIES, FLOATS, STRINGS, Atomic, Field

DEFAULT_MODE = "truncate(16)"
EMPTY_STATS = Stats(EMPTY_ROW, EMPTY_ROW, ())
_TRUNCATE = re.compile(r"truncate\((\d+)\)", re.IGNORECASE)
_LAST_CODE_POINT = 0x10FFFF
_SURROGATES = range(0xD800, 0xE000)


class StatsCollector:
    """Gathers the statistics of one file over the columns `fields`, in their order.

    `field_modes` overrides `mode` by column name; `keep_first` >= 0 leaves columns from that position on without
    statistics unless overridden. `nan_columns` names the FLOAT and DOUBLE columns in which a NaN was
    seen, whatever the mode.
    """

    def __init__(
        self,
        fields: Sequence[Field],
        mode: str = DEFAULT_MODE,
        *,
        field_modes: Mapping[str, str] | None = None,
        keep_first: int = -1,
        dense: bool = True,
    ) -> None:
        overrides = field_modes or {}
        general = _Mode(mode)
        nothing = _Mode("none")
        self._dense = dense
        self._columns: list[_Column] = []
        for position, field in enumerate(fields):
            chosen = nothing if 0 <= keep_first <= position else general
            if field.name in overrides:
                chosen = _Mode(overrides[field.name])
            self._columns.append(_Column(field, chosen))

    @property
    def nan_columns(self) -> set[str]:
        """The columns that hold a NaN so far."""
        return {column.field.name for column in self._columns if column.has_nan}

    def update(self, batch: pa.RecordBatch) -> None:
        """Takes in a batch with the columns of this file, in their order."""
        if batch.num_columns != len(self._columns):
            raise InvalidError(f"statistics of {len(self._columns)} columns were given {batch.num_columns}")
        for column, array in zip(self._columns, batch.columns, strict=True):
            column.update(array)

    def finish(self) -> tuple[Stats, tuple[str, ...] | None]:
        """The statistics, and the names of the columns they cover (None: all)."""
        kept = [column for column in self._columns if column.mode.counts or not self._dense]
        names = None if len(kept) == len(self._columns) else tuple(column.field.name for column in kept)
        if not kept:
            return EMPTY_STATS, names
        rows = encode_rows([column.bounds() for column in kept], [column.field.type for column in kept])
        counts = tuple(column.nulls if column.mode.counts else None for column in kept)
        return Stats(rows[0].as_py(), rows[1].as_py(), counts), names


class _Mode:
    """A statistics mode read from its text: whether to count NULLs, to keep bounds, and how long text may be."""

    __slots__ = ("bounds", "characters", "counts")

    def __init__(self, text: str) -> None:
        lower = text.lower()
        truncate = _TRUNCATE.fullmatch(text)
        if lower not in ("none", "counts", "full") and truncate is None:
            raise InvalidError(f"statistics mode {text!r}: expected none, counts, full or truncate(N)")
        self.counts = lower != "none"
        self.bounds = lower == "full" or truncate is not None
        self.characters = int(truncate[1]) if truncate else None
        if self.characters == 0:
            raise InvalidError(f"statistics mode {text!r}: text is cut to at least one character")


class _Column:
    """What is known of one column so far: one pair of bounds per batch, folded at the end."""

    __slots__ = ("field", "has_nan", "has_number", "is_float", "maxima", "minima", "mode", "nulls", "ordered")

    def __init__(self, field: Field, mode: _Mode) -> None:
        data_type = field.type
        self.field = field
        self.mode = mode
        self.nulls = 0
        self.has_nan = False
        self.has_number = False
        self.is_float = isinstance(data_type, Atomic) and data_type.kind in FLOATS
        self.ordered = mode.bounds and isinstance(data_type, Atomic) and data_type.kind not in BINARIES
        self.minima: list[object] = []
        self.maxima: list[object] = []

    def update(self, array: pa.Array) -> None:
        self.nulls += array.null_count
        if array.null_count == len(array):
            return
        if self.is_float:
            self._update_float(array)
        elif self.ordered:
            low, high = _bounds(array)
            self.minima.append(low)
            self.maxima.append(high)

    def _update_float(self, array: pa.Array) -> None:
        values = array.to_numpy(zero_copy_only=False) if not array.null_count else array.drop_null().to_numpy()
        high = values.max()
        if np.isnan(high):
            self.has_nan = True
            values = values[~np.isnan(values)]
            if not len(values):
                return
            high = values.max()
        self.has_number = True
        if self.ordered:
            # Adding zero turns -0.0 into 0.0.
            self.minima.append(-(-values.min() + 0.0))
            self.maxima.append(high + 0.0)

    def bounds(self) -> pa.Array:
        """Minimum and maximum as an array of two, NULL where unknown."""
        arrow = to_arrow(self.field.type)
        if not self.ordered:
            return pa.nulls(2, arrow)
        if self.is_float and self.has_nan:
            low = min(self.minima) if self.has_number else np.nan  # type: ignore[type-var]
            return pa.array([low, np.nan], arrow, from_pandas=False)
        if not self.minima:
            return pa.nulls(2, arrow)
        low, high = self.minima[0], self.maxima[0]
        if len(self.minima) > 1:
            low, high = pc.min(pa.array(self.minima, arrow)), pc.max(pa.array(self.maxima, arrow))
        found = pa.array([low, high], arrow)
        if self.mode.characters is not None and isinstance(self.field.type, Atomic) and self.field.type.kind in STRINGS:
            return pa.array(truncated_bounds(found[0].as_py(), found[1].as_py(), self.mode.characters), arrow)
        return found


def _bounds(array: pa.Array) -> tuple[pa.Scalar, pa.Scalar]:
    """The least and the greatest value of an array that has one."""
    if len(array) == 1:
        return array[0], array[0]
    low, high = _decimal_bounds(array) or pc.min_max(array).values()
    return low, high


def _decimal_bounds(array: pa.Array) -> tuple[pa.Scalar, pa.Scalar] | None:
    """The bounds of decimals that fit 64 bits, found among their lower halves; None for anything else."""
    if not pa.types.is_decimal128(array.type) or array.type.precision > COMPACT_DECIMAL or array.null_count:
        return None
    lower = np.frombuffer(array.buffers()[1], "<i8", 2 * len(array), array.offset * 16)[::2]
    places = (int(lower.argmin()), int(lower.argmax()))
    return array[places[0]], array[places[1]]


def truncated_bounds(low: str, high: str, characters: int) -> tuple[str | None, str | None]:
    """Bounds of text truncated to a number of characters: still a lower and an upper bound, or unknown."""
    if len(high) > characters:
        rounded = round_up(high[:characters])
        if rounded is None:
            return None, None
        high = rounded
    return low[:characters], high


def round_up(text: str) -> str | None:
    """The least text, no longer than `text`, that is greater than everything that begins with it."""
    for end in range(len(text), 0, -1):
        successor = ord(text[end - 1]) + 1
        if successor in _SURROGATES:
            successor = _SURROGATES.stop
        if successor <= _LAST_CODE_POINT:
            return text[: end - 1] + chr(successor)
    return None
