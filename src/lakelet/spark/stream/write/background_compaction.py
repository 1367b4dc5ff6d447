"""Compact tables in a thread of the driver while batches go on: one table at a time, and each of them once.

A compaction replaces exactly the files that it read, so that commits meanwhile lose nothing. Its failure is logged and kept for
`compaction_failures`; the rows stay as they were committed, and a later batch tries again.
"""

from __future__ import annotations

import logging
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

from lakelet.compact.buckets.postponed import PostponedCompaction
from lakelet.compact.compaction import Compaction
from lakelet.errors import LakeletError
from lakelet.model.bucket_mode import BucketMode, bucket_mode
from lakelet.options import WRITE_ONLY, TableOptions
from lakelet.spark.opened_table import OpenedTable
from lakelet.spark.stream.write.arrow_memory import give_back

_LOG = logging.getLogger(__name__)
Key = tuple[str, str]


@dataclass(slots=True)
class _Work:
    """The pending compactions of this process by table, and the last failure of each table that has one."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    pool: ThreadPoolExecutor | None = None
    pending: dict[Key, Future[None]] = field(default_factory=dict)
    failures: dict[Key, str] = field(default_factory=dict)


_work = _Work()


def compact_later(opened: OpenedTable) -> None:
    """Compacts what is due in a table, in the background, unless that is already under way."""
    key = _key(opened)
    with _work.lock:
        running = _work.pending.get(key)
        if running is not None and not running.done():
            return
        if _work.pool is None:
            # The threads are waited for when the interpreter exits.
            _work.pool = ThreadPoolExecutor(1, thread_name_prefix="lakelet-compaction")
        _work.pending[key] = _work.pool.submit(_compact, opened)


def wait_for_compactions(timeout_seconds: float | None = None) -> None:
    """Waits until no background compaction is under way."""
    with _work.lock:
        pending = list(_work.pending.values())
    for one in pending:
        one.result(timeout_seconds)


def compaction_failures() -> dict[str, str]:
    """Why the last background compaction of a table failed, by table; tables whose last one succeeded are not there."""
    with _work.lock:
        return {f"{location}/{root}": text for (location, root), text in _work.failures.items()}


def _key(opened: OpenedTable) -> Key:
    return (opened.home.store.location, opened.home.paths.branch_root)


def _compact(opened: OpenedTable) -> None:
    key = _key(opened)
    try:
        schema = opened.schema()
        if TableOptions(schema.options).get(WRITE_ONLY):
            return
        if bucket_mode(schema) is BucketMode.POSTPONE_MODE:
            PostponedCompaction(opened.home, schema).run()
        Compaction(opened.home, schema, extra=opened.extra, threads=1).run()
    except LakeletError as error:
        _LOG.error("compacting %s in the background failed, its rows stay as they are: %s", opened.name, error)
        with _work.lock:
            _work.failures[key] = str(error)
    except Exception as error:
        _LOG.exception("compacting %s in the background failed, its rows stay as they are", opened.name)
        with _work.lock:
            _work.failures[key] = f"{type(error).__name__}: {error}"
    else:
        with _work.lock:
            _work.failures.pop(key, None)
    finally:
        give_back()
