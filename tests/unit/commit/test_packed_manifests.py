"""All manifests merged at once, on demand and with a full compaction."""

import pytest

from lakelet import Table
from lakelet.catalog.lake import Lake
from lakelet.commit.metadata.manifest_merge import MergePolicy, needs_packing
from lakelet.commit.metadata.manifests import snapshot_manifests
from lakelet.format.manifest.manifest_columns import NO_STATS
from lakelet.model.manifest import ManifestFile
from lakelet.model.snapshot import CommitKind
from lakelet.storage.memory import MemoryStore

POLICY = MergePolicy(target_bytes=1000, min_count=30, full_bytes=16_000)


@pytest.fixture
def table() -> Table:
    lake = Lake(MemoryStore())
    lake.create_database("d")
    return lake.create_table("d.t", [("id", "BIGINT NOT NULL")], primary_key=["id"], options={"bucket": "1"})


def manifests(table: Table) -> list[ManifestFile]:
    snapshot = table.latest_snapshot()
    assert snapshot is not None
    return snapshot_manifests(table._home, snapshot)


def numbers(table: Table) -> list[int]:
    return sorted(table.scan().to_arrow().column("id").to_pylist())


def test_manifests_become_one_and_older_versions_stay(table: Table) -> None:
    for number in range(12):
        table.write([{"id": number}])
    before = table.files()
    made = table.compact_manifests()
    assert made is not None
    assert made.commit_kind is CommitKind.COMPACT
    assert [(manifest.deleted_files, manifest.added_files) for manifest in manifests(table)] == [(0, len(before))]
    assert table.files() == before
    assert numbers(table) == list(range(12))
    assert table.scan(version=3).count() == 3
    assert table.compact_manifests() is None


def test_nothing_to_pack(table: Table) -> None:
    assert table.compact_manifests() is None
    table.write([{"id": 1}])
    assert table.compact_manifests() is None


def test_a_full_compaction_packs_them_too(table: Table) -> None:
    for number in range(4):
        table.write([{"id": number}])
    table.compact(full=True)
    # What was there before as one, and what the compaction changed.
    assert len(manifests(table)) == 2
    assert numbers(table) == list(range(4))


@pytest.mark.parametrize(
    ("sizes", "deleted", "expected"),
    [((), 0, False), ((10,), 0, False), ((10,), 1, True), ((10, 20), 0, True), ((900, 10, 800), 0, False)],
)
def test_what_is_worth_packing(sizes: tuple[int, ...], deleted: int, expected: bool) -> None:
    found = [ManifestFile("m", size, 1, deleted, NO_STATS, 0) for size in sizes]
    assert needs_packing(found, POLICY) is expected
