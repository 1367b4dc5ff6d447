"""A process that is killed at any moment leaves a persisted cache that the next one starts with, without old rows."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from lakelet.cache.settings import CacheSettings
from lakelet.catalog.lake import Lake
from lakelet.catalog.metadata_cache.open import cached_metadata
from lakelet.storage.disk.local_store import LocalStore
from lakelet.testing import CountingStore
from tests.crash.cache.killed_reader import TABLE


def killed_after(lines: int, warehouse: Path, persisted: Path) -> None:
    command = [sys.executable, "-m", "tests.crash.cache.killed_reader", str(warehouse), str(persisted)]
    environment = {"PYTHONPATH": ":".join(entry for entry in sys.path if entry)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdout is not None
        for _ in range(lines):
            assert process.stdout.readline()
        process.send_signal(signal.SIGKILL)


def opened(warehouse: Path, persisted: Path, staleness: str) -> tuple[Lake, CountingStore]:
    store = CountingStore(LocalStore(str(warehouse)))
    options = {"cache.persist-folder": str(persisted), "cache.staleness": staleness}
    source = cached_metadata(store, CacheSettings.of(options), listens=False)
    return Lake(store, metadata=source, cache=source.cache), store


@pytest.mark.parametrize("lines", [1, 5])
def test_the_next_process_starts_with_what_was_persisted(tmp_path: Path, lines: int) -> None:
    warehouse, persisted = tmp_path / "lake", tmp_path / "cache"
    plain = Lake(LocalStore(str(warehouse)))
    plain.create_database("shop")
    plain.create_table(
        TABLE, [("id", "BIGINT"), ("dt", "STRING")], partitioned_by=["dt"], options={"manifest.merge-min-count": "1000"}
    )
    killed_after(lines, warehouse, persisted)
    expected = plain.table(TABLE).scan().plan()
    for staleness in ("strict", "manual"):
        lake, store = opened(warehouse, persisted, staleness)
        assert lake.table(TABLE).scan().plan() == expected
        read = {path for _, path in store.log if "/manifest/manifest-" in path and "list" not in path}
        assert len(read) < expected.manifests_total
        assert dict(lake.cache.hottest_tables())["lakelet.shop.orders"] > 1
    # Whatever somebody else does afterwards is seen.
    plain.table(TABLE).write([{"id": -1, "dt": "d9"}])
    for staleness in ("strict", "manual"):
        assert opened(warehouse, persisted, staleness)[0].table(TABLE).scan(where="id = -1").count() == 1
