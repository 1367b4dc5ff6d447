"""Tell from the plan of a frame, before anything is run, whether its first rows may be collected to see if they are all.

Collected rows are written by the driver, which saves a job in Python. Where they turn out to be more than the driver takes, tasks
read them again. So only frames are tried of which a limited run reads no further than the limit: rows of small files and rows
that are in the plan itself, projected and filtered by Spark's own expressions.

    Project, Filter, Union ─┬─ LogicalRelation over files of a known size
                            └─ LocalRelation, OneRowRelation, Range

Everything else is left to tasks: what shuffles, aggregates, joins or generates rows would be computed twice, Python and observed
metrics run in tasks of the caller's number, and of an RDD or a foreign source nobody knows the size. Over Spark Connect plans
cannot be seen.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame

from lakelet.spark.session import is_connect

# Size of the files that are tried: one task reads them at most in part, for nothing where they have too many rows.
MOST_SOURCE_BYTES = 32 << 20
_MOST_NODES = 64
# The latter two are names that the optimiser takes away.
_PASSING = frozenset(("Project", "Filter", "Union", "SubqueryAlias", "View"))
_SOURCES = frozenset(("LogicalRelation", "LocalRelation", "OneRowRelation", "Range"))


def may_be_small(df: DataFrame, rows: int) -> bool:
    """Whether a frame may have no more than `rows` rows, and trying costs little."""
    if is_connect(df.sparkSession):
        return False
    frame: Any = df
    execution = frame._jdf.queryExecution()
    # Of most frames that is all: to optimise a large plan takes time, and the tasks' plan will be another.
    if _source_bytes(execution.analyzed()) > MOST_SOURCE_BYTES:
        return False
    # Here Python functions and cached frames are operators of their own.
    plan = execution.optimizedPlan()
    most = plan.maxRows()
    if most.isDefined() and int(most.get()) > rows:
        return False
    # A scalar subquery would be computed again by the tasks.
    return _source_bytes(plan) <= MOST_SOURCE_BYTES and bool(plan.subqueriesAll().isEmpty())


def _source_bytes(plan: Any) -> int:
    """The bytes that the sources of a plan have; more than are tried for a plan with other operators."""
    pending, total = [plan], 0
    for _ in range(_MOST_NODES):
        if not pending:
            return total
        node = pending.pop()
        kind = node.nodeName()
        if kind in _SOURCES:
            total += int(node.stats().sizeInBytes())
            continue
        if kind not in _PASSING:
            break
        inner = node.children()
        pending += [inner.apply(place) for place in range(inner.size())]
    return MOST_SOURCE_BYTES + 1
