"""Files are deleted with the last snapshot, tag or branch that names them."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lakelet.catalog.lake import Lake
from lakelet.commit.retention.empty_folders import remove_empty_folders
from lakelet.commit.retention.file_references import branch_homes, branch_line, table_holders, tagged_snapshots
from lakelet.commit.retention.unused_files import remove_unused
from lakelet.errors import LakeletError
from lakelet.storage.memory import MemoryStore
from lakelet.table import Table
from lakelet.testing.instrumented_stores import CountingStore
from tests.unit.commit.named_files import named_files, stored_files


@pytest.fixture
def store() -> CountingStore:
    return CountingStore(MemoryStore())


@pytest.fixture
def table(store: CountingStore) -> Table:
    """Six snapshots, of which each replaces the rows of the one before."""
    lake = Lake(store)
    lake.create_database("d")
    table = lake.create_table("d.t", [("id", "BIGINT"), ("p", "STRING")], partitioned_by=["p"])
    for number in range(6):
        table.write(pa.table({"id": [number, number], "p": ["a", "b"]}), mode="overwrite" if number % 2 else "append")
    return table


def take(table: Table, *numbers: int) -> None:
    """Removes snapshots by hand, then what only they named."""
    gone = [snapshot for snapshot in table.snapshots() if snapshot.id in numbers]
    table.home.store.delete([table.home.paths.snapshot(number) for number in numbers])
    remove_unused(table.home, gone)


@pytest.mark.parametrize("numbers", [(1,), (1, 2, 3), (6,), (5, 6), (3, 4, 5, 6), (1, 2, 5, 6)])
def test_exactly_what_only_they_named_goes(table: Table, numbers: tuple[int, ...]) -> None:
    take(table, *numbers)
    assert stored_files(table.home) == named_files(table.home)


def test_nothing_goes_of_what_is_there(table: Table) -> None:
    before = stored_files(table.home)
    removed = remove_unused(table.home, table.snapshots())
    assert (removed.count, stored_files(table.home)) == (0, before)
    assert remove_unused(table.home, []).count == 0


def test_tags_and_branches_hold_files(table: Table) -> None:
    table.tags.create("third", version=3)
    table.branches.create("dev", tag="third")
    table.on_branch("dev").write(pa.table({"id": [9], "p": ["a"]}))
    kept = table.scan(tag="third").to_arrow()
    take(table, 1, 2, 3, 4)
    assert stored_files(table.home) == named_files(table.home)
    assert table.scan(tag="third").to_arrow() == kept
    assert [home.paths.branch for home in branch_homes(table.home)] == ["main", "dev"]
    assert [tag.id for tag in tagged_snapshots(table.home)] == [3]
    assert [snapshot.id for snapshot in branch_line(table.home).snapshots] == [5, 6]
    lines = {tuple(snapshot.id for snapshot in line.snapshots) for line in table_holders(table.home).lines}
    assert {(5, 6), (3,), (3, 4)} <= lines


def test_every_manifest_is_read_once(store: CountingStore, table: Table) -> None:
    gone = table.snapshots()[:4]
    store.delete([table.home.paths.snapshot(snapshot.id) for snapshot in gone])
    store.reset()
    remove_unused(table.home, gone)
    reads = [path for call, path in store.log if call == "get" and "/manifest/" in path]
    # Once for what is gone, and once for what is held.
    assert max(reads.count(path) for path in reads) <= 2


def test_what_cannot_be_read_holds_everything(store: CountingStore, table: Table) -> None:
    gone = table.snapshots()[:2]
    store.delete([table.home.paths.snapshot(1), table.home.paths.snapshot(2)])
    store.delete([table.home.paths.manifest(table.snapshots()[-1].base_manifest_list)])
    before = stored_files(table.home)
    with pytest.raises(LakeletError):
        remove_unused(table.home, gone)
    assert stored_files(table.home) == before


def test_only_empty_folders_below_the_table_go(store: CountingStore, table: Table) -> None:
    for folder in ("d.db/t/p=x/q=y/bucket-0", "d.db/t/p=x/q=z/bucket-0", "d.db/t/p=w/bucket-0"):
        store.make_folder(folder)
    store.put("d.db/t/p=w/note", b"")
    folders = [
        "d.db/t/p=x/q=y/bucket-0",
        "d.db/t/p=x/q=z/bucket-0",
        "d.db/t/p=w/bucket-0",
        "d.db/t/p=a/bucket-0",
        "d.db/other",
    ]
    assert remove_empty_folders(table.home, folders) == 6
    assert set(store.list_folder("d.db/t").folders) & {f"d.db/t/p={letter}" for letter in "abwx"} == {
        "d.db/t/p=a",
        "d.db/t/p=b",
        "d.db/t/p=w",
    }
