"""A crash of the machine: what was written deferred and not synced is lost, in every way a disk may lose it.

`VolatileStore` is a store in memory that knows which objects are durable. `PowerCut` is a `CrashStore` that, when it strikes,
does to each of the others what its turn says:

    lost     the object is as it was before the deferred write: absent, or with its old bytes; a folder without durable
             objects is gone with it
    empty    the name is there without its bytes
    torn     half of the bytes are there
    kept     the disk happened to have written it
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

from lakelet.errors import NotFoundError
from lakelet.storage.decorated import DecoratedStore
from lakelet.storage.memory import MemoryStore
from lakelet.storage.store import ObjectStore
from lakelet.testing.instrumented_stores import CrashStore, SimulatedCrash

T = TypeVar("T")
FATES = ("lost", "empty", "torn", "kept")


class VolatileStore(MemoryStore):
    """Objects in memory, those written deferred until they are synced apart from the durable ones."""

    def __init__(self) -> None:
        super().__init__()
        # What a crash may bring back: the bytes before the first deferred write, None where there were none.
        self.unsynced: dict[str, bytes | None] = {}
        # Those whose bytes are durable, though their names are not: they are lost or kept.
        self._whole: set[str] = set()
        self._made: set[str] = set()

    def put(self, path: str, data: bytes, *, deferred: bool = False) -> None:
        if deferred:
            known = self.get(path) if self.head(path) is not None else None
            self.unsynced.setdefault(path, known)
        else:
            self.unsynced.pop(path, None)
        super().put(path, data)

    def put_if_absent(self, path: str, data: bytes, *, deferred: bool = False) -> bool:
        made = super().put_if_absent(path, data)
        if made:
            self.unsynced.pop(path, None)
            if deferred:
                self.unsynced[path] = None
                self._whole.add(path)
        return made

    def sync(self, paths: Sequence[str], creating: tuple[str, bytes] | None = None) -> None:
        for path in paths:
            if path in self.unsynced and self.head(path) is None:
                raise NotFoundError(f"{self.location}/{path} was written deferred and is gone")
            self.unsynced.pop(path, None)

    def delete(self, paths: Sequence[str]) -> None:
        super().delete(paths)
        for path in paths:
            self.unsynced.pop(path, None)

    def make_folder(self, path: str) -> None:
        super().make_folder(path)
        self._made.add(path)

    def delete_folder(self, path: str) -> None:
        super().delete_folder(path)
        self._forget(path)

    def remove_empty_folder(self, path: str) -> bool:
        removed = super().remove_empty_folder(path)
        if removed:
            self._forget(path)
        return removed

    def move_folder(self, source: str, target: str) -> None:
        assert not any(path.startswith(f"{source}/") for path in self.unsynced if not _is_hint(path)), "moved unsynced"
        super().move_folder(source, target)
        self._forget(source)
        self._made.add(target)

    def cut_power(self, fate_of: Callable[[int], str]) -> None:
        """Loses what is not durable: the object of that number, in the order of their names, by its fate."""
        for number, (path, before) in enumerate(sorted(self.unsynced.items())):
            data, fate = self.get(path), fate_of(number)
            if path in self._whole and fate != "lost":
                continue
            if fate == "lost" and before is None:
                super().delete([path])
            elif fate != "kept":
                left = {"lost": before or b"", "empty": b"", "torn": data[: len(data) // 2]}[fate]
                super().put(path, left)
        self.unsynced.clear()
        kept, self._objects = self._objects, {}
        self._files, self._folders = {"": set()}, {"": set()}
        for folder in self._made:
            self._add_folder(folder)
        for path, found in kept.items():
            self._add(path, found)

    def _forget(self, folder: str) -> None:
        self.unsynced = {path: old for path, old in self.unsynced.items() if not path.startswith(f"{folder}/")}
        self._made = {made for made in self._made if made != folder and not made.startswith(f"{folder}/")}


class PowerCut(CrashStore):
    """Dies like a `CrashStore`, and takes what the volatile store below it has not synced with it.

    All unsynced objects share a `fate`; without one they take turns, in another order at every call.
    """

    def __init__(
        self,
        store: ObjectStore,
        *,
        crash_at: int,
        after: bool = False,
        only: Callable[[str, str], bool] | None = None,
        fate: str | None = None,
    ) -> None:
        super().__init__(store, crash_at=crash_at, after=after, only=only)
        self._fate = fate
        self._cut = False

    def _around(self, call: str, path: str, action: Callable[[], T]) -> T:
        try:
            return super()._around(call, path, action)
        except SimulatedCrash:
            if not self._cut:
                self._cut = True
                turn = self._crash_at + int(self._after)
                volatile(self).cut_power(lambda number: self._fate or FATES[(number + turn) % len(FATES)])
            raise


# Before a call there is the same to lose as after the one before it, so that a power cut needs one of the two.
CRASHES = ((CrashStore, False), (CrashStore, True), (PowerCut, True))


def volatile(store: ObjectStore) -> VolatileStore:
    """The volatile store below decorators."""
    while isinstance(store, DecoratedStore):
        store = store.inner
    assert isinstance(store, VolatileStore)
    return store


def _is_hint(path: str) -> bool:
    return path.rsplit("/", 1)[-1] in ("LATEST", "EARLIEST")
