"""Whether a write refuses several rows of one key, because nothing says which of them is the last."""

from __future__ import annotations

from lakelet.lsm.engine.aggregation import AggregationEngine
from lakelet.lsm.engine.table_engine import table_engine
from lakelet.model.schema import TableSchema
from lakelet.options import SEQUENCE_FIELD, TableOptions
from lakelet.spark.write.write_request import WriteRequest


def one_row_per_key(schema: TableSchema, request: WriteRequest) -> bool:
    """Whether several rows of one key are refused, since nothing says which of them is the last: not where an engine folds all
    of them, in whatever order, unless some take values back."""
    if not schema.primary_keys or TableOptions(schema.options).get(SEQUENCE_FIELD) or request.on_duplicate == "any":
        return False
    engine = table_engine(schema)
    return not (isinstance(engine, AggregationEngine) and engine.commutes and request.kinds is None)
