"""The merge engine of a table, made from `merge-engine` and its options.

`ENGINES` has a maker for every engine that tables may use. Makers are called wherever a table's rows are merged, on executors
too, so that they only look at the schema, which everyone has.
"""

from __future__ import annotations

from collections.abc import Callable

from lakelet.errors import InvalidError
from lakelet.lsm.engine import aggregation, partial_update
from lakelet.lsm.engine.aggregation import AggregationEngine
from lakelet.lsm.engine.merge_engine import DEDUPLICATE, FIRST_ROW, MergeEngine
from lakelet.lsm.engine.partial_update import PartialUpdateEngine
from lakelet.model.near_names import nearest
from lakelet.model.schema import TableSchema
from lakelet.options import FUNCTION_OPTIONS, MERGE_ENGINE, SEQUENCE_FIELD, TableOptions

ENGINES: dict[str, Callable[[TableSchema], MergeEngine]] = {
    DEDUPLICATE.name: lambda schema: DEDUPLICATE,
    FIRST_ROW.name: lambda schema: FIRST_ROW,
    aggregation.NAME: AggregationEngine.of,
    partial_update.NAME: PartialUpdateEngine.of,
}


def table_engine(schema: TableSchema) -> MergeEngine:
    """The engine of a primary-key table's options. InvalidError where there is none by that name."""
    name = str(TableOptions(schema.options).get(MERGE_ENGINE))
    if name not in ENGINES:
        raise InvalidError(f"option '{MERGE_ENGINE.name}': expected {' or '.join(ENGINES)}, found '{name}'")
    return ENGINES[name](schema)


def check_rule_columns(schema: TableSchema) -> None:
    """InvalidError for options of a new table that say how values of a column merge which it does not have."""
    options = TableOptions(schema.options)
    for family in FUNCTION_OPTIONS:
        for name in options.get_family(family):
            if name not in schema.names:
                raise InvalidError(f"option '{family.of(name)}': {name!r} is not a column{nearest(name, schema.names)}")


def column_rules(schema: TableSchema) -> dict[str, str]:
    """How the values of each column merge, for people: "sum", "last_value by g1, g2", or "sequence" for a column that orders
    rows. Empty where the engine selects rows."""
    if not schema.primary_keys:
        return {}
    engine = table_engine(schema)
    if not isinstance(engine, AggregationEngine | PartialUpdateEngine):
        return {}
    rules = {rule.column: rule.function for rule in engine.rules}
    sequence = TableOptions(schema.options).get(SEQUENCE_FIELD)
    ordering = set(sequence or ())
    for group in engine.groups if isinstance(engine, PartialUpdateEngine) else ():
        ordering |= set(group.sequence_names)
        rules |= {name: f"{rules[name]} by {', '.join(group.sequence_names)}" for name in group.members}
    return rules | dict.fromkeys(ordering, "sequence")
