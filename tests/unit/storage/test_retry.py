import pickle

import pytest

from lakelet.errors import InvalidError, NotFoundError, UnavailableError
from lakelet.storage.memory import MemoryStore
from lakelet.storage.retry import RetryingStore
from lakelet.storage.store import ObjectStore
from lakelet.testing.instrumented_stores import FailingStore
from tests.unit.storage.contract import StoreContract


class TestRetryingStore(StoreContract):
    @pytest.fixture
    def store(self) -> ObjectStore:
        return RetryingStore(MemoryStore())


class Sleeps:
    """Takes the place of time.sleep."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


@pytest.mark.parametrize(
    "call",
    [
        lambda store: store.get("t/a"),
        lambda store: store.get_range("t/a", 0, 1),
        lambda store: store.head("t/a"),
        lambda store: store.put("t/b", b"1"),
        lambda store: list(store.list("t")),
        lambda store: store.list_folder("t"),
        lambda store: store.delete(["t/a"]),
        lambda store: store.copy("t/a", "t/c"),
        lambda store: store.make_folder("t/f"),
        lambda store: store.delete_folder("t"),
        lambda store: store.open_output("t/o").close(),
    ],
)
def test_a_call_is_repeated_until_it_is_answered(call) -> None:  # type: ignore[no-untyped-def]
    memory = MemoryStore()
    memory.put("t/a", b"1")
    failing = FailingStore(memory, fail_at=1, times=2)
    sleeps = Sleeps()
    call(RetryingStore(failing, attempts=3, sleep=sleeps, jitter=lambda: 1.0, first_wait_ms=100))
    assert failing.calls >= 3
    assert sleeps.seconds == [0.1, 0.2]


def test_the_last_attempt_raises() -> None:
    failing = FailingStore(MemoryStore(), fail_at=1, times=10)
    sleeps = Sleeps()
    with pytest.raises(UnavailableError):
        RetryingStore(failing, attempts=4, sleep=sleeps, jitter=lambda: 0.5, longest_wait_ms=150).get("a")
    assert failing.calls == 4
    assert sleeps.seconds == [0.05, 0.075, 0.075]


def test_rule_2_put_if_absent_is_never_repeated() -> None:
    failing = FailingStore(MemoryStore(), fail_at=1, after=True)
    sleeps = Sleeps()
    with pytest.raises(UnavailableError):
        RetryingStore(failing, attempts=5, sleep=sleeps).put_if_absent("snapshot-1", b"{}")
    assert failing.log == [("put_if_absent", "snapshot-1")]
    assert sleeps.seconds == []


def test_move_folder_is_never_repeated() -> None:
    memory = MemoryStore()
    memory.put("a/x", b"1")
    failing = FailingStore(memory, fail_at=1, after=True)
    with pytest.raises(UnavailableError):
        RetryingStore(failing, attempts=5, sleep=Sleeps()).move_folder("a", "b")
    assert failing.calls == 1


def test_other_errors_are_not_repeated() -> None:
    failing = FailingStore(MemoryStore(), fail_at=1, error=NotFoundError("gone"), times=2)
    with pytest.raises(NotFoundError):
        RetryingStore(failing, attempts=3, sleep=Sleeps()).get("a")
    assert failing.calls == 1


def test_attempts_must_be_positive() -> None:
    with pytest.raises(InvalidError):
        RetryingStore(MemoryStore(), attempts=0)


def test_a_pickled_store_still_retries() -> None:
    memory = MemoryStore()
    memory.put("a", b"1")
    store = RetryingStore(FailingStore(memory, fail_at=1), attempts=2, first_wait_ms=0)
    assert pickle.loads(pickle.dumps(store)).get("a") == b"1"
