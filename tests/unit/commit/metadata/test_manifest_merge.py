"""The policy of merging manifests, as arithmetic; and that a merge changes no live file."""

from itertools import pairwise

import pyarrow as pa
import pytest

from lakelet.commit.metadata.manifest_merge import MergePolicy, merge_manifests, merge_start, wants_full_merge
from lakelet.commit.metadata.manifests import ManifestFiles, ManifestSettings, live_entries, snapshot_manifests
from lakelet.format.manifest.manifest_columns import EMPTY_ROW, NO_STATS
from lakelet.model.manifest import ManifestFile
from lakelet.storage.memory import MemoryStore
from tests.crash.operations import rows
from tests.crash.warehouse import TABLE, home_on, lake_on

POLICY = MergePolicy(target_bytes=8000, min_count=30, full_bytes=16_000)


def manifest(size: int, *, added: int = 1, deleted: int = 0) -> ManifestFile:
    return ManifestFile("m", size, added, deleted, NO_STATS, 0)


def test_few_manifests_stay() -> None:
    assert merge_start([manifest(100)] * 29, POLICY) is None
    assert merge_start([], POLICY) is None


def test_enough_small_manifests_are_merged() -> None:
    assert merge_start([manifest(100)] * 30, POLICY) == 0


def test_full_manifests_stay() -> None:
    full = [manifest(8000)] * 50
    assert merge_start(full, POLICY) is None
    assert merge_start([*full, *[manifest(100)] * 30], POLICY) == 50


def test_a_large_neighbour_is_spared() -> None:
    assert merge_start([manifest(7000), *[manifest(100)] * 30], POLICY) == 1


def test_sizes_that_only_fall_are_merged_once_there_are_many() -> None:
    falling = [manifest(2 ** max(0, 12 - number // 5) + 60 - number) for number in range(60)]
    assert merge_start(falling, POLICY) is not None


@pytest.mark.parametrize("commits", [5000])
def test_thousands_of_commits_keep_few_manifests_and_rewrite_each_entry_seldom(commits: int) -> None:
    """A model: an entry is ten bytes, so that a full manifest holds eight hundred."""
    manifests: list[ManifestFile] = []
    rewritten, most = 0, 0
    for _ in range(commits):
        manifests.append(manifest(10))
        start = merge_start(manifests, POLICY)
        if start is not None:
            size = sum(one.size for one in manifests[start:])
            rewritten += size // 10
            manifests = [*manifests[:start], manifest(size)]
        most = max(most, sum(one.size < POLICY.target_bytes for one in manifests))
    assert most <= 2 * POLICY.min_count
    assert rewritten <= 8 * commits
    assert all(earlier.size >= later.size or later.size < POLICY.target_bytes for earlier, later in pairwise(manifests))


def test_removals_alone_ask_for_a_full_merge_once_they_have_piled_up() -> None:
    assert not wants_full_merge([manifest(100, added=1000)] * 5, POLICY)
    assert not wants_full_merge([manifest(100), manifest(100, added=0, deleted=100)], POLICY)
    assert wants_full_merge([manifest(100, added=1500), manifest(100, added=0, deleted=600)], POLICY)
    assert not wants_full_merge([manifest(100, added=9000), manifest(100, added=0, deleted=600)], POLICY)
    assert wants_full_merge([manifest(100), manifest(16_000, added=0, deleted=5)], POLICY)
    assert not wants_full_merge([manifest(16_000, added=3, deleted=5)], POLICY)


def names(entries: pa.Table) -> list[str]:
    return sorted(entries.column("_FILE_NAME").to_pylist())


@pytest.mark.parametrize(
    ("full_bytes", "target_bytes"), [(1 << 40, 8 << 20), (1, 8 << 20), (1 << 40, 400)], ids=["minor", "full", "split"]
)
def test_a_merge_changes_no_live_file(full_bytes: int, target_bytes: int) -> None:
    store = MemoryStore()
    lake = lake_on(store)
    lake.create_database("d")
    table = lake.create_table(TABLE, [("id", "BIGINT"), ("p", "STRING")], partitioned_by=["p"])
    for number in range(6):
        table.write(rows((number, "a"), (number, "b")))
    table.write(rows((10, "a")), mode="overwrite_partitions")
    table.delete(where="id = 3")
    home, snapshot = home_on(store), table.latest_snapshot()
    assert snapshot is not None
    before = snapshot_manifests(home, snapshot)
    policy, settings = MergePolicy(8 << 20, 2, full_bytes), ManifestSettings("avro", "zstd", target_bytes, 1)
    files = ManifestFiles(home, settings, table.schema.partition_types, 0)
    after = merge_manifests(home, before, policy, files, 1)
    assert after != before
    assert names(live_entries(home, after)) == names(live_entries(home, before))
    assert sum(one.deleted_files for one in after) == 0
    for one in after:
        assert one.partition_stats.min_values != EMPTY_ROW
    assert (len(after) == 1) is (target_bytes > 400)


def test_a_merge_of_the_newest_keeps_removals_of_older_files() -> None:
    store = MemoryStore()
    lake = lake_on(store)
    lake.create_database("d")
    table = lake.create_table(TABLE, [("id", "BIGINT"), ("p", "STRING")])
    table.write(rows(*((number, "a") for number in range(50))))
    for _ in range(3):
        table.write(rows((99, "z")), mode="overwrite")
    home, snapshot = home_on(store), table.latest_snapshot()
    assert snapshot is not None
    before = snapshot_manifests(home, snapshot)
    # The oldest manifest is as large as the target here, so that only the others are merged.
    policy = MergePolicy(before[0].size, 2, 1 << 40)
    small = [one for one in before[1:] if one.size < policy.target_bytes]
    files = ManifestFiles(home, ManifestSettings("avro", "zstd", 8 << 20, 1), table.schema.partition_types, 0)
    after = merge_manifests(home, before, policy, files, 1)
    assert names(live_entries(home, after)) == names(live_entries(home, before))
    assert len(small) == len(before) - 1 or after == before


def test_a_full_merge_keeps_files_in_their_order() -> None:
    store = MemoryStore()
    lake = lake_on(store, "0")
    lake.create_database("d")
    table = lake.create_table(TABLE, [("id", "BIGINT"), ("p", "STRING")])
    for number in range(6):
        table.write(rows((number, "a")))
    # The second file goes and the last but one; both share no manifest with the others.
    table.delete(where="id = 1")
    table.delete(where="id = 4")
    home, snapshot = home_on(store), table.latest_snapshot()
    assert snapshot is not None
    before = snapshot_manifests(home, snapshot)
    names = live_entries(home, before).column("_FILE_NAME").to_pylist()
    files = ManifestFiles(home, ManifestSettings("avro", "zstd", 8_000_000, 1), (), 0)
    merged = merge_manifests(home, before, MergePolicy(8_000_000, 1000, 1), files, 1)
    assert sum(manifest.deleted_files for manifest in merged) == 0
    assert len(merged) < len(before)
    assert live_entries(home, merged).column("_FILE_NAME").to_pylist() == names
