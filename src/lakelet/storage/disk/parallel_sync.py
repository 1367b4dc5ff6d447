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

# More files than these at once gain nothing on a disk.
_THREADS = 8
# Each thread gets at least this number of files: one journal write serves them, and waking threads costs as much as a fast disk.
_LEAST = 2


def run_parallel(action: Callable[[str], None], paths: Sequence[str]) -> None:
    """Call `action` for every path in parallel; the first error is raised once all of them are done."""
    groups = min(_THREADS, -(-len(paths) // _LEAST))
    shares = [paths[number::groups] for number in range(groups)]
    futures: list[Future[list[Exception]]] = []
    try:
        for share in shares[1:]:
            futures.append(_threads.pool().submit(_run, action, share))
    except RuntimeError:
        # The interpreter is shutting down and starts no more threads: the rest is done here.
        pass
    failures = [error for share in (*shares[:1], *shares[1 + len(futures) :]) for error in _run(action, share)]
    for future in futures:
        failures += future.result()
    if failures:
        raise failures[0]


def _run(action: Callable[[str], None], paths: Sequence[str]) -> list[Exception]:
    """The errors of calls one after the other."""
    failures = []
    for path in paths:
        try:
            action(path)
        except Exception as error:
            failures.append(error)
    return failures


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
