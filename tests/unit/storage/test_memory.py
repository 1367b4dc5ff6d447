import gc
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

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


PATHS = st.sampled_from(["a", "a/b", "a/b/c", "a/b/.d", "a/.e/f", "ab/c", "b", "b/c", ".g/h"])
STEPS = st.one_of(
    st.tuples(st.sampled_from(["put", "delete", "make_folder", "delete_folder", "remove_empty_folder"]), PATHS),
    st.tuples(st.just("move_folder"), PATHS, PATHS),
)


class Scanned:
    """What a store holds, as flat sets of paths that every question looks through."""

    def __init__(self) -> None:
        self.files: set[str] = set()
        self.folders: set[str] = set()

    def take(self, step: tuple[str, ...]) -> None:
        kind, path = step[:2]
        if kind in ("put", "make_folder"):
            (self.files if kind == "put" else self.folders).add(path)
            self.folders |= parents(path)
        elif kind == "delete":
            self.files.discard(path)
        elif kind == "delete_folder":
            self.files = {file for file in self.files if not file.startswith(f"{path}/")}
            self.folders = {one for one in self.folders if not f"{one}/".startswith(f"{path}/")}
        elif kind == "remove_empty_folder":
            if not any(one.startswith(f"{path}/") for one in self.files | self.folders):
                self.folders.discard(path)
        elif self.can_move(path, step[2]):
            self.files = {moved(file, path, step[2]) for file in self.files}
            self.folders = {moved(f"{one}/", path, step[2])[:-1] for one in self.folders} | parents(step[2])

    def can_move(self, source: str, target: str) -> bool:
        taken = target in self.folders or target in self.files
        return source in self.folders and not taken and not target.startswith(f"{source}/")

    def shown(self, folder: str) -> tuple[list[str], list[str], list[str]]:
        skip = len(folder) + 1 if folder else 0

        def visible(paths: set[str]) -> list[str]:
            below = sorted(path for path in paths if not folder or path.startswith(f"{folder}/"))
            return [path for path in below if not any(part.startswith(".") for part in path[skip:].split("/"))]

        files, folders = visible(self.files), visible(self.folders)
        return (
            files,
            [path for path in files if "/" not in path[skip:]],
            [path for path in folders if "/" not in path[skip:]],
        )


def parents(path: str) -> set[str]:
    return {path[:end] for end, character in enumerate(path) if character == "/"}


def moved(path: str, source: str, target: str) -> str:
    return target + path[len(source) :] if path.startswith(f"{source}/") else path


@given(st.lists(STEPS, max_size=12))
def test_listings_are_those_of_a_scan_over_all_paths(steps: list[tuple[str, ...]]) -> None:
    store, scanned = MemoryStore(), Scanned()
    for step in steps:
        kind, path = step[:2]
        if kind == "put":
            store.put(path, path.encode())
        elif kind == "delete":
            store.delete([path])
        elif kind == "move_folder":
            if scanned.can_move(path, step[2]):
                store.move_folder(path, step[2])
        else:
            getattr(store, kind)(path)
        scanned.take(step)
    for folder in ("", "a", "a/b", "a/.e", "ab", "b", ".g", "none"):
        listing = store.list_folder(folder)
        found = [info.path for info in store.list(folder)], [info.path for info in listing.files], list(listing.folders)
        assert found == scanned.shown(folder)
    assert all(store.folder_exists(path) == (path in scanned.folders) for path in ("a", "a/b", "ab", "b", ".g"))
