"""Fault injection for executors and drivers, through the store they write to.

A store travels to the executors with the job. `OnExecutors` does nothing on the driver and becomes a `FaultyStore` where it
arrives; `OnDriver` is the other way round. A fault strikes when a data file has just been written and before its task has
told anybody about it, which is when an attempt leaves the most behind.
"""

import errno
import importlib
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, TypeVar

from lakelet.errors import UnavailableError
from lakelet.spark.opened_table import OpenedTable, open_table
from lakelet.storage.decorated import DecoratedStore
from lakelet.storage.store import ObjectStore
from lakelet.testing.instrumented_stores import CountingStore

if TYPE_CHECKING:
    import pytest

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Fault:
    """What happens, and how often: `times` markers in the folder `seen`, one for each time; 0 is always."""

    action: str
    seen: str
    times: int = 1

    def strikes(self) -> bool:
        """Whether it happens now; each time is counted once, whichever process asks."""
        for number in range(self.times or 1_000):
            try:
                os.close(os.open(os.path.join(self.seen, f"{self.action}-{number}"), os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                continue
            return True
        return False

    def happen(self, where: str) -> None:
        """Does it to the process it is called in."""
        match self.action:
            case "kill-worker":
                os.kill(os.getpid(), signal.SIGKILL)
            case "kill-executor":
                os.kill(_executor(), signal.SIGKILL)
                os.kill(os.getpid(), signal.SIGKILL)
            case "hang":
                # Until the executor kills this worker, because the copy of its task has won.
                signal.pause()
            case "unavailable":
                raise UnavailableError(f"{where}: the store was made not to answer")
            case "full-disk":
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), where)

    def count(self) -> int:
        """How often it has happened so far."""
        return len(list(Path(self.seen).glob(f"{self.action}-*")))


class FaultyStore(CountingStore):
    """A store of an executor. A full disk shows when a file is written, the other faults when it has been written."""

    def __init__(self, store: ObjectStore, fault: Fault) -> None:
        super().__init__(store)
        self._fault = fault

    def _around(self, call: str, path: str, action: Callable[[], T]) -> T:
        early = self._fault.action == "full-disk"
        strikes = call == "close" and "/bucket-" in path and self._fault.strikes()
        if strikes and early:
            self._fault.happen(path)
        done = action()
        if strikes:
            self._fault.happen(path)
        return done


class OnExecutors(DecoratedStore):
    """Does nothing here; where it is sent, the fault waits."""

    def __init__(self, store: ObjectStore, fault: Fault) -> None:
        super().__init__(store)
        self._fault = fault

    def __reduce__(self) -> tuple[object, ...]:
        return FaultyStore, (self._store, self._fault)


class OnDriver(DecoratedStore):
    """Another store's behaviour for the driver alone; executors get the plain one inside."""

    def __init__(self, store: ObjectStore, plain: ObjectStore) -> None:
        super().__init__(store)
        self._plain = plain

    def __reduce__(self) -> tuple[object, ...]:
        return _itself, (self._plain,)


class KillAround(DecoratedStore):
    """The driver dies, as by `kill -9`, right before or right after a call on a path that holds a text."""

    def __init__(self, store: ObjectStore, call: str, text: str, *, after: bool) -> None:
        super().__init__(store)
        self._call = call
        self._text = text
        self._after = after

    def _around(self, call: str, path: str, action: Callable[[], T]) -> T:
        if call != self._call or self._text not in path:
            return action()
        if self._after:
            action()
        os.kill(os.getpid(), signal.SIGKILL)
        return action()


def opening_with(decorate: Callable[[ObjectStore], ObjectStore]) -> Callable[..., OpenedTable]:
    """`open_table`, but the store is decorated."""

    def opened(*arguments: object, **named: object) -> OpenedTable:
        table = open_table(*arguments, **named)  # type: ignore[arg-type]
        return replace(table, home=replace(table.home, store=decorate(table.home.store)))

    return opened


def writes_through(patch: "pytest.MonkeyPatch", decorate: Callable[[ObjectStore], ObjectStore]) -> None:
    """From now on `ls.write` works on a decorated store."""
    patch.setattr(write_module(), "open_table", opening_with(decorate))


def write_module() -> ModuleType:
    """The module, of which `lakelet.spark` exports the function of the same name."""
    return importlib.import_module("lakelet.spark.write.table_write")


def _itself(store: ObjectStore) -> ObjectStore:
    return store


def _executor() -> int:
    """The process of the executor's JVM: the parent of the daemon that forked this worker."""
    daemon = Path(f"/proc/{os.getppid()}/stat").read_text()
    return int(daemon.rpartition(")")[2].split()[1])
