"""Plans of an Iceberg table of many manifests, by Lakelet and by pyiceberg, in the same catalog.

Each plan begins with the catalog: the newest version is looked up. `hot` plans an unchanged table again and again, with another
condition each time where there is one; `after_commit` plans after another snapshot each time, which is not timed itself.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from pyiceberg.catalog.sql import SqlCatalog

import lakelet
from benchmarks.contender import serve, timed_finely
from benchmarks.metadata.file_layout import ROWS_PER_FILE, PlannedFile
from benchmarks.metadata.plan_layouts import TABLE, iceberg_file
from lakelet.iceberg.scan import scan_of

_FIRST = date(2024, 1, 1)
Planner = Callable[[str | None], int]


def _catalog(folder: str) -> SqlCatalog:
    return SqlCatalog("bench", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}")


def _lakelet(folder: str) -> Planner:
    given = {"type": "sql", "uri": f"sqlite:///{folder}/catalog.db", "warehouse": f"file://{folder}"}
    lake = lakelet.connect(Path(folder) / "lake", {f"catalog.bench.{key}": text for key, text in given.items()})
    catalog = lake.catalogs.open("bench")

    def plan(where: str | None) -> int:
        # The lake has the cache, and is needed as long as it is used.
        assert lake.cache is not None
        return len(scan_of(catalog.table(TABLE, for_queries=True), where=where).files)

    return plan


def _pyiceberg(folder: str) -> Planner:
    catalog = _catalog(folder)

    def plan(where: str | None) -> int:
        table = catalog.load_table(TABLE)
        return len(list((table.scan() if where is None else table.scan(row_filter=where)).plan_files()))

    return plan


_PLANNERS = {"lakelet": _lakelet, "pyiceberg": _pyiceberg}


def _condition(kind: str, number: int, days: int) -> str | None:
    if kind == "all":
        return None
    if kind == "day":
        return f"dt = '{(_FIRST + timedelta(days=number * 7 % days)).isoformat()}'"
    return f"id >= {number * 7 * ROWS_PER_FILE} AND id < {(number * 7 + 3) * ROWS_PER_FILE}"


def hot(folder: str, planner: str, kind: str, days: int, repeats: int) -> dict[str, Any]:
    """Plans of the unchanged table: the least of several, after two that are not counted."""
    plan = _PLANNERS[planner](folder)
    for number in range(2):
        plan(_condition(kind, number, days))
    taken, files = [], 0
    for number in range(2, repeats + 2):
        with timed_finely() as timer:
            files = plan(_condition(kind, number, days))
        taken.append(timer.taken)
    return {**{key: min(one[key] for one in taken) for key in taken[0]}, "files": files}


def after_commit(folder: str, planner: str, kind: str, days: int, repeats: int) -> dict[str, Any]:
    """Plans after one more snapshot each: the least of several."""
    plan, catalog = _PLANNERS[planner](folder), _catalog(folder)
    for number in range(2):
        plan(_condition(kind, number, days))
    taken, files = [], 0
    for number in range(2, repeats + 2):
        table = catalog.load_table(TABLE)
        with table.transaction() as transaction, transaction.update_snapshot().fast_append() as append:
            file = PlannedFile(_FIRST.isoformat(), f"data-more-{number}.parquet", (1 << 40) + number)
            append.append_data_file(iceberg_file(file, table.location(), table.schema()))
        with timed_finely() as timer:
            files = plan(_condition(kind, number, days))
        taken.append(timer.taken)
    return {**{key: min(one[key] for one in taken) for key in taken[0]}, "files": files}


if __name__ == "__main__":
    serve(hot, after_commit)
