"""The merge engine of a table, made from `merge-engine` and its options.

`ENGINES` has a maker for every engine that tables may use. Makers are called wherever a table's rows are merged, on executors
too, so that they only look at the schema, which everyone has.
"""

from __future__ import annotations

from collections.abc import Callable

from lakelet.errors import InvalidError
from lakelet.lsm.engine.merge_engine import DEDUPLICATE, FIRST_ROW, MergeEngine
from lakelet.model.schema import TableSchema
from lakelet.options import MERGE_ENGINE, TableOptions

ENGINES: dict[str, Callable[[TableSchema], MergeEngine]] = {
    DEDUPLICATE.name: lambda schema: DEDUPLICATE,
    FIRST_ROW.name: lambda schema: FIRST_ROW,
}


def table_engine(schema: TableSchema) -> MergeEngine:
    """The engine of a primary-key table's options. InvalidError where there is none by that name."""
    name = str(TableOptions(schema.options).get(MERGE_ENGINE))
    if name not in ENGINES:
        raise InvalidError(f"option '{MERGE_ENGINE.name}': expected {' or '.join(ENGINES)}, found '{name}'")
    return ENGINES[name](schema)
