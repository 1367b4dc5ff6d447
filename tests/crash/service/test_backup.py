"""A crash or a power cut at every storage call of a pass and of a recovery: both tables stay readable, the next run goes on."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial

import pytest

from lakelet.errors import LakeletError
from lakelet.storage.decorated import DecoratedStore
from lakelet.storage.store import ObjectStore
from lakelet.testing.instrumented_stores import CountingStore, CrashStore, FailingStore, SimulatedCrash, changes
from tests.crash.power_cut import CRASHES
from tests.crash.warehouse import copied
from tests.unit.service.backup.backed_up_lake import TABLE, BackedUpLake, events

Crash = tuple[type[CrashStore], bool]
Run = Callable[[BackedUpLake], object]
Rows = list[dict[str, object]]
LAYOUTS = {
    "by day": {},
    "deletion vectors": {
        "primary_key": ["id"],
        "partitioned_by": [],
        "options": {"bucket": "1", "deletion-vectors.enabled": "true"},
    },
}


class CopyingStore(DecoratedStore):
    """A store that moves folders object by object, as object stores do."""

    @property
    def moves_atomically(self) -> bool:
        return False


def prepared(layout: str) -> tuple[BackedUpLake, Rows]:
    """A table with a backup of its first rows, and further ones; and those first rows."""
    lake = BackedUpLake()
    lake.create(**LAYOUTS[layout])
    lake.table.write(events("a", "b"))
    lake.table.write(events("c", day=1))
    lake.backups.trigger(TABLE)
    before = lake.rows()
    lake.lake.sql("ALTER TABLE default.events ADD COLUMN more BIGINT")
    lake.table.delete(where="id = 'a'")
    lake.table.write(events("d", day=2), missing="default")
    return lake, before


def strikes(lake: BackedUpLake, run: Run, side: str) -> int:
    """How many calls of one store may change something in an undisturbed run."""
    stores = {"primary": copied(lake.primary), "backup": copied(lake.copy)}
    counting = stores[side] = CountingStore(stores[side])
    run(BackedUpLake(stores["primary"], stores["backup"], "run"))
    return counting.changing_calls


def struck(
    lake: BackedUpLake, run: Run, side: str, wrap: Callable[[ObjectStore], ObjectStore]
) -> tuple[ObjectStore, ObjectStore]:
    """The stores as a run leaves them that dies where `wrap` says."""
    stores = {"primary": copied(lake.primary), "backup": copied(lake.copy)}
    given = {**stores, side: wrap(stores[side])}
    with suppress(SimulatedCrash, LakeletError):
        run(BackedUpLake(given["primary"], given["backup"], "run"))
    return stores["primary"], stores["backup"]


def crash_at(crash: Crash, number: int) -> Callable[[ObjectStore], ObjectStore]:
    kind, after = crash
    return partial(kind, crash_at=number, after=after, only=changes)


def trigger(lake: BackedUpLake) -> object:
    return lake.backups.trigger(TABLE)


def recover(lake: BackedUpLake) -> object:
    return lake.backups.recover(TABLE)


def check_pass(primary: ObjectStore, backup: ObjectStore, rows: Rows, before: Rows) -> None:
    """Rows of the source are as they were, the mirror has those before or after; the next pass completes it."""
    again = BackedUpLake(primary, backup, "again")
    assert again.rows() == rows
    mirrored = [{key: row[key] for key in before[0]} for row in again.mirrored()]
    assert mirrored in (before, [{key: row[key] for key in before[0]} for row in rows])
    trigger(again)
    assert again.mirrored() == again.rows() == rows
    assert again.table.tag_names() == []
    assert not again.backups.verify(TABLE).problems
    assert not again.mirror.table(TABLE).check().damages


@pytest.mark.parametrize("side", ["primary", "backup"])
@pytest.mark.parametrize("crash", CRASHES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_pass_that_dies_is_completed_by_the_next(layout: str, crash: Crash, side: str) -> None:
    lake, before = prepared(layout)
    rows = lake.rows()
    calls = strikes(lake, trigger, side)
    assert calls >= 2
    for number in range(1, calls + 1):
        stores = struck(lake, trigger, side, crash_at(crash, number))
        check_pass(*stores, rows, before)


@pytest.mark.parametrize("side", ["primary", "backup"])
@pytest.mark.parametrize("after", [False, True])
def test_pass_that_meets_an_error_is_completed_by_the_next(after: bool, side: str) -> None:
    lake, before = prepared("by day")
    rows = lake.rows()
    for number in range(1, strikes(lake, trigger, side) + 1):
        stores = struck(
            lake,
            trigger,
            side,
            partial(FailingStore, fail_at=number, after=after, only=changes),
        )
        check_pass(*stores, rows, before)


@pytest.mark.parametrize("moves", [True, False])
@pytest.mark.parametrize("crash", CRASHES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_restoration_that_dies_is_completed_by_the_next(layout: str, crash: Crash, moves: bool) -> None:
    lake, _ = prepared(layout)
    trigger(lake)
    rows = lake.rows()
    lake.wipe()

    def run(lake: BackedUpLake) -> object:
        if not moves:
            lake = BackedUpLake(CopyingStore(lake.primary), lake.copy, "copying")
        return recover(lake)

    for number in range(1, strikes(lake, run, "primary") + 1):
        primary, backup = struck(lake, run, "primary", crash_at(crash, number))
        again = BackedUpLake(primary, backup, "again")
        assert again.mirrored() == rows
        # Where schemas come one by one the table may be there with some of them; the mark says so.
        if again.lake.table_exists(TABLE) and (moves or not again.backups.needs_restoring(TABLE)):
            assert again.rows() == rows
        recover(again)
        assert again.rows() == rows
        assert not again.table.check().damages
        assert not again.backups.needs_restoring(TABLE)
        again.table.write(events("z"), missing="default")
        trigger(again)
        assert again.mirrored() == again.rows()
        assert len(again.rows()) == len(rows) + 1


@pytest.mark.parametrize("crash", CRASHES)
def test_repair_that_dies_is_completed_by_the_next(crash: Crash) -> None:
    lake, _ = prepared("by day")
    trigger(lake)
    rows = lake.rows()
    paths = [path for path, _ in lake.table.files()]
    lake.primary.delete(paths[:1])
    lake.primary.put(paths[1], bytes(10))
    newest = lake.table.latest_snapshot()
    assert newest is not None
    lake.primary.delete([f"default.db/events/manifest/{newest.delta_manifest_list}"])
    for number in range(1, strikes(lake, recover, "primary") + 1):
        primary, backup = struck(lake, recover, "primary", crash_at(crash, number))
        again = BackedUpLake(primary, backup, "again")
        assert again.mirrored() == rows
        recover(again)
        assert again.rows() == rows
