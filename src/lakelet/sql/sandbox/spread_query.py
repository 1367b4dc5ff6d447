"""Run a sandboxed query on several nodes, where parts of it can be split exactly and read enough.

    names found ── tables without rows ── bound: its types ── parts found (`sql/distribution`) ── all bound, types compared
      ── workers run the parts ── what is left of the query runs over their rows

Whatever is in the way, the answer is None, and the query runs here as it would without other nodes.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from lakelet.catalog.sql_result import SqlResult
from lakelet.errors import InvalidError
from lakelet.sql.distribution.inlined_queries import inlined
from lakelet.sql.distribution.parameter_values import with_values
from lakelet.sql.distribution.row_expressions import NotSplitError
from lakelet.sql.distribution.tree_nodes import statement
from lakelet.sql.engine.duckdb_engine import BATCH_ROWS
from lakelet.sql.engine.engine_errors import Placed
from lakelet.sql.query.parse_tree import Node
from lakelet.sql.query.shortcuts import all_counted
from lakelet.sql.sandbox.sandboxed_query import SandboxedQuery
from lakelet.sql.sandbox.split_tables import SplitTables
from lakelet.sql.sandbox.spread import Gathered, Releasable, Spread, SpreadFailedError
from lakelet.sql.sandbox.spread_parts import BoundParts, PartsFailedError
from lakelet.sql.sandbox.spread_whole import BoundWhole, planned
from lakelet.sql.sandbox.subquery_values import SubqueryValues

_LOG = logging.getLogger("lakelet.sql.sandbox")
_BATCH_BYTES = 4 << 20
_COLUMNS = {"explain_key": pa.string(), "explain_value": pa.string()}


@dataclass(frozen=True, slots=True)
class SpreadResult:
    """A combining query that is bound, the rows it reads, and how many of its own are made at a time; or, for EXPLAIN, what is
    told."""

    placed: Placed
    relation: Any = None
    gathered: Releasable | None = None
    known: SqlResult | None = None
    batch_rows: int = BATCH_ROWS


@dataclass(frozen=True, slots=True)
class _AllGathered:
    """The rows of several parts."""

    parts: Sequence[Gathered]

    def close(self) -> None:
        for one in self.parts:
            one.close()


def spread_query(query: SandboxedQuery, zone: str | None, spread: Spread, *, is_explained: bool) -> SpreadResult | None:
    """The result of a query that other nodes took part in; None where it runs on one node."""
    if _is_counted(query):
        return None
    found = _split_result(query, zone, spread, is_explained=is_explained)
    if found is None:
        spread.decline()
    return found


def _split_result(
    query: SandboxedQuery, zone: str | None, spread: Spread, *, is_explained: bool
) -> SpreadResult | None:
    tables = SplitTables(query, zone, spread)
    if query.is_long or not tables.are_for_others():
        return None
    query.register_without_rows()
    relation = query.bind()
    tree = with_values(query.tree, query.params)
    if tree is None:
        return None
    try:
        values = SubqueryValues(query, tables)
        tree = _inlined(tree)
        bound = planned(query, tables, values.assumed(tree), relation)
        if bound is None or is_explained:
            return None if bound is None else SpreadResult(query.placed, known=_explained(bound, values.texts, spread))
        known = values.computed(tree)
        if known is not None:
            bound = planned(query, tables, known, relation)
        return None if bound is None else _run(query, tables, bound)
    except (NotSplitError, RecursionError):
        return None
    except SpreadFailedError as error:
        _LOG.warning("a query runs on one node: %s", error)
        return None
    except InvalidError as error:
        # Split, it is no query: we have misread a name.
        _LOG.warning("a query runs on one node: %s", error)
        return None
    except PartsFailedError as failed:
        raise failed.error from failed


def _inlined(tree: Node) -> Node:
    try:
        return statement(inlined(tree["statements"][0]["node"]))
    except NotSplitError:
        # It is not split, but another node may run it.
        return tree


def _run(query: SandboxedQuery, tables: SplitTables, bound: BoundParts | BoundWhole) -> SpreadResult:
    """Have the parts run, and bind what is left of the query over their rows."""
    gathered = bound.run(tables.spread)
    try:
        bound.register(query, tables, gathered)
        placed = Placed(bound.combine)
        relation, rows = query.space.relation(bound.combine, None, placed), _AllGathered(gathered)
        if isinstance(bound, BoundWhole):
            # What this node passes on it does in parts as small as those that came.
            return SpreadResult(placed, relation, rows, batch_rows=_batch_rows(gathered[0].row_bytes))
        return SpreadResult(placed, relation, rows)
    except BaseException:
        _AllGathered(gathered).close()
        raise


def _batch_rows(row_bytes: float) -> int:
    """How many rows make a batch of an answer that is passed on."""
    return max(min(BATCH_ROWS, int(_BATCH_BYTES / max(row_bytes, 1.0))), 1)


def _is_counted(query: SandboxedQuery) -> bool:
    """Whether metadata has the answer."""
    tables = query.tables_by_name()
    return len(tables) == 1 and all_counted(query.tree, next(iter(tables.values())).count) is not None


def _explained(bound: BoundParts | BoundWhole, first: Sequence[str], spread: Spread) -> SqlResult:
    rows = [("first", text) for text in first]
    parts = (
        [part.work for part in bound.parts] if isinstance(bound, BoundParts) else [one for _, one in bound.work.parts]
    )
    for work in parts:
        lines = [f"table {one.table.name}: {len(one.splits)} splits" for one in work.shared]
        lines += [f"  {one.node}: {one.splits} splits, {one.bytes} bytes" for one in spread.told(work)]
        lines += [f"  all rows of {other.name} on each of them" for other in work.others]
        rows += [("distribution", "\n".join(lines)), ("worker", work.sql)]
    if isinstance(bound, BoundWhole):
        rows.append(("combined by" if parts else "run by", spread.told_whole()))
    rows.append(("combine", bound.combine if isinstance(bound, BoundParts) else bound.work.sql))
    return SqlResult.of_rows(_COLUMNS, rows)
