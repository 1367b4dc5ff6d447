"""Run many fsyncs in parallel.

Place in the data path: below the local store, which passes the files and folders of one `sync`. A journaling file system
answers fsyncs that arrive together with one write of its journal, so that ten of them take little more than one; one after
the other they take ten. It owns the process's threads for that, which are started when they are first needed and live on: a
pool made for each commit costs as much as the fsyncs. A forked child starts threads of its own.
"""

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress

# More files than these at once gain nothing on a disk.
_THREADS = 8


def run_parallel(action: Callable[[str], None], paths: Sequence[str]) -> None:
    """Call `action` for every path in parallel; the first error is raised once all of them are done."""
    if not paths:
        return
    futures: list[Future[None]] = []
    left = list(paths[1:])
    if left:
        pool = _threads.pool()
        try:
            while left:
                futures.append(pool.submit(action, left[-1]))
                left.pop()
        except RuntimeError:
            # The interpreter is shutting down and starts no more threads: the rest is done here.
            pass
    failures: list[BaseException | None] = []
    for path in (paths[0], *left):
        try:
            action(path)
        except Exception as error:
            failures.append(error)
    failures += [future.exception() for future in futures]
    for failure in failures:
        if failure is not None:
            raise failure


class BackgroundSync:
    """One fsync that runs while its caller goes on."""

    def __init__(self, action: Callable[[str], None], path: str) -> None:
        self._process = os.getpid()
        self._running: Future[None] | None = None
        # At the end of the interpreter no thread is started any more: then the fsync is left to `is_done`'s caller.
        with suppress(RuntimeError):
            self._running = _threads.pool().submit(action, path)

    def is_done(self) -> bool:
        """Wait for it and raise its error; False where it does not run here, as in a process that was forked since."""
        if self._running is None or self._process != os.getpid():
            return False
        self._running.result()
        return True


class _Threads:
    """The process's thread pool, started lazily."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._started: ThreadPoolExecutor | None = None

    def pool(self) -> ThreadPoolExecutor:
        with self._lock:
            if self._started is None:
                self._started = ThreadPoolExecutor(_THREADS, thread_name_prefix="lakelet-fsync")
            return self._started

    def forget(self) -> None:
        """In a forked child: the threads stayed with the parent, and so did a holder of the lock."""
        self._lock = threading.Lock()
        self._started = None


_threads = _Threads()
os.register_at_fork(after_in_child=_threads.forget)
