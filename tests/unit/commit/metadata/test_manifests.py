"""Manifests of few entries, and how many threads read manifests."""

import threading
from collections.abc import Callable
from typing import TypeVar

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelet.commit.metadata import manifests as manifests_module
from lakelet.commit.metadata.manifests import (
    ManifestFiles,
    ManifestSettings,
    cancel,
    drop_removed,
    read_entries,
    snapshot_manifests,
)
from lakelet.commit.metadata.snapshots import latest_snapshot
from lakelet.format.manifest.manifest_columns import EMPTY_ROW, NO_STATS, entries_to_columns
from lakelet.format.rows.binary_row import encode_row
from lakelet.model.data_file import DataFile
from lakelet.model.manifest import EntryKind, ManifestEntry
from lakelet.model.type_parser import parse_type
from lakelet.model.types import DataType
from lakelet.storage.decorated import DecoratedStore
from lakelet.storage.memory import MemoryStore
from lakelet.table import Table
from tests.crash.warehouse import TABLE, home_on, lake_on
from tests.tiers.examples import examples

T = TypeVar("T")
SETTINGS = ManifestSettings("avro", "zstd", 8 << 20, 4)
PARTITION = tuple(map(parse_type, ["STRING", "DOUBLE", "DECIMAL(30, 2)", "TIMESTAMP(9)", "INT"]))


def entry(
    number: int, partition: bytes = EMPTY_ROW, *, kind: EntryKind = EntryKind.ADD, level: int = 0
) -> ManifestEntry:
    file = DataFile(f"data-{number}", number, 1, EMPTY_ROW, EMPTY_ROW, NO_STATS, NO_STATS, 0, 0, 0, level)
    return ManifestEntry(kind, partition, number % 3, 3, file)


def files_of(settings: ManifestSettings = SETTINGS, types: tuple[DataType, ...] = ()) -> ManifestFiles:
    return ManifestFiles(home_on(MemoryStore()), settings, types, 7)


@pytest.mark.parametrize(
    "values",
    [
        None,
        ("a text that is long", -0.0, None, None, 5),
        (None, float("nan"), None, 12, None),
        (None, None, None, None, None),
    ],
)
@pytest.mark.parametrize("count", [1, 2, 64])
def test_few_entries_make_the_same_manifest_as_columns(values: tuple[object, ...] | None, count: int) -> None:
    types = () if values is None else PARTITION
    partition = EMPTY_ROW if values is None else encode_row(values, PARTITION)
    entries = [entry(number, partition, kind=EntryKind(number % 2), level=number % 5) for number in range(1, count + 1)]
    few, columns = files_of(types=types), files_of(types=types)
    made = few.write_few(entries)
    assert made is not None
    (expected,) = columns.write_entries(entries_to_columns(entries))
    # Names and markers are random.
    assert [(*_described(one), len(few.written)) for one in made] == [(*_described(expected), 1)]
    home = few._home
    assert read_entries(home, made).equals(entries_to_columns(entries))


def _described(manifest: object) -> tuple[object, ...]:
    return tuple(getattr(manifest, name) for name in manifest.__slots__ if name != "name")  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("settings", "entries"),
    [
        (SETTINGS, []),
        (SETTINGS, [entry(number) for number in range(65)]),
        (SETTINGS, [entry(1), entry(2, encode_row([1], [parse_type("INT")]))]),
        (ManifestSettings("json", "zstd", 8 << 20, 1), [entry(1)]),
        (ManifestSettings("avro", "zstd", 100, 1), [entry(1)]),
    ],
    ids=["none", "many", "two partitions", "json", "over the target size"],
)
def test_other_entries_are_left_to_columns(settings: ManifestSettings, entries: list[ManifestEntry]) -> None:
    files = files_of(settings)
    assert files.write_few(entries) is None
    assert files.written == []


class Watched(DecoratedStore):
    """Records the threads that read."""

    def __init__(self, store: MemoryStore, *, remote: bool) -> None:
        super().__init__(store)
        self.readers: set[str] = set()
        self._remote = remote

    @property
    def is_remote(self) -> bool:
        return self._remote

    def _around(self, call: str, path: str, action: Callable[[], T]) -> T:
        if call == "get":
            self.readers.add(threading.current_thread().name)
        return action()


@pytest.fixture
def table() -> Table:
    lake = lake_on(MemoryStore())
    lake.create_database("d")
    table = lake.create_table(TABLE, [("id", "BIGINT")], options={"write-only": "true"})
    for number in range(6):
        table.write(pa.table({"id": [number]}))
    return table


@pytest.mark.parametrize("remote", [False, True])
@pytest.mark.parametrize("large", [False, True])
def test_threads_read_what_is_far_away_or_large(
    table: Table, monkeypatch: pytest.MonkeyPatch, remote: bool, large: bool
) -> None:
    if large:
        monkeypatch.setattr(manifests_module, "_FEW_BYTES", 0)
    store = Watched(table.home.store, remote=remote)  # type: ignore[arg-type]
    home = home_on(store)
    snapshot = latest_snapshot(home)
    assert snapshot is not None
    manifests = snapshot_manifests(home, snapshot)
    store.readers.clear()
    found = read_entries(home, manifests, threads=4)
    assert found.num_rows == 6
    assert (store.readers == {threading.current_thread().name}) == (not remote and not large)


@settings(max_examples=examples(60), deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(EntryKind), st.integers(0, 2), st.integers(0, 1), st.sampled_from([b"p", b"q"])),
        max_size=20,
    ),
    st.booleans(),
)
def test_few_entries_are_subtracted_like_many(changes: list[tuple[EntryKind, int, int, bytes]], whole: bool) -> None:
    """A file is known by its partition, bucket, level and name."""
    entries = entries_to_columns(
        [entry(number, partition, kind=kind, level=level) for kind, number, level, partition in changes]
    )
    few = (drop_removed(entries), cancel(entries, whole=whole))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(manifests_module, "_FEW_ENTRIES", -1)
        many = (drop_removed(entries), cancel(entries, whole=whole))
    assert all(one.equals(other) for one, other in zip(few, many, strict=True))
