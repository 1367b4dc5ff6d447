"""The metadata cache: look-ups of many tables, cold and hot, and the first plan with and without a persisted cache."""

from __future__ import annotations

from typing import Any

import lakelet
import lakelet.catalog.connect
import lakelet.catalog.metadata_cache.native_codec
import lakelet.catalog.metadata_cache.native_loader
import lakelet.predicate.where
import lakelet.scan.plan
import lakelet.table.table
from benchmarks.contender import serve, timed

TABLE = "bench.rows"


def make_tables(folder: str, tables: int) -> dict[str, Any]:
    """Tables of two snapshots each."""
    lake = lakelet.connect(folder)
    lake.create_database("bench")
    for number in range(tables):
        table = lake.create_table(f"bench.t{number}", [("id", "BIGINT"), ("name", "STRING")])
        for _ in range(2):
            table.write([{"id": 1, "name": "a"}])
    return {}


def look_up(folder: str, tables: int, queries: int, staleness: str) -> dict[str, Any]:
    """Levels 1 to 3 of tables in turn: each for the first time, and then this many look-ups; seconds of one look-up."""
    lake = lakelet.connect(folder, {"cache.staleness": staleness})
    names = [f"bench.t{number}" for number in range(tables)]
    with timed() as cold:
        for name in names:
            lake.cache.get_complete_metadata(name)
    with timed() as hot:
        for number in range(queries):
            lake.cache.get_complete_metadata(names[number % tables])
    return {
        "cold": {key: value / tables for key, value in cold.taken.items() if key.endswith("seconds")},
        "hot": {key: value / queries for key, value in hot.taken.items() if key.endswith("seconds")},
        "hit_ratio": lake.cache.get_all_metrics().overall_hit_ratio,
    }


def first_plan(folder: str, persisted: str | None, where: str | None) -> dict[str, Any]:
    """The plan of a scan, from opening the lake, with a persisted cache if it is given."""
    options = {} if persisted is None else {"cache.persist-folder": persisted}
    with timed() as timer:
        lake = lakelet.connect(folder, options)
        found = lake.table(TABLE).scan(where=where).plan()
    lake.cache.persist()
    return {**timer.taken, "files": found.files}


if __name__ == "__main__":
    serve(make_tables, look_up, first_plan)
