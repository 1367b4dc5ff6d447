"""Stores that count, fail or crash on purpose: how the rest of Lakelet is tested against its storage.

Place in the data path: around any store, in tests and in measurements. It owns the numbering of storage
calls: every protocol call is one, and so are the `close` and `abort` of an output file and each `head` and
`get_range` that pyarrow makes through `arrow_path`. Bytes passed to an output file are not calls.

    counting = CountingStore(MemoryStore())
    FailingStore(store, fail_at=3)                          # the 3rd call fails and does nothing
    FailingStore(store, fail_at=3, after=True)              # the 3rd call is done, and answered with an error
    CrashStore(store, crash_at=3)                           # from the 3rd call on, nothing is answered
    CrashStore(store, crash_at=3, only=changes)             # the same, counted over the calls that change something

It never decides by chance: the same calls fail in the same place.
"""

from collections import Counter
from collections.abc import Callable
from threading import Lock
from typing import TypeVar

import pyarrow.fs

from lakelet.errors import UnavailableError
from lakelet.storage.arrow_files import arrow_filesystem
from lakelet.storage.decorated import DecoratedStore
from lakelet.storage.sequential_output import SequentialOutput
from lakelet.storage.store import ObjectStore, OutputFile, checked_path

T = TypeVar("T")

_READS = ("get", "get_range", "head", "list", "list_folder")


def changes(call: str, path: str) -> bool:
    """Whether a call may change what is stored: a crash at any other leaves what the call before it left."""
    return call not in _READS


class SimulatedCrash(BaseException):
    """The process is gone, as far as the code under test may know; no `except Exception` catches it."""


class _ObservedStore(DecoratedStore):
    """Numbers the calls, and routes the reads of pyarrow and the ends of output files through them."""

    def __init__(self, store: ObjectStore) -> None:
        super().__init__(store)
        self.log: list[tuple[str, str]] = []
        self._lock = Lock()

    def __getstate__(self) -> dict[str, object]:
        # A copy in another process numbers its own calls on from here.
        return {name: value for name, value in self.__dict__.items() if name != "_lock"}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)
        self._lock = Lock()

    @property
    def calls(self) -> int:
        """How many calls were made."""
        return len(self.log)

    def open_output(self, path: str, *, deferred: bool = False) -> OutputFile:
        return _ObservedOutput(self, path, super().open_output(path, deferred=deferred))

    def arrow_path(self, path: str) -> tuple[pyarrow.fs.FileSystem, str]:
        return arrow_filesystem(self), checked_path(path)

    def _note(self, call: str, path: str) -> int:
        """The number of this call, from 1."""
        with self._lock:
            self.log.append((call, path))
            return len(self.log)

    def _before_bytes(self) -> None:
        """Called when bytes are handed to an output file."""


class CountingStore(_ObservedStore):
    """Keeps `log`, a list of (call, path), and counts it by kind."""

    def counts(self) -> Counter[str]:
        """Calls by kind."""
        with self._lock:
            return Counter(call for call, _ in self.log)

    @property
    def changing_calls(self) -> int:
        """How many calls may have changed something."""
        return sum(changes(*one) for one in self.log)

    def reset(self) -> None:
        """Start again from nothing."""
        with self._lock:
            self.log.clear()

    def _around(self, call: str, path: str, action: Callable[[], T]) -> T:
        self._note(call, path)
        return action()


class _AimedStore(_ObservedStore):
    """Counts the calls that `only` accepts, all when it is None."""

    def __init__(self, store: ObjectStore, only: Callable[[str, str], bool] | None) -> None:
        super().__init__(store)
        self._only = only
        self._seen = 0

    def _aimed_at(self, call: str, path: str) -> int:
        """The number of this call among those that count, from 1; 0 for another one."""
        self._note(call, path)
        if self._only is not None and not self._only(call, path):
            return 0
        with self._lock:
            self._seen += 1
            return self._seen


class FailingStore(_AimedStore):
    """Fails call number `fail_at`, counted over the calls that `only` accepts (all when it is None).

    `after=True` does the call first: a store that kept the object and answered 503. `times` is how many calls
    fail in a row from there.
    """

    def __init__(
        self,
        store: ObjectStore,
        *,
        fail_at: int,
        error: BaseException | None = None,
        after: bool = False,
        only: Callable[[str, str], bool] | None = None,
        times: int = 1,
    ) -> None:
        super().__init__(store, only)
        self._fail_at = fail_at
        self._error = error
        self._after = after
        self._times = times

    @property
    def failed(self) -> bool:
        """Whether the failing call was reached."""
        return self._seen >= self._fail_at

    def _around(self, call: str, path: str, action: Callable[[], T]) -> T:
        if not self._fail_at <= self._aimed_at(call, path) < self._fail_at + self._times:
            return action()
        if self._after:
            action()
        raise self._error or UnavailableError(f"{self.location}/{path}: {call} was made to fail")


class CrashStore(_AimedStore):
    """Dies at call number `crash_at`, counted over the calls that `only` accepts (all when it is None): before doing it, or with
    `after=True` once it is done.

    Every later call raises SimulatedCrash too and does nothing, whatever cleans up on the way out.
    """

    def __init__(
        self,
        store: ObjectStore,
        *,
        crash_at: int,
        after: bool = False,
        only: Callable[[str, str], bool] | None = None,
    ) -> None:
        super().__init__(store, only)
        self._crash_at = crash_at
        self._after = after
        self.struck: tuple[str, str] | None = None

    @property
    def crashed(self) -> bool:
        """Whether the crash point was reached; `struck` is the call that was made then."""
        return self._seen >= self._crash_at

    def _around(self, call: str, path: str, action: Callable[[], T]) -> T:
        number = self._aimed_at(call, path)
        if 0 < number < self._crash_at or (number == 0 and not self.crashed):
            return action()
        if number == self._crash_at:
            self.struck = (call, path)
            if self._after:
                action()
        raise SimulatedCrash(f"{self.location}/{path}: crashed at call {self._crash_at}, {call}")

    def _before_bytes(self) -> None:
        if self.crashed:
            raise SimulatedCrash(f"{self.location}: crashed at call {self._crash_at}")


class _ObservedOutput(SequentialOutput):
    """An output file whose `close` and `abort` are calls of the observing store."""

    def __init__(self, store: _ObservedStore, path: str, output: OutputFile) -> None:
        self._store = store
        self._path = path
        self._output = output

    @property
    def closed(self) -> bool:
        return self._output.closed

    def write(self, data: bytes) -> int:
        self._store._before_bytes()
        return self._output.write(data)

    def flush(self) -> None:
        self._output.flush()

    def tell(self) -> int:
        return self._output.tell()

    def close(self) -> None:
        if not self.closed:
            self._store._around("close", self._path, self._output.close)

    def abort(self) -> None:
        if not self.closed:
            self._store._around("abort", self._path, self._output.abort)
