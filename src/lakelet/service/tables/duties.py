"""What maintenance does with one table: drop expired days, compact what is due, expire snapshots. For a thread.

Each duty is a commit or an expiry that any number of processes may do at the same time: what two do, one of them does in vain. A
duty that fails is logged and keeps no other one; the next round tries again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from lakelet.errors import LakeletError, NotFoundError
from lakelet.options import PARTITION_EXPIRATION_TIME, TableOptions
from lakelet.service.tables.served_table import OpenTable

_LOG = logging.getLogger(__name__)
_Result = TypeVar("_Result")
Offer = Callable[[list[bytes]], bool]
# Compacts a table on other machines, until it is stopped; whether there is a new snapshot.
Elsewhere = Callable[[OpenTable, Callable[[], bool]], bool]
# Fewer tasks are done before another node has taken one.
_SEVERAL = 2


@dataclass(frozen=True, slots=True)
class Maintained:
    """What was done: days that were dropped, compactions, snapshots that were expired, and duties that failed."""

    days: int = 0
    compactions: int = 0
    snapshots: int = 0
    failures: int = 0

    @property
    def has_committed(self) -> bool:
        """Whether the table has a new snapshot."""
        return bool(self.days or self.compactions)

    def __add__(self, other: Maintained) -> Maintained:
        return Maintained(
            self.days + other.days,
            self.compactions + other.compactions,
            self.snapshots + other.snapshots,
            self.failures + other.failures,
        )


def maintain(
    opened: OpenTable,
    stopped: Callable[[], bool],
    *,
    only_days: bool = False,
    offer: Offer | None = None,
    elsewhere: Elsewhere | None = None,
) -> Maintained:
    """Do all duties of a table, or drop expired days alone; a compaction ends early, without a commit, when it is `stopped`.
    Compaction is done `elsewhere`, if there is such a place. Else, where there is work for several nodes, it is `offer`ed to
    them: the tasks are taken, or compacted here."""
    days = _tried(opened, "days whose retention has passed are still there", _dropped_days)
    compacted: int | None = 0
    expired: int | None = 0
    if not only_days and not stopped():
        compacted = _tried(opened, "it is not compacted", lambda one: _compacted(one, stopped, offer, elsewhere))
    if not only_days and not stopped():
        expired = _tried(opened, "its snapshots are not expired", lambda one: len(one.table.expire_snapshots().ids))
    failures = sum(number is None for number in (days, compacted, expired))
    return Maintained(days or 0, compacted or 0, expired or 0, failures)


def _tried(opened: OpenTable, failed: str, duty: Callable[[OpenTable], _Result]) -> _Result | None:
    try:
        return duty(opened)
    except NotFoundError as error:
        # Dropped meanwhile, by this node or another one.
        _LOG.info("table %s: %s: %s", opened.name, failed, error)
    except LakeletError as error:
        _LOG.warning("table %s: %s: %s", opened.name, failed, error)
    return None


def _dropped_days(opened: OpenTable) -> int:
    schema = opened.schema
    if not schema.partition_keys or TableOptions(schema.options).get(PARTITION_EXPIRATION_TIME) is None:
        return 0
    return len(opened.table.expire_partitions().partitions)


def _compacted(opened: OpenTable, stopped: Callable[[], bool], offer: Offer | None, elsewhere: Elsewhere | None) -> int:
    if elsewhere is not None:
        return int(elsewhere(opened, stopped))
    if offer is not None:
        from lakelet.operations.append_tasks import planned_tasks  # noqa: PLC0415 - a single node plans none.

        tasks = planned_tasks(opened.table)
        if len(tasks) >= _SEVERAL and offer(tasks):
            return 0
    return int(opened.table.compact(cancel=stopped) is not None)
