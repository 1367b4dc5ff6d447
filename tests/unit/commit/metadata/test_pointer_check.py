"""Pointers that are confirmed in two round trips are those that a reader without a cache finds, whatever an upkeep has left."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lakelet.catalog.lake import Lake
from lakelet.commit.metadata.pointer_check import MOST_LISTED, FolderSize, confirm
from lakelet.commit.metadata.pointers import newest_schema, newest_snapshot, snapshot_pointer_of
from lakelet.commit.metadata.version_ids import latest_id
from lakelet.storage.home import TableHome
from lakelet.storage.memory import MemoryStore
from tests.tiers.examples import examples

MOST = 14
KNOWN = st.sampled_from([None, FolderSize(7, 7), FolderSize(7, MOST_LISTED + 1), FolderSize(7, None)])


@dataclass
class Folder:
    """A table whose files of snapshots are put and taken away at will."""

    home: TableHome
    files: dict[int, bytes]

    def holds(self, numbers: set[int], hint: bytes | None) -> None:
        store, paths = self.home.store, self.home.paths
        store.delete([paths.latest_hint, *(paths.snapshot(number) for number in self.files)])
        for number in numbers:
            store.put(paths.snapshot(number), self.files[number])
        if hint is not None:
            store.put(paths.latest_hint, hint)


@pytest.fixture(scope="module")
def folder() -> Folder:
    lake = Lake(MemoryStore())
    lake.create_database("d")
    table = lake.create_table("d.t", [("id", "BIGINT")], options={"write-only": "true"})
    for number in range(MOST):
        table.write(pa.table({"id": [number]}))
    home = table.home
    return Folder(home, {one: home.store.get(home.paths.snapshot(one)) for one in range(1, MOST + 1)})


@pytest.fixture(scope="module")
def pool() -> Iterator[Executor]:
    with ThreadPoolExecutor(4) as made:
        yield made


@given(
    numbers=st.sets(st.integers(1, MOST), min_size=1)
    | st.builds(lambda a, b: set(range(a, b + 1)), *[st.integers(1, MOST)] * 2),
    hint=st.none() | st.sampled_from([b"", b"x", b"99"]) | st.integers(1, MOST).map(lambda one: str(one).encode()),
    number=st.integers(1, MOST),
    known=KNOWN,
)
@example(numbers={3, 4, 10, 11}, hint=b"4", number=11, known=None)
@example(numbers={3, 4, 10, 11}, hint=b"4", number=4, known=FolderSize(7, None))
@example(numbers={5, 10, 11}, hint=b"5", number=5, known=FolderSize(7, None))
@example(numbers={1, 2, 3, 9}, hint=b"9", number=3, known=None)
@settings(max_examples=examples(300))
def test_what_is_confirmed_is_what_a_reader_without_a_cache_finds(
    folder: Folder, pool: Executor, numbers: set[int], hint: bytes | None, number: int, known: FolderSize | None
) -> None:
    folder.holds(numbers, hint)
    home = folder.home
    pointer = snapshot_pointer_of(folder.files[number], number, "s")
    found = confirm(home, pointer, newest_schema(home), pool, known)
    assert found.schema
    if found.snapshot:
        assert latest_id(home) == number


@pytest.mark.parametrize("first", [1, 4])
@pytest.mark.parametrize("hint", [b"9", b"4", b"5", b"x", None])
def test_a_run_without_a_gap_is_confirmed_wherever_the_hint_leads(
    folder: Folder, pool: Executor, first: int, hint: bytes | None
) -> None:
    folder.holds(set(range(first, 10)), hint)
    home = folder.home
    pointer, schema = snapshot_pointer_of(folder.files[9], 9, "s"), newest_schema(home)
    found = confirm(home, pointer, schema, pool, None)
    assert (found.snapshot, found.schema, found.folder) == (True, True, FolderSize(9, 10 - first))
    assert latest_id(home) == 9


def test_other_bytes_under_the_same_ids_are_not_confirmed(folder: Folder, pool: Executor) -> None:
    folder.holds({1, 2, 3}, b"3")
    home, paths = folder.home, folder.home.paths
    snapshot, schema = newest_snapshot(home), newest_schema(home)
    assert snapshot is not None
    stored = home.store.get(paths.schema(0))
    home.store.put(paths.snapshot(3), folder.files[3] + b" ")
    home.store.put(paths.schema(0), stored + b" ")
    for known in (None, FolderSize(3, None)):
        found = confirm(home, snapshot, schema, pool, known)
        assert (found.snapshot, found.schema) == (False, False)
    home.store.put(paths.schema(0), stored)


def test_a_large_folder_is_looked_at_again_after_many_snapshots() -> None:
    size = FolderSize(1000, MOST_LISTED + 1)
    assert [size.is_listed(number) for number in (1000, 1099, 1100, 900, 901)] == [False, False, True, True, False]
    assert FolderSize(1000, MOST_LISTED).is_listed(1001)
    assert not FolderSize(1000, None).is_listed(1001)
