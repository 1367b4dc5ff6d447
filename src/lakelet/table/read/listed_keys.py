"""Rows of a list of keys of one column in one bucket, the form in which many keys are asked for most: without columns on the way.

keys ─ values ─┬─ all of them were found before (`read/serve/kept_rows`)
               └─ in bytes one behind the other ─ one compiled call a file (`read/serve/served_batch`)
"""

from __future__ import annotations

from typing import Any

from lakelet.read.serve.serving_reader import ServingReader
from lakelet.table.read.key_route import KeyRoute

# Keys that are looked up first: of a list of new keys hardly one was found before.
_PROBED = 8


def find_listed(route: KeyRoute | None, reader: ServingReader, keys: object) -> list[dict[str, Any] | None] | None:
    """The row of each key at its place, None where there is none; None for keys that have to go the long way."""
    found = None if route is None else route.find_values(keys)
    if route is None or found is None:
        return None
    split, values = found
    first = route.encode_each(values[:_PROBED])
    if first is None:
        return None
    if reader.find_kept(split, first) is not None:
        encoded = route.encode_each(values)
        kept = None if encoded is None else reader.find_kept(split, encoded)
        if kept is not None:
            return kept
    joined = route.find_many(values)
    rows = None if joined is None else reader.find_many(split, *joined)
    if rows is not None and reader.keeps_more(split):
        reader.keep(split, route.encode_each(values) or [], rows)
    return rows
