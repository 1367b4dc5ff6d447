"""A hundred threads that plan, read and look up at once get right answers, and the cache stays within its bytes."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier, Event

import pytest

import lakelet
from lakelet.cache.settings import CacheSettings
from lakelet.catalog.lake import Lake
from lakelet.catalog.metadata_cache.open import cached_metadata
from lakelet.ids import seeded_numbers
from lakelet.storage.disk.local_store import LocalStore

THREADS = 100
LOOKUPS = 6
TABLES = 5
# The number of tables that are written to while they are read.
_WRITTEN = 10


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


def run_readers(folder: Path, tables: int, clients: int, queries: int, options: dict[str, str]) -> int:
    """Clients that ask for random tables while another lake, of which theirs hears nothing, commits to them: none ever sees an
    older version than the one that was committed before it asked. Returns how many queries saw a version that was committed
    meanwhile."""
    store = LocalStore(folder, durable=False)
    writer = Lake(store)
    writer.create_database("d")
    for number in range(tables):
        writer.create_table(f"d.t{number}", [("k", "INT")]).write([{"k": 0}])
    source = cached_metadata(store, CacheSettings.of(options), listens=False)
    reader = Lake(store, metadata=source, cache=source.cache)
    committed, ended = [1] * tables, Event()

    def write() -> None:
        numbers = seeded_numbers(0)
        while not ended.is_set():
            number = int(numbers.integers(0, min(tables, _WRITTEN)))
            writer.table(f"d.t{number}").write([{"k": committed[number]}])
            committed[number] += 1

    def ask(client: int) -> int:
        numbers, newer = seeded_numbers(client + 1), 0
        for place in range(queries):
            # One in two asks for a table that is written to.
            number = int(numbers.integers(0, min(tables, _WRITTEN) if place % 2 else tables))
            before = committed[number]
            table = reader.table(f"d.t{number}")
            found = table.scan().plan().row_count if place % 3 else reader.cache.get_table_metadata(f"d.t{number}")
            seen = found if isinstance(found, int) else found.current_snapshot_id or 0
            assert seen >= before, (number, seen, before)
            newer += seen > before
        return newer

    with ThreadPoolExecutor(clients + 1) as pool:
        writing = pool.submit(write)
        try:
            newer = sum(pool.map(ask, range(clients)))
        finally:
            ended.set()
        writing.result()
    assert source.cache.tiers.nbytes <= source.cache.tiers.max_bytes
    return newer


def test_no_client_sees_an_older_version_than_was_committed_before_it_asked(tmp_path: Path) -> None:
    run_readers(tmp_path, 30, 8, 60, {"cache.max-bytes": "100 kb"})
