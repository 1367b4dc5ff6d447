"""How the values of one column are aggregated: a function and its options."""

from __future__ import annotations

from dataclasses import dataclass

from lakelet.model.types import DataType


@dataclass(frozen=True, slots=True)
class ColumnRule:
    """The function of a column, by its name. With `ignores_retracts` the column stays as it is when a row is taken back."""

    column: str
    type: DataType
    function: str
    ignores_retracts: bool = False
