"""The engine `partial-update`: of each column the newest value that is not NULL.

Columns of a sequence group (`sequence_groups`) follow the sequence columns of the group instead, NULL included, or are
aggregated with a function of their own: `fields.<column>.aggregate-function`, else `fields.default-aggregate-function`. A row of
the kind -U or -D sets the columns of a group to NULL, or takes aggregated values back. Without groups such rows are refused,
unless `partial-update.remove-record-on-delete` lets a -D remove the row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from lakelet.errors import InvalidError
from lakelet.lsm.engine.aggregate.column_rule import ColumnRule
from lakelet.lsm.engine.aggregate.functions import folded, function_of, not_retracted, takes_retracts
from lakelet.lsm.engine.aggregate.row_actions import (
    ADD_OLDER,
    RETRACT,
    RETRACT_OLDER,
    SET,
    SET_RETRACT,
    SKIP,
    mapped,
)
from lakelet.lsm.engine.key_groups import KeyGroups
from lakelet.lsm.engine.merge_engine import NO_SHORTCUTS, Folded, Shortcuts
from lakelet.lsm.engine.sequence_groups import GroupActions, SequenceGroup, group_actions
from lakelet.model.row_arrays import Kinds
from lakelet.model.schema import TableSchema
from lakelet.model.types import Atomic
from lakelet.options import (
    AGGREGATE_FUNCTION,
    DEFAULT_AGGREGATE_FUNCTION,
    IGNORE_DELETE,
    PARTIAL_UPDATE_REMOVE_RECORD_ON_DELETE,
    PARTIAL_UPDATE_REMOVE_RECORD_ON_SEQUENCE_GROUP,
    SEQUENCE_GROUP,
    TableOptions,
)

NAME = "partial-update"
NEWEST = "last_non_null_value"
FOLLOWS = "last_value"
"""The function of a group's columns that name none: the value of the row with the newest sequence, also NULL."""

_SEQUENCE_ACTIONS = {ADD_OLDER: SKIP, RETRACT: SET, RETRACT_OLDER: SKIP, SET_RETRACT: SET}
_FOLLOWING_ACTIONS = {RETRACT_OLDER: SKIP}


@dataclass(frozen=True, slots=True)
class PartialUpdateEngine:
    """`rules` are those of all columns beside the key; columns with a function in a group are in `aggregated`."""

    rules: tuple[ColumnRule, ...]
    groups: tuple[SequenceGroup, ...] = ()
    aggregated: frozenset[str] = frozenset()
    removes_on_delete: bool = False
    name: str = NAME

    @staticmethod
    def of(schema: TableSchema) -> PartialUpdateEngine:
        """The engine of a table's options. InvalidError for groups and functions that its columns cannot have."""
        options = TableOptions(schema.options)
        groups = _groups(schema, options)
        _check_deletes(options, groups)
        members = {name for group in groups for name in group.members}
        sequence = {name for group in groups for name in group.sequence_names}
        functions, default = options.get_family(AGGREGATE_FUNCTION), options.get(DEFAULT_AGGREGATE_FUNCTION)
        rules, aggregated = [], set()
        for field in schema.fields:
            if field.name in schema.primary_keys or field.name in schema.partition_keys:
                continue
            function = None if field.name in sequence else functions.get(field.name) or default
            if function is None:
                plain = FOLLOWS if field.name in members else NEWEST
                rules.append(ColumnRule(field.name, field.type, plain))
                continue
            option = AGGREGATE_FUNCTION.of(field.name) if field.name in functions else DEFAULT_AGGREGATE_FUNCTION.name
            rule = ColumnRule.of(field.name, field.type, function, options)
            function_of(rule, option)
            if field.name in members:
                aggregated.add(field.name)
            elif function != NEWEST:
                raise InvalidError(
                    f"option '{option}' = '{function}': column {field.name!r} is in no sequence group, and without one a partial "
                    f"update knows '{NEWEST}' alone"
                )
            rules.append(rule)
        removes = options.get(PARTIAL_UPDATE_REMOVE_RECORD_ON_DELETE)
        return PartialUpdateEngine(tuple(rules), groups, frozenset(aggregated), removes)

    @property
    def shortcuts(self) -> Shortcuts:
        """None."""
        return NO_SHORTCUTS

    def columns_for(self, wanted: Sequence[str]) -> tuple[str, ...]:
        """The columns, the sequence columns of their groups, and those of groups that may remove a row."""
        found = dict.fromkeys(wanted)
        for group in self.groups:
            if group.removes_on_delete or not found.keys().isdisjoint((*group.members, *group.sequence_names)):
                found |= dict.fromkeys(group.sequence_names)
        return tuple(found)

    def check_kinds(self, kinds: Kinds) -> None:
        """InvalidError for rows that take back what cannot be."""
        if not (kinds & 1).any():
            return
        if not self.groups and not self.removes_on_delete:
            raise InvalidError(
                f"row {int((kinds & 1).argmax())} takes a row away, which a partial update cannot: set "
                f"'{IGNORE_DELETE.name}' to drop such rows, '{PARTIAL_UPDATE_REMOVE_RECORD_ON_DELETE.name}' to remove the whole "
                f"row, or sequence groups ('{SEQUENCE_GROUP.name}') to take back some columns"
            )
        members = {name for group in self.groups for name in group.members}
        for rule in self.rules:
            if rule.column in members and not takes_retracts(rule):
                raise not_retracted(rule)

    def fold(self, groups: KeyGroups, columns: Sequence[str]) -> Folded:
        """The updated row of each key."""
        present = set(groups.source.schema.names)
        used = tuple(group for group in self.groups if present.issuperset(group.sequence_names))
        actions = group_actions(groups, used, removes_on_delete=self.removes_on_delete)
        rules = {rule.column: rule for rule in self.rules}
        values = tuple(self._folded(groups, rules[name], used, actions) for name in columns)
        return Folded(values, actions.kinds if actions.kinds.any() else None)

    def _folded(
        self, groups: KeyGroups, rule: ColumnRule, used: Sequence[SequenceGroup], actions: GroupActions
    ) -> pa.Array:
        for group, own in zip(used, actions.by_group, strict=True):
            if rule.column in group.sequence_names:
                return folded(groups, ColumnRule(rule.column, rule.type, FOLLOWS), mapped(own, _SEQUENCE_ACTIONS))
            if rule.column in group.members:
                return folded(groups, rule, own if rule.column in self.aggregated else mapped(own, _FOLLOWING_ACTIONS))
        return folded(groups, rule, actions.others)


def _groups(schema: TableSchema, options: TableOptions) -> tuple[SequenceGroup, ...]:
    """The sequence groups, in the order of their options' names. InvalidError for columns that do not exist, or are in two."""
    removing = options.get(PARTIAL_UPDATE_REMOVE_RECORD_ON_SEQUENCE_GROUP) or ()
    groups: list[SequenceGroup] = []
    owners: dict[str, str] = {}
    for key, members in sorted(options.get_family(SEQUENCE_GROUP).items()):
        option = SEQUENCE_GROUP.of(key)
        sequence = tuple(name.strip() for name in key.split(","))
        for name in (*sequence, *(members or ())):
            if name not in schema.names:
                raise InvalidError(f"option '{option}': {name!r} is not a column; there are {', '.join(schema.names)}")
            if name in schema.primary_keys:
                raise InvalidError(
                    f"option '{option}': {name!r} is in the primary key, which no sequence group changes"
                )
            if name in owners:
                raise InvalidError(
                    f"option '{option}': column {name!r} is in the sequence group '{owners[name]}' already"
                )
            owners[name] = option
        for name in sequence:
            if not isinstance(schema.field(name).type, Atomic):
                raise InvalidError(
                    f"option '{option}': column {name!r} is {schema.field(name).type}, expected a type without children"
                )
        typed = tuple((name, schema.field(name).type) for name in sequence)
        groups.append(SequenceGroup(typed, tuple(members or ()), not set(removing).isdisjoint(sequence)))
    known = {name for group in groups for name in group.sequence_names}
    for name in removing:
        if name not in known:
            raise InvalidError(
                f"option '{PARTIAL_UPDATE_REMOVE_RECORD_ON_SEQUENCE_GROUP.name}': {name!r} is no sequence column; there are "
                f"{', '.join(sorted(known)) or 'none'}"
            )
    return tuple(groups)


def _check_deletes(options: TableOptions, groups: Sequence[SequenceGroup]) -> None:
    """InvalidError for options about deletes of which only one can hold."""
    removes = options.get(PARTIAL_UPDATE_REMOVE_RECORD_ON_DELETE)
    by_group = options.get(PARTIAL_UPDATE_REMOVE_RECORD_ON_SEQUENCE_GROUP) is not None
    both = (
        (removes and options.get(IGNORE_DELETE), PARTIAL_UPDATE_REMOVE_RECORD_ON_DELETE, IGNORE_DELETE),
        (by_group and options.get(IGNORE_DELETE), PARTIAL_UPDATE_REMOVE_RECORD_ON_SEQUENCE_GROUP, IGNORE_DELETE),
        (removes and bool(groups), PARTIAL_UPDATE_REMOVE_RECORD_ON_DELETE, SEQUENCE_GROUP),
    )
    for is_set, one, other in both:
        if is_set:
            raise InvalidError(f"options '{one.name}' and '{other.name}' exclude each other")
