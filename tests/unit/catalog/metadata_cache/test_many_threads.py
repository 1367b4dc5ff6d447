"""A hundred threads that plan, read and look up at once get right answers, and the cache stays within its bytes."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

import lakelet

THREADS = 100
LOOKUPS = 6
TABLES = 5


@pytest.mark.parametrize("limit_bytes", [30_000, 256 << 20])
def test_a_hundred_threads_get_right_answers_within_the_limit(tmp_path: Path, limit_bytes: int) -> None:
    lake = lakelet.connect(str(tmp_path), {"cache.max-bytes": str(limit_bytes)})
    lake.create_database("d")
    for number in range(TABLES):
        options = {"bucket": "1", "write-only": "true"}
        table = lake.create_table(f"d.t{number}", [("k", "INT"), ("v", "INT")], primary_key=["k"], options=options)
        for version in range(3):
            table.write([{"k": key, "v": 100 * number + version} for key in range(20 + version)])
    start = Barrier(THREADS)

    def run(thread: int) -> int:
        start.wait()
        most = 0
        for place in range(LOOKUPS):
            number = (thread + place) % TABLES
            table = lake.table(f"d.t{number}")
            match (thread + place) % 4:
                case 0:
                    assert table.get({"k": place}) == {"k": place, "v": 100 * number + 2}
                case 1:
                    assert table.scan(["v"]).to_arrow().column("v").to_pylist() == [100 * number + 2] * 22
                case 2:
                    assert table.scan(where=f"k = {place}").plan().files == 3
                case _:
                    assert lake.cache.get_table_metadata(f"d.t{number}").current_snapshot_id == 3
            most = max(most, lake.cache.tiers.nbytes)
        return most

    with ThreadPoolExecutor(THREADS) as pool:
        most = list(pool.map(run, range(THREADS)))
    # Each thread may have put a value that is not weighed against the others yet.
    assert lake.cache.tiers.nbytes <= limit_bytes
    assert max(most) <= limit_bytes + THREADS * 4_000
