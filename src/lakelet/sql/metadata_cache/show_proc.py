"""`SHOW PROC '/tiered_cache_stats[/catalog[/database[/table]]]'`: the counts of the metadata cache, a row a level."""

from __future__ import annotations

import pyarrow as pa

from lakelet.catalog.sql_result import SqlResult
from lakelet.operations.metadata_cache import cache_report
from lakelet.sql.context import Context
from lakelet.sql.lexer.word_reader import WordReader
from lakelet.sql.statements.text.clauses import placed

_COLUMNS = {
    "Cache Level": pa.string(),
    "Hit Ratio": pa.string(),
    "Hit Count": pa.int64(),
    "Miss Count": pa.int64(),
    "Avg Load Time": pa.string(),
    "Entries": pa.int64(),
    "Bytes": pa.int64(),
    "Evictions": pa.int64(),
}


def show_proc(context: Context, reader: WordReader) -> SqlResult:
    """SHOW PROC 'path', behind its first two words."""
    word = reader.peek()
    path = reader.string("a path such as '/tiered_cache_stats'")
    reader.finish()
    with placed(reader, word):
        report = cache_report(context.lake, path)
    rows: list[tuple[object, ...]] = [
        (one.level, one.hit_ratio, one.hits, one.misses, one.average_load, one.entries, one.nbytes, one.evictions)
        for one in report
    ]
    if report[0].cached is None:
        return SqlResult.of_rows(_COLUMNS, rows)
    known = [(*row, one.cached) for row, one in zip(rows, report, strict=True)]
    return SqlResult.of_rows({**_COLUMNS, "Cached": pa.string()}, known)
