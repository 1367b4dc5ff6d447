"""Rule 3: what a look after the creation can find, with other writers and expiry in between."""

from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa
import pytest

from lakelet.catalog.lake import Lake
from lakelet.commit.conflict.commit_check import is_committed
from lakelet.errors import CommitUnknownError, ConflictError
from lakelet.storage.memory import MemoryStore
from lakelet.table import Table
from tests.unit.hooked_store import HookedStore

SNAPSHOT = "d.db/t/snapshot/snapshot-"


class Race:
    """A slow writer whose store lets others act right after it has created its snapshot 3."""

    def __init__(self, meanwhile: Callable[["Race"], None]) -> None:
        self.store = MemoryStore()
        hooked = HookedStore(self.store)
        slow_lake = Lake(hooked)
        slow_lake.create_database("d")
        self.slow = slow_lake.create_table("d.t", [("x", "BIGINT")])
        self.other = Lake(self.store).table("d.t")
        for value in (0, 1):
            self.other.write(numbers(value))
        hooked.when = lambda call, path: call == "put_if_absent" and path == f"{SNAPSHOT}3"
        hooked.after = lambda: meanwhile(self)

    def expire(self, *ids: int) -> None:
        self.store.delete([f"{SNAPSHOT}{number}" for number in ids])

    def rows(self) -> list[int]:
        return sorted(self.other.scan().to_arrow().column("x").to_pylist())


def numbers(*values: int) -> pa.Table:
    return pa.table({"x": list(values)})


def test_rule_3_expiry_of_the_predecessor_after_others_built_on_us_is_no_hole() -> None:
    def meanwhile(race: Race) -> None:
        race.other.write(numbers(100))
        race.expire(1, 2)

    race = Race(meanwhile)
    race.slow.write(numbers(42))
    assert race.rows() == [0, 1, 42, 100]


def test_rule_3_our_own_snapshot_may_be_expired_before_the_look() -> None:
    def meanwhile(race: Race) -> None:
        race.other.write(numbers(100))
        race.other.write(numbers(101))
        race.expire(1, 2, 3)

    race = Race(meanwhile)
    race.slow.write(numbers(42))
    assert race.rows() == [0, 1, 42, 100, 101]


def test_rule_3_everything_older_expired_leaves_our_commit_standing() -> None:
    race = Race(lambda race: race.expire(1, 2))
    race.slow.write(numbers(42))
    assert race.rows() == [0, 1, 42]


def test_rule_3_when_nobody_can_tell_the_outcome_is_unknown() -> None:
    def meanwhile(race: Race) -> None:
        race.other.write(numbers(100), mode="overwrite")
        race.other.set_options({"manifest.merge-min-count": "1"})
        race.other.write(numbers(101))
        race.expire(1, 2, 3, 4)

    race = Race(meanwhile)
    files_before = len(list(race.store.list("d.db/t/bucket-0")))
    with pytest.raises(CommitUnknownError, match="expired meanwhile"):
        race.slow.write(numbers(42))
    # Three files are new: those of the two others, and ours, which stays. Its row was overwritten and is not there again.
    assert len(list(race.store.list("d.db/t/bucket-0"))) == files_before + 3
    assert race.rows() == [100, 101]


def test_rule_3_a_late_create_below_the_live_run_is_no_commit() -> None:
    race = Race(lambda race: None)
    late = race.slow.write(numbers(42))
    assert late is not None
    for value in (100, 101):
        race.other.write(numbers(value))
    race.expire(1, 2, 3)
    stray = Lake(race.store).create_table("d.u", [("x", "BIGINT")])
    foreign = stray.write(numbers(7))
    assert foreign is not None
    home = race.other._home
    race.store.put(f"{SNAPSHOT}2", race.store.get("d.db/u/snapshot/snapshot-1"))
    for info in list(race.store.list("d.db/u/manifest")):
        race.store.copy(info.path, info.path.replace("d.db/u", "d.db/t"))
    assert is_committed(home, replace(foreign, id=2), None) is False


def _before_creation(race: Race, meanwhile: Callable[[], object]) -> None:
    """Others act when the slow writer has its manifests and is about to create its snapshot."""
    hooked = race.slow._home.store
    assert isinstance(hooked, HookedStore)
    hooked.when = lambda call, path: call == "put" and "/manifest/manifest-list-" in path
    hooked.after = meanwhile


def test_rule_3_a_predecessor_that_was_rolled_back_and_replaced_is_another() -> None:
    race = Race(lambda race: None)

    def meanwhile() -> None:
        race.other.rollback(to=1)
        race.other.write(numbers(100))

    _before_creation(race, meanwhile)
    made = race.slow.write(numbers(42))
    assert made is not None
    assert made.id == 3
    assert race.rows() == [0, 42, 100]


def test_rule_3_a_table_made_anew_with_as_many_snapshots_is_another() -> None:
    race = Race(lambda race: None)

    def meanwhile() -> None:
        lake = Lake(race.store)
        lake.drop_table("d.t")
        again = lake.create_table("d.t", [("x", "BIGINT")])
        for value in (7, 8):
            again.write(numbers(value))

    _before_creation(race, meanwhile)
    with pytest.raises(ConflictError, match="dropped and created again"):
        race.slow.write(numbers(42))
    assert race.rows() == [7, 8]


def test_rule_2_an_error_of_any_kind_after_the_creation_does_not_remove_the_files() -> None:
    def broken(race: Race) -> None:
        raise RuntimeError("no thread")

    race = Race(broken)
    race.slow.write(numbers(42))
    assert race.rows() == [0, 1, 42]


def test_a_commit_whose_base_expires_while_it_is_read_is_repeated() -> None:
    store = MemoryStore()
    hooked = HookedStore(store)
    lake = Lake(hooked)
    lake.create_database("d")
    slow, other = lake.create_table("d.t", [("x", "BIGINT")]), Lake(store).table("d.t")
    other.write(numbers(0))
    first = other.write(numbers(1))
    assert first is not None

    def expire() -> None:
        other.write(numbers(2))
        store.delete(
            [f"{SNAPSHOT}2", *(f"d.db/t/manifest/{n}" for n in (first.base_manifest_list, first.delta_manifest_list))]
        )

    hooked.when = lambda call, path: call == "get" and path == f"{SNAPSHOT}2"
    hooked.after = expire
    slow.write(numbers(42))
    assert sorted(other.scan().to_arrow().column("x").to_pylist()) == [0, 1, 2, 42]


def test_a_scan_reads_the_snapshot_before_the_schema() -> None:
    store = MemoryStore()
    hooked = HookedStore(store)
    lake = Lake(hooked)
    lake.create_database("d")
    reader, other = lake.create_table("d.t", [("x", "INT")]), Lake(store).table("d.t")
    other.write([{"x": 1}])

    def alter(table: Table = other) -> None:
        table.change_type("x", "BIGINT")
        table.write(numbers(2**32 + 5))

    hooked.when = lambda call, path: call == "get" and path.endswith("schema-0")
    hooked.after = alter
    assert reader.scan().to_arrow().column("x").to_pylist() in ([1], [1, 2**32 + 5])
