"""pyiceberg's side: the plan of a scan."""

from __future__ import annotations

from typing import Any

from pyiceberg.expressions import EqualTo
from pyiceberg.table import StaticTable

from benchmarks.contender import serve, timed


def plan(metadata: str, column: str, value: str) -> dict[str, Any]:
    """The plan of a scan with an equality filter, from opening the table by its metadata file."""
    with timed() as timer:
        tasks = list(StaticTable.from_metadata(metadata).scan(row_filter=EqualTo(column, value)).plan_files())
    return {**timer.taken, "files": len(tasks)}


if __name__ == "__main__":
    serve(plan)
