"""The newest schema while a store answers, is silent, fails, and comes back."""

import threading
from collections.abc import Callable
from typing import TypeVar

import pytest

from lakelet.catalog.lake import Lake
from lakelet.commit.metadata.schema_watch import SchemaWatch
from lakelet.errors import NotFoundError, UnavailableError
from lakelet.storage.decorated import DecoratedStore
from lakelet.storage.memory import MemoryStore

T = TypeVar("T")
WAIT_SECONDS = 900


class FarStore(DecoratedStore):
    """A remote store whose calls wait or fail, as the test says."""

    def __init__(self) -> None:
        super().__init__(MemoryStore())
        self.answers = threading.Event()
        self.answers.set()
        self.error: Exception | None = None

    @property
    def is_remote(self) -> bool:
        return True

    def _around(self, call: str, path: str, action: Callable[[], T]) -> T:
        assert self.answers.wait(WAIT_SECONDS)
        if self.error is not None:
            raise self.error
        return action()


@pytest.fixture
def store() -> FarStore:
    return FarStore()


@pytest.fixture
def lake(store: FarStore) -> Lake:
    made = Lake(store)
    made.create_database("d")
    made.create_table("d.t", [("a", "BIGINT")])
    return made


def back(watch: SchemaWatch) -> None:
    """Wait until a look in the background has found that the store answers."""
    pause = threading.Event()
    while watch.silence is not None:
        watch.look_again()
        pause.wait(0.01)


def test_every_call_sees_an_alter_that_was_finished_before(lake: Lake) -> None:
    watch = SchemaWatch(lake.table("d.t").home, patience_seconds=WAIT_SECONDS)
    for number in range(3):
        assert watch.newest().id == number
        lake.sql(f"ALTER TABLE d.t ADD COLUMN c{number} BIGINT")
    assert watch.newest().names[-1] == "c2"


def test_a_store_that_hangs_holds_nobody_up(lake: Lake, store: FarStore) -> None:
    watch = SchemaWatch(lake.table("d.t").home, patience_seconds=0.02)
    assert watch.newest().id == 0
    store.answers.clear()
    threads = threading.active_count()
    assert [watch.newest().id for _ in range(50)] == [0] * 50
    assert watch.silence is not None
    assert "0.02 seconds" in watch.silence
    # One look waits for the store, however many calls there were.
    assert threading.active_count() <= threads + 1
    store.answers.set()
    back(watch)
    lake.sql("ALTER TABLE d.t ADD COLUMN b BIGINT")
    while watch.newest().id != 1:
        back(watch)


def test_a_store_that_fails_is_silent_and_other_errors_are_answers(lake: Lake, store: FarStore) -> None:
    watch = SchemaWatch(lake.table("d.t").home, patience_seconds=WAIT_SECONDS)
    assert watch.newest().id == 0
    store.error = UnavailableError("connection refused")
    assert watch.newest().id == 0
    assert watch.silence is not None
    assert "connection refused" in watch.silence
    store.error = None
    back(watch)
    store.error = NotFoundError("the bucket is gone")
    with pytest.raises(NotFoundError):
        watch.newest()


def test_without_a_schema_the_error_is_raised(lake: Lake, store: FarStore) -> None:
    watch = SchemaWatch(lake.table("d.t").home)
    store.error = UnavailableError("connection refused")
    with pytest.raises(UnavailableError):
        watch.newest()
