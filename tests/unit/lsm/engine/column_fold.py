"""A fold engine for tests: sums and last values, column by column, and the same in plain Python, row by row.

`sum` adds what rows add and takes off what retracts hold; `last` is the newest value that is not NULL, of rows that add.
With `removes_zeros` a row goes when all of its sums are zero, as a key does whose rows were all taken back: such an engine
has sums only, so that a removed row leaves nothing that a later one would miss.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lakelet.errors import InvalidError
from lakelet.lsm.engine.key_groups import KeyGroups
from lakelet.lsm.engine.merge_engine import NO_SHORTCUTS, Folded, Shortcuts
from lakelet.model.schema import TableSchema

Values = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ColumnFold:
    """Columns in `sums` are summed, of all others the last value that is not NULL stays."""

    sums: tuple[str, ...]
    removes_zeros: bool = False
    refuses_retracts: bool = False
    name: str = "column-fold"

    @property
    def shortcuts(self) -> Shortcuts:
        return NO_SHORTCUTS

    def columns_for(self, wanted: Sequence[str]) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*wanted, *(self.sums if self.removes_zeros else ()))))

    def check_kinds(self, kinds: NDArray[np.int8]) -> None:
        if self.refuses_retracts and (kinds & 1).any():
            raise InvalidError("no retracts here")

    def fold(self, groups: KeyGroups, columns: Sequence[str]) -> Folded:
        kinds = None
        if self.removes_zeros:
            zero = np.logical_and.reduce([self._sums(groups, name) == 0 for name in self.sums])
            kinds = np.where(zero, 3, 0).astype(np.int8) if zero.any() else None
        return Folded(tuple(self._folded(groups, name) for name in columns), kinds)

    def _folded(self, groups: KeyGroups, name: str) -> pa.Array:
        retracts = groups.retracts()
        added = groups.valid(name) if retracts is None else groups.valid(name) & ~retracts
        if name not in self.sums:
            return groups.pick(name, groups.last_places(added))
        seen = np.add.reduceat(groups.valid(name).astype(np.int64), groups.starts) > 0
        return pa.array(self._sums(groups, name), groups.source.schema.field(name).type, mask=~seen)

    def _sums(self, groups: KeyGroups, name: str) -> NDArray[np.int64]:
        values = groups.column(name).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
        retracts = groups.retracts()
        signed = values if retracts is None else np.where(retracts, -values, values)
        found: NDArray[np.int64] = np.add.reduceat(signed, groups.starts)
        return found


def sums_by_name(schema: TableSchema) -> ColumnFold:
    """The engine of a table whose columns say by their names what becomes of them."""
    return ColumnFold(tuple(field.name for field in schema.fields if field.name.startswith("sum")))


def zeros_by_name(schema: TableSchema) -> ColumnFold:
    """The same, and rows whose sums are zero go."""
    return ColumnFold(sums_by_name(schema).sums, removes_zeros=True)


def folded_row(engine: ColumnFold, rows: Iterable[tuple[int, Values]], key: Sequence[str]) -> Values | None:
    """The model: what (kind, values), oldest first, come to; None where the row is removed."""
    state: Values = {}
    for kind, values in rows:
        for name, value in values.items():
            if name in key:
                state[name] = value
            elif name in engine.sums:
                if value is not None:
                    state[name] = (state.get(name) or 0) + (-value if kind & 1 else value)
            elif value is not None and not kind & 1:
                state[name] = value
            state.setdefault(name, None)
    if engine.removes_zeros and not any(state[name] for name in engine.sums):
        return None
    return state
