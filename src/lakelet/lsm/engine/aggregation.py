"""The engine `aggregation`: of each column the aggregate of all values of the key.

    fields.<column>.aggregate-function     the column's function
    fields.default-aggregate-function      that of columns that name none; without it last_non_null_value
    sequence.field                         its columns have last_value

Rows of the kinds -U and -D take their values back, as far as a function can. With `aggregation.remove-record-on-delete` a -D
removes the row: its result is a delete, and what follows it is aggregated with the values of the -D itself, as in Paimon.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lakelet.errors import InvalidError
from lakelet.lsm.engine.aggregate.column_rule import ColumnRule
from lakelet.lsm.engine.aggregate.functions import folded, function_of, not_retracted, takes_retracts
from lakelet.lsm.engine.aggregate.row_actions import DELETE, kind_actions
from lakelet.lsm.engine.key_groups import KeyGroups
from lakelet.lsm.engine.merge_engine import NO_SHORTCUTS, Folded, Shortcuts
from lakelet.model.row_arrays import Kinds
from lakelet.model.schema import TableSchema
from lakelet.model.types import FLOATS, Atomic, Kind
from lakelet.options import (
    AGGREGATE_FUNCTION,
    AGGREGATION_REMOVE_RECORD_ON_DELETE,
    DEFAULT_AGGREGATE_FUNCTION,
    IGNORE_RETRACT,
    SEQUENCE_FIELD,
    TableOptions,
)

NAME = "aggregation"
DEFAULT_FUNCTION = "last_non_null_value"
SEQUENCE_FUNCTION = "last_value"
_ANY_ORDER = ("max", "min", "bool_and", "bool_or", "rbm32")
_EXACT = ("sum", "product")


@dataclass(frozen=True, slots=True)
class AggregationEngine:
    """`rules` are those of all columns beside the key."""

    rules: tuple[ColumnRule, ...]
    removes_on_delete: bool = False
    name: str = NAME

    @staticmethod
    def of(schema: TableSchema) -> AggregationEngine:
        """The engine of a table's options. InvalidError for functions that its columns cannot have."""
        options = TableOptions(schema.options)
        removes = options.get(AGGREGATION_REMOVE_RECORD_ON_DELETE)
        functions, default = options.get_family(AGGREGATE_FUNCTION), options.get(DEFAULT_AGGREGATE_FUNCTION)
        sequence = options.get(SEQUENCE_FIELD) or ()
        rules = []
        for field in schema.fields:
            if field.name in schema.primary_keys or field.name in schema.partition_keys:
                continue
            own = functions.get(field.name)
            option = AGGREGATE_FUNCTION.of(field.name) if own else DEFAULT_AGGREGATE_FUNCTION.name
            if field.name in sequence:
                if own:
                    raise InvalidError(
                        f"option '{option}': {field.name!r} is in '{SEQUENCE_FIELD.name}', whose columns have no function"
                    )
                function = SEQUENCE_FUNCTION
            else:
                function = own or default or DEFAULT_FUNCTION
            rule = ColumnRule.of(field.name, field.type, function, options)
            function_of(rule, option)
            if removes and rule.ignores_retracts:
                ignores = IGNORE_RETRACT.of(field.name)
                raise InvalidError(
                    f"options '{AGGREGATION_REMOVE_RECORD_ON_DELETE.name}' and '{ignores}' exclude each other"
                )
            rules.append(rule)
        return AggregationEngine(tuple(rules), removes)

    @property
    def shortcuts(self) -> Shortcuts:
        """None."""
        return NO_SHORTCUTS

    def columns_for(self, wanted: Sequence[str]) -> tuple[str, ...]:
        """The columns themselves: kinds alone decide whether there is a row."""
        return tuple(wanted)

    def check_kinds(self, kinds: Kinds) -> None:
        """InvalidError for rows that take back what a function cannot."""
        retracts = (kinds & 1).astype(np.bool_)
        if self.removes_on_delete:
            retracts &= kinds != DELETE
        if not retracts.any():
            return
        for rule in self.rules:
            if not takes_retracts(rule):
                raise not_retracted(rule)

    def fold(self, groups: KeyGroups, columns: Sequence[str]) -> Folded:
        """The aggregates of each key."""
        actions = kind_actions(groups, removes_on_delete=self.removes_on_delete)
        rules = {rule.column: rule for rule in self.rules}
        values = tuple(folded(groups, rules[name], actions) for name in columns)
        kinds = groups.kinds()
        if not kinds.any():
            return Folded(values)
        last = kinds[groups.ends - 1]
        alone = groups.ends - groups.starts == 1
        deleted = self.removes_on_delete & (last == DELETE)
        return Folded(values, np.where(alone, last, np.where(deleted, DELETE, 0)).astype(np.int8))

    @property
    def commutes(self) -> bool:
        """Whether rows that add values may come in any order: sums of floats and of decimals that overflow depend on it."""
        return all(
            rule.function in _ANY_ORDER or (rule.function in _EXACT and not _rounds(rule)) for rule in self.rules
        )


def _rounds(rule: ColumnRule) -> bool:
    return isinstance(rule.type, Atomic) and rule.type.kind in (*FLOATS, Kind.DECIMAL)
