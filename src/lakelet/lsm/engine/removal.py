"""How a row of a folding table is removed: by a -D, where the options of its engine say so.

    aggregation       'aggregation.remove-record-on-delete'
    partial-update    'partial-update.remove-record-on-delete', or a group of 'partial-update.remove-record-on-sequence-group'

Until a compaction has dropped the -D, rows that are written after it are merged with its values. So it carries none: only the
key, the columns of `sequence.field` and of sequence groups, without which it would be older than what it removes, and columns
that are NOT NULL, if every write replaces them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lakelet.errors import InvalidError
from lakelet.lsm.engine.aggregation import AggregationEngine
from lakelet.lsm.engine.merge_engine import MergeEngine, SelectEngine
from lakelet.lsm.engine.partial_update import PartialUpdateEngine
from lakelet.lsm.engine.table_engine import table_engine
from lakelet.model.row_kind import RowKind
from lakelet.model.schema import TableSchema
from lakelet.options import (
    AGGREGATION_REMOVE_RECORD_ON_DELETE,
    MERGE_ENGINE,
    PARTIAL_UPDATE_REMOVE_RECORD_ON_DELETE,
    PARTIAL_UPDATE_REMOVE_RECORD_ON_SEQUENCE_GROUP,
    SEQUENCE_FIELD,
    TableOptions,
)

_REPLACED = ("last_value", "last_non_null_value")


@dataclass(frozen=True, slots=True)
class Removal:
    """The columns that a -D carries, and the sequence columns of which one group must have a value; no groups, no such need."""

    carried: frozenset[str]
    groups: tuple[tuple[str, ...], ...] = ()

    def bare(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The -D rows that remove these rows. InvalidError for a row that no sequence group removes."""
        if self.groups:
            removed = np.zeros(rows.num_rows, np.bool_)
            for name in {name for group in self.groups for name in group}:
                removed |= rows.column(name).is_valid().to_numpy(zero_copy_only=False)
            if not removed.all():
                raise InvalidError(
                    f"a row without a value in {', '.join(name for group in self.groups for name in group)} cannot be deleted: "
                    f"only sequence groups of '{PARTIAL_UPDATE_REMOVE_RECORD_ON_SEQUENCE_GROUP.name}' remove rows"
                )
        columns = [
            column if name in self.carried else pa.nulls(rows.num_rows, column.type)
            for name, column in zip(rows.schema.names, rows.columns, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, rows.schema.names)


def removes_rows(engine: MergeEngine) -> bool:
    """Whether a -D removes what older rows have made of a key, and not values alone.

    Such a -D folded with newer rows alone is an insertion, which removes nothing: it has to meet all older rows first.
    """
    if isinstance(engine, PartialUpdateEngine):
        return engine.removes_on_delete or any(group.removes_on_delete for group in engine.groups)
    return isinstance(engine, AggregationEngine) and engine.removes_on_delete


def removal(schema: TableSchema) -> Removal | None:
    """How rows of a table are removed; None where its engine selects rows. InvalidError where nothing removes them."""
    engine = table_engine(schema)
    if isinstance(engine, SelectEngine):
        return None
    carried = {*schema.primary_keys, *schema.partition_keys, *(TableOptions(schema.options).get(SEQUENCE_FIELD) or ())}
    groups: tuple[tuple[str, ...], ...] = ()
    rules = engine.rules if isinstance(engine, AggregationEngine | PartialUpdateEngine) else ()
    if isinstance(engine, PartialUpdateEngine):
        groups = tuple(group.sequence_names for group in engine.groups if group.removes_on_delete)
        carried |= {name for group in engine.groups for name in group.sequence_names}
        wanted = f"'{PARTIAL_UPDATE_REMOVE_RECORD_ON_DELETE.name}' or '{PARTIAL_UPDATE_REMOVE_RECORD_ON_SEQUENCE_GROUP.name}'"
    else:
        wanted = f"'{AGGREGATION_REMOVE_RECORD_ON_DELETE.name}'"
    if not removes_rows(engine):
        raise InvalidError(
            f"the table merges rows of one key ('{MERGE_ENGINE.name}' = '{engine.name}'), so that its rows cannot be deleted: "
            f"that takes {wanted}"
        )
    for rule in rules:
        if not rule.type.nullable and rule.column not in carried:
            if rule.function not in _REPLACED:
                raise InvalidError(
                    f"rows of this table cannot be deleted: column {rule.column!r} is NOT NULL, and what is written after a "
                    f"delete would be aggregated ('{rule.function}') with the value that the delete has to carry"
                )
            carried.add(rule.column)
    engine.check_kinds(np.array([RowKind.DELETE], np.int8))
    return Removal(frozenset(carried), groups)
