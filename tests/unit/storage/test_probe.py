import threading

import pytest

from lakelet.errors import InvalidError, UnavailableError
from lakelet.storage.disk.local_store import LocalStore
from lakelet.storage.memory import MemoryStore
from lakelet.storage.probe import require_conditional_put
from lakelet.testing.instrumented_stores import FailingStore


class IgnoresTheCondition(MemoryStore):
    """Every create succeeds, as with servers that overlook the header."""

    def put_if_absent(self, path: str, data: bytes, *, deferred: bool = False) -> bool:
        self.put(path, data)
        return True


class ChecksThenWrites(MemoryStore):
    """Looks first and writes later: right when asked in turn, wrong in a race."""

    def __init__(self, racers: int) -> None:
        super().__init__()
        self._meet = threading.Barrier(racers)

    def put_if_absent(self, path: str, data: bytes, *, deferred: bool = False) -> bool:
        if self.head(path) is not None:
            return False
        self._meet.wait(timeout=300)
        self.put(path, data)
        return True


class RefusesAll(MemoryStore):
    """Every create is answered with 'already exists'."""

    def put_if_absent(self, path: str, data: bytes, *, deferred: bool = False) -> bool:
        return False


class KeepsTheLoser(MemoryStore):
    """One create is told that it won; the bytes of another stay."""

    def put_if_absent(self, path: str, data: bytes, *, deferred: bool = False) -> bool:
        won = super().put_if_absent(path, data)
        if not won:
            self.put(path, data)
        return won


def remaining(store: MemoryStore) -> list[str]:
    return list(store._objects)


def test_a_store_that_creates_atomically_passes_and_is_left_clean(tmp_path) -> None:  # type: ignore[no-untyped-def]
    memory = MemoryStore()
    require_conditional_put(memory)
    assert remaining(memory) == []
    require_conditional_put(LocalStore(tmp_path, durable=False))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("store", [IgnoresTheCondition(), ChecksThenWrites(6), RefusesAll(), KeepsTheLoser()])
def test_rule_11_a_store_that_does_not_is_refused_and_left_clean(store: MemoryStore) -> None:
    with pytest.raises(InvalidError, match="does not honour conditional PUT"):
        require_conditional_put(store)
    assert remaining(store) == []


def test_an_unanswered_racer_is_no_verdict() -> None:
    memory = MemoryStore()
    require_conditional_put(FailingStore(memory, fail_at=2, times=2, only=lambda call, _: call == "put_if_absent"))
    assert remaining(memory) == []


def test_a_store_that_does_not_answer_stays_unknown() -> None:
    silent = FailingStore(MemoryStore(), fail_at=1, times=1000, only=lambda call, _: call == "put_if_absent")
    with pytest.raises(UnavailableError):
        require_conditional_put(silent)
