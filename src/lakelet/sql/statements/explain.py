"""`EXPLAIN [ANALYZE] query`: what is read of each table, out of how much, and DuckDB's plan.

shop.orders     snapshot: 3
                manifests: 2 of 2
                files: 3 of 40 (2 read by DuckDB, 1 by Lakelet)
                row groups: 3 of 12 of the files read by DuckDB
                rows: 120000 at most
                cache: pointer checked, manifests: 2 from the cache, 0 read, plan made
physical_plan   …
"""

from __future__ import annotations

import re

import pyarrow as pa

from lakelet.cache.trace import CacheTrace
from lakelet.catalog.sql_result import SqlResult
from lakelet.format.data.parquet_file import open_parquet
from lakelet.model.arrow.arrow_types import arrow_schema
from lakelet.predicate.row_filter import row_filter
from lakelet.read.parquet_scan import matching_row_groups
from lakelet.read.split_files import SplitFile
from lakelet.sql.context import Context
from lakelet.sql.engine.duckdb_engine import TEMPORARY_DATABASE
from lakelet.sql.lexer.word_reader import WordReader
from lakelet.sql.query.query import Query
from lakelet.sql.query.table_view import TableView
from lakelet.sql.statement import Statement

_QUERIES = ("SELECT", "WITH", "FROM", "VALUES", "TABLE", "(", "PIVOT", "UNPIVOT", "SUMMARIZE")
_TEMPORARY = re.compile(rf"{TEMPORARY_DATABASE}\.main\.([^\s│]+)")
_COLUMNS = {"explain_key": pa.string(), "explain_value": pa.string()}


def run_explain(context: Context, statement: Statement) -> SqlResult:
    """EXPLAIN [ANALYZE] query, EXPLAIN (ANALYZE, FORMAT JSON) query."""
    reader = statement.reader
    reader.expect("EXPLAIN")
    options = _options(reader)
    if reader.peek().keyword not in _QUERIES:
        # DuckDB would explain its own statements, and run them with ANALYZE.
        raise reader.error("a query")
    text = reader.source_in_place(reader.place, len(reader.words))
    reader.place = len(reader.words)
    query = Query(context, text, statement.params, statement.frames, {})
    query.traces = {}
    query.prepare()
    with query.space:
        plan = query.space.run(f"EXPLAIN {options} {query.placed.changed}", statement.params, query.placed)
        rows = [
            (
                name,
                f"{_pruning(view) if isinstance(view, TableView) else view.summary()}\n{_cache(query.traces.get(name))}",
            )
            for name, view in query.views
        ]
        rows += [(str(key), _TEMPORARY.sub(_as_written, str(value))) for key, value in plan]
    return SqlResult.of_rows(_COLUMNS, rows)


def _options(reader: WordReader) -> str:
    """What DuckDB is to explain, and how; its options may be in parentheses, where a query may begin, too."""
    if reader.accept("ANALYZE"):
        return "ANALYZE"
    if not reader.at("(") or reader.peek(1).keyword not in ("ANALYZE", "FORMAT"):
        return ""
    return f"({', '.join(reader.listed(lambda: _option(reader)))})"


def _option(reader: WordReader) -> str:
    name = reader.one_of("ANALYZE", "FORMAT")
    value = "" if reader.at(",") or reader.at(")") else reader.source(reader.place, reader.place + 1)
    if value:
        reader.take()
    return f"{name} {value}".rstrip()


def _as_written(name: re.Match[str]) -> str:
    """A temporary table's own name, padded to the width of DuckDB's internal name."""
    return f"temp.main.{name[1]}".ljust(len(name[0]))


def _cache(trace: CacheTrace | None) -> str:
    """What came from the metadata cache."""
    return f"cache: {'not used' if trace is None else trace.summary()}"


def _pruning(view: TableView) -> str:
    """The pruning summary of a table."""
    plan, assigned = view.plan, view.assigned
    native = assigned.files
    merged = sum(len(split.files) for split in assigned.ours)
    groups = [_row_groups(view, file) for file in native]
    snapshot = "none" if plan.snapshot_id is None else str(plan.snapshot_id)
    rows = sum(file.data.row_count for file in native) + sum(split.row_count for split in assigned.ours)
    left_out = sum(len(positions) for positions in assigned.gone.values())
    lines = [
        f"snapshot: {snapshot}",
        f"manifests: {plan.manifests_read} of {plan.manifests_total}",
        f"files: {len(native) + merged} of {plan.files_total} ({len(native)} read by DuckDB, {merged} by Lakelet)",
        f"row groups: {sum(read for read, _ in groups)} of {sum(total for _, total in groups)} of the files read by DuckDB",
        f"rows: {rows - left_out} at most"
        + (f", {left_out} left out that are superseded or deleted" if left_out else ""),
    ]
    return "\n".join(lines)


def _row_groups(view: TableView, file: SplitFile) -> tuple[int, int]:
    """The number of row groups of a file that may have a matching row, and of all."""
    home, scan = view.home, view.scan
    with open_parquet(home.store, file.path) as parquet:
        total = int(parquet.metadata.num_row_groups)
    condition = row_filter(scan.where, scan.schema.fields).pushdown
    if condition is None or file.data.schema_id != scan.schema.id:
        return total, total
    schema = pa.schema([field.with_nullable(True) for field in arrow_schema(scan.schema.fields)])
    return len(matching_row_groups(home, file.path, schema, condition)), total
