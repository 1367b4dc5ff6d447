"""The query history as JSON: what is persisted of it.

{"tables": [["catalog", "database", "table", "branch", {"hour": count, …}], …],
 "companions": [[["catalog", "database", "table", "branch"], asked, [[[…], count], …]], …]}
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from lakelet.cache.keys import TableCacheKey
from lakelet.errors import CorruptionError

Counts = Mapping[TableCacheKey, Mapping[int, int]]
Companions = Sequence[tuple[TableCacheKey, int, dict[TableCacheKey, int]]]


def encode_history(counts: Counts, companions: Companions) -> bytes:
    """The bytes of a history."""
    value = {
        "tables": [
            [*_parts(table), {str(hour): count for hour, count in hours.items()}] for table, hours in counts.items()
        ],
        "companions": [
            [_parts(table), asked, [[_parts(one), count] for one, count in by.items()]]
            for table, asked, by in companions
        ],
    }
    return json.dumps(value, separators=(",", ":")).encode()


def decode_history(data: bytes) -> tuple[Counts, Companions]:
    """The history of these bytes; CorruptionError where they are not one."""
    try:
        value = json.loads(data)
        counts = {
            _key(parts): {int(hour): int(count) for hour, count in hours.items()} for *parts, hours in value["tables"]
        }
        companions = [
            (_key(parts), int(asked), {_key(one): int(count) for one, count in by})
            for parts, asked, by in value["companions"]
        ]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise CorruptionError(f"the query history cannot be read: {error}") from error
    return counts, companions


def _parts(table: TableCacheKey) -> list[str]:
    return [table.catalog, table.database, table.table, table.branch]


def _key(parts: Sequence[Any]) -> TableCacheKey:
    catalog, database, table, branch = map(str, parts)
    return TableCacheKey(catalog, database, table, branch)
