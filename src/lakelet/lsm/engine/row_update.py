"""How a row of a partial-update table is updated: by the whole row with its new values, written once more, as Paimon's Spark
does.

    a column of no sequence group        gets the new value, unless that is NULL, which changes nothing
    a column of a sequence group         gets the new value, also NULL: the row has the sequence that it had, which is not late;
                                         without a sequence, or with a lesser one, nothing changes
    an aggregated column                 would be aggregated with its own value once more; it is written as NULL, which is left
    out

What would change nothing is for the statement to refuse; here is said which columns that concerns. Paimon's Spark writes
aggregated columns as they are, so that an UPDATE of another column doubles a sum, and takes an UPDATE that changes nothing for a
success."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from lakelet.errors import InvalidError
from lakelet.lsm.engine.merge_engine import SelectEngine
from lakelet.lsm.engine.partial_update import NEWEST, PartialUpdateEngine
from lakelet.lsm.engine.sequence_groups import SequenceGroup
from lakelet.lsm.engine.table_engine import table_engine
from lakelet.model.row_arrays import Kinds
from lakelet.model.row_kind import RowKind
from lakelet.model.schema import TableSchema
from lakelet.options import MERGE_ENGINE

# The functions by which a newer value replaces an older one, and those that a value leaves as it is when it comes once more.
_REPLACING = ("last_value", NEWEST)
_REPEATABLE = ("max", "min", "bool_and", "bool_or", "first_value", "first_non_null_value", "first_not_null_value")


@dataclass(frozen=True, slots=True)
class RowUpdate:
    """`kept_by_null` are the columns that NULL does not change, `aggregated` those that cannot be set, by their functions;
    `blank` are those of them that are written as NULL."""

    kept_by_null: frozenset[str]
    groups: tuple[SequenceGroup, ...]
    aggregated: Mapping[str, str]
    blank: frozenset[str]

    def written(self, rows: pa.RecordBatch, kinds: Kinds) -> pa.RecordBatch:
        """The rows as they are written: those of the kind +U without what would be aggregated again."""
        updates = kinds == RowKind.UPDATE_AFTER
        if not self.blank or not updates.any():
            return rows
        mask = pa.array(updates)
        columns = [
            pc.if_else(mask, pa.nulls(rows.num_rows, column.type), column) if name in self.blank else column
            for name, column in zip(rows.schema.names, rows.columns, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, rows.schema.names)


def row_update(schema: TableSchema, what: str) -> RowUpdate | None:
    """How rows of a primary-key table are updated; None where the newest row is the row. InvalidError, which begins with `what`,
    where its engine replaces no rows."""
    engine = table_engine(schema)
    if isinstance(engine, SelectEngine):
        if engine.keeps_first:
            raise InvalidError(
                f"{what} keeps the first row of each key ('{MERGE_ENGINE.name}' = '{engine.name}'), so that its rows can be "
                "neither changed nor deleted"
            )
        return None
    if not isinstance(engine, PartialUpdateEngine):
        raise InvalidError(
            f"{what} merges rows of one key ('{MERGE_ENGINE.name}' = '{engine.name}'), so that its rows are not replaced by "
            "others; insert rows, which are merged with them"
        )
    aggregated, blank = {}, set()
    for rule in engine.rules:
        if rule.column not in engine.aggregated or rule.function in _REPLACING:
            continue
        aggregated[rule.column] = rule.function
        if rule.type.nullable:
            blank.add(rule.column)
        elif rule.function not in _REPEATABLE:
            raise InvalidError(
                f"{what} cannot be updated: column {rule.column!r} is NOT NULL, and would be aggregated ('{rule.function}') with "
                "its own value once more"
            )
    ordering = {name for group in engine.groups for name in group.sequence_names}
    kept = frozenset(rule.column for rule in engine.rules if rule.function == NEWEST and rule.column not in ordering)
    return RowUpdate(kept, engine.groups, aggregated, frozenset(blank))
