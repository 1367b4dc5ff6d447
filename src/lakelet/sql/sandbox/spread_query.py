"""Run a sandboxed query on several nodes, where it can be split exactly and is large enough.

    names found ── tables without rows ── bound: its types ── split in two (`sql/distribution`) ── both bound, types compared
      ── workers run the first ── the second over their rows

Whatever is in the way, the answer is None, and the query runs here as it would without other nodes.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lakelet.catalog.sql_result import SqlResult
from lakelet.errors import InvalidError
from lakelet.sql.distribution.exchange_types import received, sent
from lakelet.sql.distribution.parameter_values import with_values
from lakelet.sql.distribution.split_query import PARTIALS, split_query, splittable_tables
from lakelet.sql.distribution.tree_nodes import part_name
from lakelet.sql.engine.engine_errors import Placed
from lakelet.sql.query.parse_tree import Node
from lakelet.sql.query.relation import Rows
from lakelet.sql.query.shortcuts import all_counted
from lakelet.sql.query.table_view import split_name
from lakelet.sql.sandbox.sandbox_table import SandboxTable
from lakelet.sql.sandbox.sandboxed_query import SandboxedQuery
from lakelet.sql.sandbox.spread import Gathered, PlannedSplit, Spread, SpreadFailedError, Work, whole

_LOG = logging.getLogger("lakelet.sql.sandbox")
_COLUMNS = {"explain_key": pa.string(), "explain_value": pa.string()}


@dataclass(frozen=True, slots=True)
class SpreadResult:
    """A combining query that is bound, and the rows it reads; or, for EXPLAIN, what is told."""

    placed: Placed
    relation: Any = None
    gathered: Gathered | None = None
    known: SqlResult | None = None


@dataclass(frozen=True, slots=True)
class _Chosen:
    """The table whose rows are shared out, and its splits."""

    table: SandboxTable
    texts: tuple[str, ...]
    splits: tuple[PlannedSplit, ...]


@dataclass(frozen=True, slots=True)
class _Bound:
    """What workers run, and what combines their rows."""

    work: Work
    combine: str
    received: str


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
    chosen = _chosen(query, spread)
    if chosen is None:
        return None
    query.register_without_rows()
    relation = query.bind()
    try:
        bound = _bound(query, zone, chosen, relation)
    except RecursionError:
        return None
    except InvalidError as error:
        # Split, it is no query: we have misread a name.
        _LOG.warning("a query runs on one node: %s", error)
        return None
    if bound is None or not spread.can_take(bound.work):
        return None
    if is_explained:
        return SpreadResult(query.placed, known=_explained(bound, spread))
    try:
        gathered = spread.run(bound.work)
    except SpreadFailedError as error:
        _LOG.warning("a query runs on one node: %s", error)
        return None
    try:
        frame = query.space.add_rows(Rows(bound.work.schema, _reader(gathered)))
        query.space.add_temporary(PARTIALS, f"SELECT {bound.received} FROM {frame}")
        placed = Placed(bound.combine)
        return SpreadResult(placed, query.space.relation(bound.combine, None, placed), gathered)
    except BaseException:
        gathered.close()
        raise


def _chosen(query: SandboxedQuery, spread: Spread) -> _Chosen | None:
    """The table to be shared out, if there is one: of those that can be, the largest."""
    tables = query.tables_by_alias()
    if tables is None or query.is_long or not all(_can_travel(table) for table in tables.values()):
        return None
    found = []
    for node in splittable_tables(query.tree):
        table = tables[_alias(node)]
        texts = query.pruning(table)
        splits = tuple(
            PlannedSplit(split_name(split), split.size) for split in table.planned(texts) if split.branch is None
        )
        found.append(_Chosen(table, texts, splits))
    if not found:
        return None
    largest = max(found, key=lambda one: sum(split.bytes for split in one.splits))
    return largest if spread.is_worthwhile([one.bytes for one in largest.splits]) else None


def _is_counted(query: SandboxedQuery) -> bool:
    """Whether metadata has the answer."""
    tables = query.tables_by_alias() or {}
    return len(tables) == 1 and all_counted(query.tree, next(iter(tables.values())).count) is not None


def _can_travel(table: SandboxTable) -> bool:
    """Whether another node can read a share of a table, whose name is not that of the rows of all."""
    if table.name.lower() == PARTIALS:
        return False
    return table.scan.fallback is None and (not table.has_buffered_rows or table.is_overlaid)


def _bound(query: SandboxedQuery, zone: str | None, chosen: _Chosen, relation: Any) -> _Bound | None:
    tables = query.tables_by_alias()
    tree = with_values(query.tree, query.params)
    if tables is None or tree is None:
        return None
    columns = {alias: query.shown_columns(table) for alias, table in tables.items()}
    split = split_query(tree, columns, relation.columns)
    if split is None:
        return None
    space = query.space
    inner = space.text_of(split.worker)
    placed = Placed(inner)
    parts = space.relation(inner, None, placed)
    names = [part_name(place) for place in range(len(parts.columns))]
    items = sent(names, parts.types)
    if list(parts.columns) != names or items is None:
        return None
    sql = f"SELECT {items} FROM ({inner}) AS lakelet_parts"
    empty = space.table(sql).slice(0, 0)
    combine, casts = space.text_of(split.combine), received(names, parts.types)
    space.add_temporary(PARTIALS, f"SELECT {casts} FROM {space.add_frame(empty)}")
    combined = space.relation(combine, None, Placed(combine))
    if list(combined.columns) != list(relation.columns) or list(combined.types) != list(relation.types):
        return None
    return _Bound(_work(query, zone, chosen, sql, empty.schema), combine, casts)


def _work(query: SandboxedQuery, zone: str | None, chosen: _Chosen, sql: str, schema: pa.Schema) -> Work:
    tables = (query.tables_by_alias() or {}).values()
    overlay = chosen.table.overlay()
    others = tuple(
        whole(table, query.pruning(table), query.hidden_columns(table)) for table in tables if table is not chosen.table
    )
    table = _without_hidden(query, chosen.table)
    return Work(sql, zone, schema, table, chosen.texts, overlay, others, chosen.splits)


def _without_hidden(query: SandboxedQuery, table: SandboxTable) -> SandboxTable:
    """The table as the workers' text names it: what is hidden is so from all of the text."""
    return replace(table, hidden=query.hidden_columns(table))


def _reader(gathered: Gathered) -> Any:
    def read(wanted: Sequence[str] | None, _: pc.Expression | None) -> Iterator[pa.RecordBatch]:
        for batch in gathered.batches():
            yield batch if wanted is None else batch.select([name for name in batch.schema.names if name in wanted])

    return read


def _explained(bound: _Bound, spread: Spread) -> SqlResult:
    work = bound.work
    lines = [f"table {work.split.name}: {len(work.splits)} splits"]
    lines += [f"  {one.node}: {one.splits} splits, {one.bytes} bytes" for one in spread.told(work)]
    lines += [f"  all rows of {other.name} on each of them" for other in work.others]
    rows = [
        ("distribution", "\n".join(lines)),
        ("worker", work.sql),
        ("combine", bound.combine),
    ]
    return SqlResult.of_rows(_COLUMNS, rows)


def _alias(node: Node) -> str:
    return str(node.get("alias") or node["qualified_name"]["path"][-1]).lower()
