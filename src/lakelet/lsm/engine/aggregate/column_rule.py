"""How the values of one column are aggregated: a function and its options."""

from __future__ import annotations

from dataclasses import dataclass

from lakelet.model.types import DataType
from lakelet.options import (
    COUNT_LIMIT,
    DISTINCT,
    IGNORE_RETRACT,
    LIST_AGG_DELIMITER,
    NESTED_KEY,
    TIME_FIELD,
    TableOptions,
)


@dataclass(frozen=True, slots=True)
class FunctionSettings:
    """What the options of a column say of its function; each function looks at its own."""

    delimiter: str = ","
    distinct: bool = False
    nested_key: tuple[str, ...] = ()
    count_limit: int | None = None
    time_field: str | None = None


PLAIN = FunctionSettings()


@dataclass(frozen=True, slots=True)
class ColumnRule:
    """The function of a column, by its name. With `ignores_retracts` the column stays as it is when a row is taken back."""

    column: str
    type: DataType
    function: str
    ignores_retracts: bool = False
    settings: FunctionSettings = PLAIN

    @staticmethod
    def of(column: str, data_type: DataType, function: str, options: TableOptions) -> ColumnRule:
        """The rule of a column that has this function, with what a table's options say of it."""
        settings = FunctionSettings(
            delimiter=options.get_family(LIST_AGG_DELIMITER).get(column, PLAIN.delimiter),
            distinct=bool(options.get_family(DISTINCT).get(column)),
            nested_key=options.get_family(NESTED_KEY).get(column) or (),
            count_limit=options.get_family(COUNT_LIMIT).get(column),
            time_field=options.get_family(TIME_FIELD).get(column),
        )
        ignores = bool(options.get_family(IGNORE_RETRACT).get(column))
        return ColumnRule(column, data_type, function, ignores, settings)
