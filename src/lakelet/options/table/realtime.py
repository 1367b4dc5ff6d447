"""Options of `table.writer()`: its memtables and its write-ahead logs. They change speed and memory, never rows."""

from typing import Any

from lakelet.options.kinds import DURATION, POSITIVE_SIZE, Kind, NotAValueError, integer, one_of
from lakelet.options.option import ACTED, Option, declare


def _to_share(text: str) -> float:
    value = float(text)
    if not 0 < value <= 1:
        raise NotAValueError(text)
    return value


_SHARE: Kind[float] = Kind("float", "a number above 0 and at most 1", _to_share)

MEMTABLE_SIZE = declare(
    "memtable.size",
    POSITIVE_SIZE,
    "64 mb",
    "Memory of one memtable of `table.writer()`; a larger row is refused.",
    ACTED,
)
MEMTABLE_FLUSH_THRESHOLD = declare(
    "memtable.flush-threshold",
    _SHARE,
    "0.8",
    "Share of `memtable.size` from which a memtable takes no further row and is flushed.",
    ACTED,
)
MEMTABLE_MAX_NUMBER = declare(
    "memtable.max-number",
    integer(2),
    "3",
    "Memtables of a writer at the same time, the active one included; with all of them full, its callers wait.",
    ACTED,
)
MEMTABLE_CONCURRENT_FLUSHES = declare(
    "memtable.concurrent-flushes",
    integer(1),
    "2",
    "Memtables of a writer whose files are written at the same time; their commits are in the order of the rows.",
    ACTED,
)
MEMTABLE_WAIT_TIMEOUT = declare(
    "memtable.wait-timeout",
    DURATION,
    "PT1M",
    "How long a put waits for a memtable while flushes are late or fail, before it is refused.",
    ACTED,
)
WAL_SYNC = declare(
    "wal.sync",
    one_of("always", "interval", "never"),
    "always",
    "When the write-ahead log is synced to disk: before a put returns, in intervals, or whenever the system does it. Without "
    "`always` a power cut may lose rows that a put has returned for; a killed process loses none.",
    ACTED,
)
WAL_SYNC_INTERVAL = declare(
    "wal.sync-interval", DURATION, "PT0.1S", "Pause between two syncs of the log, with `wal.sync` = `interval`.", ACTED
)

REALTIME_OPTIONS: tuple[Option[Any], ...] = (
    MEMTABLE_SIZE,
    MEMTABLE_FLUSH_THRESHOLD,
    MEMTABLE_MAX_NUMBER,
    MEMTABLE_CONCURRENT_FLUSHES,
    MEMTABLE_WAIT_TIMEOUT,
    WAL_SYNC,
    WAL_SYNC_INTERVAL,
)
