from collections.abc import Callable

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakelet.errors import ConflictError, UnavailableError
from lakelet.storage.memory import MemoryStore
from lakelet.storage.store import ObjectStore
from lakelet.testing.instrumented_stores import CountingStore, CrashStore, FailingStore, SimulatedCrash
from tests.unit.storage.contract import StoreContract

NEVER = 1_000_000


class TestCountingStore(StoreContract):
    @pytest.fixture
    def store(self) -> ObjectStore:
        return CountingStore(MemoryStore())


class TestFailingStoreThatDoesNotFail(StoreContract):
    @pytest.fixture
    def store(self) -> ObjectStore:
        return FailingStore(MemoryStore(), fail_at=NEVER)


class TestCrashStoreThatDoesNotCrash(StoreContract):
    @pytest.fixture
    def store(self) -> ObjectStore:
        return CrashStore(MemoryStore(), crash_at=NEVER)


def each_call_once(store: ObjectStore) -> None:
    store.put("t/a", b"1")
    store.put_if_absent("t/b", b"1")
    store.get("t/a")
    store.get_range("t/a", 0, 1)
    store.head("t/a")
    list(store.list("t"))
    store.list_folder("t")
    store.copy("t/a", "t/c")
    store.make_folder("t/f")
    store.open_output("t/o").close()
    store.open_output("t/p").abort()
    store.delete(["t/c"])
    store.move_folder("t", "u")
    store.delete_folder("u")


EXPECTED = [
    "put",
    "put_if_absent",
    "get",
    "get_range",
    "head",
    "list",
    "list_folder",
    "copy",
    "make_folder",
    "open_output",
    "close",
    "open_output",
    "abort",
    "delete",
    "move_folder",
    "delete_folder",
]


def test_every_call_is_counted_by_kind() -> None:
    store = CountingStore(MemoryStore())
    each_call_once(store)
    assert [call for call, _ in store.log] == EXPECTED
    assert store.counts()["open_output"] == 2
    assert store.log[1] == ("put_if_absent", "t/b")
    store.reset()
    assert store.calls == 0


@pytest.mark.parametrize("number", range(1, len(EXPECTED) + 1))
@pytest.mark.parametrize("after", [False, True])
def test_the_chosen_call_fails(number: int, after: bool) -> None:
    store = FailingStore(MemoryStore(), fail_at=number, after=after)
    with pytest.raises(UnavailableError, match=EXPECTED[number - 1]):
        each_call_once(store)
    assert store.calls == number
    assert store.failed


@pytest.mark.parametrize("after", [False, True])
def test_a_failure_comes_before_or_after_the_deed(after: bool) -> None:
    memory = MemoryStore()
    store = FailingStore(memory, fail_at=1, after=after)
    with pytest.raises(UnavailableError):
        store.put_if_absent("snapshot-1", b"{}")
    assert (memory.head("snapshot-1") is not None) == after
    assert store.put_if_absent("snapshot-1", b"{}") != after


def test_a_failure_can_be_aimed_and_chosen() -> None:
    store = FailingStore(
        MemoryStore(),
        fail_at=2,
        error=ConflictError("made up"),
        only=lambda call, path: call == "put" and path.startswith("snapshot"),
    )
    store.put("other", b"")
    store.put("snapshot-1", b"")
    store.get("snapshot-1")
    with pytest.raises(ConflictError, match="made up"):
        store.put("snapshot-2", b"")
    store.put("snapshot-3", b"")


@pytest.mark.parametrize("number", range(1, len(EXPECTED) + 1))
@pytest.mark.parametrize("after", [False, True])
def test_after_a_crash_nothing_reaches_the_store(number: int, after: bool) -> None:
    memory = MemoryStore()
    store = CrashStore(memory, crash_at=number, after=after)
    with pytest.raises(SimulatedCrash):
        each_call_once(store)
    assert store.crashed
    kept = [(info.path, memory.get(info.path)) for info in memory.list("")]
    late: list[Callable[[], object]] = [
        lambda: store.put("late", b""),
        lambda: store.delete(["t/a"]),
        lambda: store.delete_folder("t"),
    ]
    for call in late:
        with pytest.raises(SimulatedCrash):
            call()
    assert [(info.path, memory.get(info.path)) for info in memory.list("")] == kept


def test_a_crash_reaches_files_that_are_being_written() -> None:
    memory = MemoryStore()
    store = CrashStore(memory, crash_at=2)
    output = store.open_output("data")
    output.write(b"1")
    with pytest.raises(SimulatedCrash):
        store.get("x")
    calls: list[Callable[[], object]] = [lambda: output.write(b"2"), output.close, output.abort]
    for call in calls:
        with pytest.raises(SimulatedCrash):
            call()
    assert memory.head("data") is None


def written(memory: MemoryStore) -> pa.Table:
    table = pa.table({"id": [1, 2, 3]})
    with memory.open_output("data.parquet") as output:
        pq.write_table(table, output)
    return table


def test_what_pyarrow_reads_is_counted() -> None:
    memory = MemoryStore()
    table = written(memory)
    store = CountingStore(memory)
    filesystem, path = store.arrow_path("data.parquet")
    assert store.calls == 0
    assert pq.read_table(path, filesystem=filesystem).equals(table)
    assert store.counts()["head"] >= 1
    assert store.counts()["get_range"] >= 1


@pytest.mark.parametrize(("error", "kind"), [(None, UnavailableError), (SimulatedCrash(), SimulatedCrash)])
def test_what_pyarrow_reads_can_fail(error: BaseException | None, kind: type[BaseException]) -> None:
    memory = MemoryStore()
    written(memory)
    reads = CountingStore(memory)
    filesystem, path = reads.arrow_path("data.parquet")
    pq.read_table(path, filesystem=filesystem)
    for number in range(1, reads.calls + 1):
        filesystem, path = FailingStore(memory, fail_at=number, error=error).arrow_path("data.parquet")
        with pytest.raises(kind):
            pq.read_table(path, filesystem=filesystem)
