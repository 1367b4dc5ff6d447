"""Traces of the metadata cache, by the names of a query's tables: collected for EXPLAIN alone."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from lakelet.cache.trace import CacheTrace

if TYPE_CHECKING:
    from lakelet.table import Table

Traces = dict[str, CacheTrace]


def trace_of(traces: Traces | None, name: str) -> CacheTrace | None:
    """The trace of this name; None without traces."""
    return None if traces is None else traces.setdefault(name, CacheTrace())


def traced(table: Table, traces: Traces | None, name: str) -> Table:
    """The same table, which notes in the trace of this name what it takes from the cache; the table itself without traces."""
    if traces is None:
        return table
    from lakelet.catalog.metadata_cache.native_source import CachedMetadata  # noqa: PLC0415 - only EXPLAIN wants it.
    from lakelet.table import Table  # noqa: PLC0415

    source = table.home.metadata
    if not isinstance(source, CachedMetadata):
        return table
    trace = traces.setdefault(name, CacheTrace())
    return Table(table.name, replace(table.home, metadata=source.traced(trace)))
