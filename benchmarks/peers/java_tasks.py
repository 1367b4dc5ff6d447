"""Java Paimon's side, by the process that the conformance tests ask (`tests/conformance/java`)."""

from __future__ import annotations

import time
from typing import Any

from benchmarks.contender import serve
from benchmarks.process_tree import children_user_seconds
from tests.conformance.java.client import JavaPaimon


def compact(folders: list[str], table: str) -> dict[str, Any]:
    """A full compaction of copies of one table in one JVM; the first, which warms it up, is not counted."""
    java = JavaPaimon()
    taken = []
    for folder in folders:
        begin, processor = time.perf_counter(), children_user_seconds()
        java.compact(folder, table)
        taken.append((time.perf_counter() - begin, children_user_seconds() - processor))
    java.close()
    counted = taken[1:] or taken
    return {
        "seconds": min(seconds for seconds, _ in counted),
        "user_seconds": min(processor for _, processor in counted),
        "first_seconds": taken[0][0],
    }


if __name__ == "__main__":
    serve(compact)
