import gc
import pickle

import pytest

from lakelet.clock import SystemClock
from lakelet.errors import InvalidError
from lakelet.storage.memory import MemoryStore
from lakelet.storage.store import ObjectStore
from tests.unit.storage.contract import StoreContract


class Ticks(SystemClock):
    """Ten milliseconds later at each look."""

    def __init__(self) -> None:
        self._now_ms = 0

    def now_ms(self) -> int:
        self._now_ms += 10
        return self._now_ms


class TestMemoryStore(StoreContract):
    @pytest.fixture
    def store(self) -> ObjectStore:
        return MemoryStore()

    def test_named_stores_are_shared_in_the_process(self) -> None:
        MemoryStore.named("shared-by-name").put("x", b"1")
        assert MemoryStore.named("shared-by-name").get("x") == b"1"
        assert MemoryStore.named("another-name").head("x") is None

    def test_modification_times_come_from_the_given_clock(self) -> None:
        store = MemoryStore(clock=Ticks())
        store.put("a", b"")
        store.put("b", b"")
        assert [info.modified_ms for info in store.list("")] == [10, 20]

    def test_a_pickled_store_does_not_open_empty_where_its_objects_are_not(self) -> None:
        store = MemoryStore()
        pickled = pickle.dumps(store)
        del store
        gc.collect()
        with pytest.raises(InvalidError, match="another process"):
            pickle.loads(pickled)
