"""Deletion vectors are removed with their data files; everything else in an index manifest is kept."""

from dataclasses import replace

import pytest

from lakelet.commit.index_changes import DELETION_VECTORS, carry_index_manifest, read_index_entries
from lakelet.commit.metadata.manifests import ManifestFiles, ManifestSettings
from lakelet.errors import CorruptionError
from lakelet.format.manifest.index_manifest import encode_index_manifest
from lakelet.format.manifest.manifest_columns import EMPTY_ROW, NO_STATS, entries_to_columns
from lakelet.format.manifest.manifest_file import avro_codec
from lakelet.model.data_file import DataFile, DeletionVectorRange, IndexFile
from lakelet.model.manifest import EntryKind, IndexManifestEntry, ManifestEntry
from lakelet.model.snapshot import CommitKind, Snapshot
from lakelet.storage.home import TableHome
from lakelet.storage.memory import MemoryStore
from tests.crash.warehouse import home_on, listing

VECTORS = IndexManifestEntry(
    EntryKind.ADD,
    EMPTY_ROW,
    0,
    IndexFile(
        DELETION_VECTORS,
        "index-1",
        100,
        2,
        (DeletionVectorRange("a", 1, 10, 3), DeletionVectorRange("b", 11, 10, None)),
    ),
)
HASH = IndexManifestEntry(EntryKind.ADD, EMPTY_ROW, 1, IndexFile("HASH", "index-2", 40, 10))
SNAPSHOT = Snapshot(1, 0, "base", "delta", "u", 1, CommitKind.APPEND, 1, 0, 0, index_manifest="index-manifest-x-0")


@pytest.fixture
def home() -> TableHome:
    home = home_on(MemoryStore())
    home.store.put(
        home.paths.manifest("index-manifest-x-0"), encode_index_manifest([VECTORS, HASH], codec=avro_codec("zstd"))
    )
    return home


def removed(*names: str):  # type: ignore[no-untyped-def]
    files = [DataFile(name, 1, 1, EMPTY_ROW, EMPTY_ROW, NO_STATS, NO_STATS, 0, 0, 0, 0) for name in names]
    return entries_to_columns([ManifestEntry(EntryKind.DELETE, EMPTY_ROW, 0, -1, file) for file in files])


def carried(home: TableHome, *names: str, latest: Snapshot | None = SNAPSHOT) -> str | None:
    return carry_index_manifest(
        home, latest, removed(*names), ManifestFiles(home, ManifestSettings("avro", "zstd", 1 << 20, 1), (), 0)
    )


def test_without_an_index_there_is_none(home: TableHome) -> None:
    assert carried(home, "a", latest=None) is None
    assert carried(home, "a", latest=replace(SNAPSHOT, index_manifest=None)) is None


@pytest.mark.parametrize("names", [(), ("z",)])
def test_an_index_that_loses_nothing_is_kept(home: TableHome, names: tuple[str, ...]) -> None:
    before = listing(home.store)
    assert carried(home, *names) == "index-manifest-x-0"
    assert listing(home.store) == before


def test_the_vector_of_a_removed_file_goes(home: TableHome) -> None:
    name = carried(home, "a")
    assert name is not None
    left = read_index_entries(home, replace(SNAPSHOT, index_manifest=name))
    (vectors,) = (entry for entry in left if entry.file.index_type == DELETION_VECTORS)
    assert vectors.file.deletion_vectors == (DeletionVectorRange("b", 11, 10, None),)
    assert vectors.file.row_count == 1
    assert HASH in left


def test_an_index_file_without_vectors_goes_too(home: TableHome) -> None:
    name = carried(home, "a", "b")
    assert name is not None
    assert read_index_entries(home, replace(SNAPSHOT, index_manifest=name)) == [HASH]


def test_the_last_index_file_takes_the_manifest_with_it(home: TableHome) -> None:
    home.store.put(
        home.paths.manifest("index-manifest-x-0"), encode_index_manifest([VECTORS], codec=avro_codec("zstd"))
    )
    assert carried(home, "a", "b") is None


def test_a_broken_index_manifest_is_named(home: TableHome) -> None:
    home.store.put(home.paths.manifest("index-manifest-x-0"), b"Obj")
    with pytest.raises(CorruptionError, match="index-manifest-x-0"):
        read_index_entries(home, SNAPSHOT)
