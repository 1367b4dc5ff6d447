"""Updates of a partial-update table that would change nothing, found by the query of the statement.

    SET a = NULL                          NULL leaves a column of no sequence group as it is
    SET a = 1, and the row has no g       a column of a sequence group changes with a value of its sequence columns alone
    SET g = 1, and the row's g is 2       a lesser sequence is late

The query gives each row a number where that is so: the column's place in the table, and behind it which of the reasons. Pure
text."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from lakelet.errors import InvalidError
from lakelet.lsm.engine.row_update import RowUpdate
from lakelet.model.schema import TableSchema

_NULL, _NO_SEQUENCE, _LATE = range(3)
_REASONS = (
    "a row would get NULL in column {column!r}, which leaves the value as it is ('merge-engine' = 'partial-update')",
    "column {column!r} changes with its sequence group alone, and a row has no value in the sequence columns of the group",
    "a row would get a lesser value in the sequence columns of column {column!r} than it has, and would stay as it is",
)

Sql = Callable[[str], str]


def check_settable(update: RowUpdate, assigned: Collection[str], what: str) -> None:
    """InvalidError for a column whose values are aggregated, so that none replaces another."""
    for name in assigned:
        if name in update.aggregated:
            raise InvalidError(
                f"{what}: column {name!r} is aggregated ('{update.aggregated[name]}') and cannot be set; insert a row, whose "
                "value is aggregated with what there is"
            )


def lost_values(update: RowUpdate, assigned: Sequence[str], places: Sequence[str], new: Sql, old: Sql) -> str | None:
    """SQL for the number of a value that would be lost, NULL where all take effect; None where every value does. `new` and `old`
    give SQL for a column's values, `places` are the table's columns."""
    cases = [
        _case(f"{new(name)} IS NULL AND {old(name)} IS NOT NULL", places, name, _NULL)
        for name in assigned
        if name in update.kept_by_null
    ]
    for group in update.groups:
        absent, without = (" AND ".join(f"{sql(name)} IS NULL" for name in group.sequence_names) for sql in (new, old))
        # Also values that the statement does not touch: those of a row that was never merged show without a sequence.
        there = [f"{sql(name)} IS NOT NULL" for name in group.members for sql in (old, new)]
        had = [f"{old(name)} IS NOT NULL" for name in group.sequence_names]
        aggregated = [f"{old(name)} IS NOT NULL" for name in group.members if name in update.blank]
        test = f"(({absent}) AND ({' OR '.join((*had, *there))}))"
        if aggregated:
            # Aggregated ones are not written again.
            test += f" OR (({without}) AND ({' OR '.join(aggregated)}))"
        first = next(name for name in (*assigned, *group.members, *group.sequence_names) if name in group.columns)
        cases.append(_case(test, places, first, _NO_SEQUENCE))
        if not group.columns.isdisjoint(assigned):
            cases.append(_case(lower(group.sequence_names, new, old), places, first, _LATE))
    return f"CASE{''.join(cases)} END" if cases else None


def lower(names: Sequence[str], new: Sql, old: Sql, *, descending: bool = False) -> str:
    """SQL for whether the new values of some columns are less than the old ones, NULL being least."""
    sign, test = ">" if descending else "<", "FALSE"
    for name in reversed(names):
        less = f"{new(name)} {sign} {old(name)} OR ({new(name)} IS NULL AND {old(name)} IS NOT NULL)"
        test = f"(COALESCE({less}, FALSE) OR ({new(name)} IS NOT DISTINCT FROM {old(name)} AND {test}))"
    return test


def lost_value(number: int, schema: TableSchema, what: str) -> InvalidError:
    """The error for a number that the query gave."""
    place, reason = divmod(number, len(_REASONS))
    return InvalidError(f"{what}: {_REASONS[reason].format(column=schema.names[place])}")


def _case(test: str, places: Sequence[str], name: str, reason: int) -> str:
    return f" WHEN {test} THEN {places.index(name) * len(_REASONS) + reason}"
