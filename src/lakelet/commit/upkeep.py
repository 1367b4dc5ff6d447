"""Maintenance after a write's commit, unless the table is `write-only`: automatic tags and expiry.

    tags that are due ─ expired partitions (first write of each check interval) ─ expired consumers
      ─ expired snapshots

The order is Java's: a new tag keeps its files, a dropped consumer no longer holds anything. Most writes find at the price of a
few small reads that nothing is to be removed. Upkeep never fails a write, which is committed by then: failures are
logged, and the next write tries again. With `snapshot.expire.execution-mode = async` it runs in the background while the
write returns.
"""

from __future__ import annotations

import logging
import threading
from dataclasses import replace
from datetime import timedelta

from lakelet.commit.metadata.snapshots import try_snapshot
from lakelet.commit.metadata.version_ids import read_hint
from lakelet.commit.retention.expiry import expire_snapshots
from lakelet.commit.retention.expiry_policy import Retention
from lakelet.commit.retention.partition_expiry import expire_partitions
from lakelet.commit.versions.consumers import expire_consumers
from lakelet.commit.versions.tag_creation import create_due_tags
from lakelet.errors import LakeletError
from lakelet.model.schema import TableSchema
from lakelet.model.snapshot import Snapshot
from lakelet.options import (
    CONSUMER_EXPIRATION_TIME,
    PARTITION_EXPIRATION_CHECK_INTERVAL,
    PARTITION_EXPIRATION_MAX_NUM,
    PARTITION_EXPIRATION_TIME,
    SNAPSHOT_EXPIRE_EXECUTION_MODE,
    SNAPSHOT_EXPIRE_LIMIT,
    WRITE_ONLY,
    TableOptions,
)
from lakelet.storage.home import TableHome

_LOG = logging.getLogger(__name__)
# Several writers expire concurrently. What another one is just removing need not be removed by all.
_AT_WORK_MS = 10 * 60 * 1000


def upkeep(home: TableHome, schema: TableSchema, snapshot: Snapshot) -> None:
    """Expire what the table's options allow, after the commit that made `snapshot`. Never raises."""
    options = TableOptions(schema.options)
    if options.get(WRITE_ONLY):
        return
    if options.get(SNAPSHOT_EXPIRE_EXECUTION_MODE) == "async":
        threading.Thread(target=_run, args=(home, schema, options, snapshot), name="lakelet-upkeep").start()
    else:
        _run(home, schema, options, snapshot)


def _run(home: TableHome, schema: TableSchema, options: TableOptions, snapshot: Snapshot) -> None:
    for step in (_tags, _partitions, _consumers, _snapshots):
        try:
            step(home, schema, options, snapshot)
        except LakeletError as error:
            place = home.where(home.paths.branch_root)
            _LOG.warning("snapshot %d of %s is committed, but upkeep after it failed: %s", snapshot.id, place, error)


def _tags(home: TableHome, schema: TableSchema, _options: TableOptions, snapshot: Snapshot) -> None:
    create_due_tags(home, schema, snapshot)


def _partitions(home: TableHome, schema: TableSchema, options: TableOptions, snapshot: Snapshot) -> None:
    age = options.get(PARTITION_EXPIRATION_TIME)
    if age is None or not schema.partition_keys:
        return
    interval_ms = _ms(options.get(PARTITION_EXPIRATION_CHECK_INTERVAL))
    if interval_ms > 0 and snapshot.id > 1:
        before = try_snapshot(home, snapshot.id - 1)
        # Intervals are counted from 1970, so that writers in any number of processes agree on whose turn it is.
        if before is not None and before.time_ms // interval_ms == snapshot.time_ms // interval_ms:
            return
    past_ms = home.clock.now_ms() - _ms(age)
    expire_partitions(home, schema, older_than_ms=past_ms, at_most=options.get(PARTITION_EXPIRATION_MAX_NUM))


def _consumers(home: TableHome, _schema: TableSchema, options: TableOptions, _snapshot: Snapshot) -> None:
    age = options.get(CONSUMER_EXPIRATION_TIME)
    if age is not None:
        expire_consumers(home, home.clock.now_ms() - _ms(age))


def _snapshots(home: TableHome, _schema: TableSchema, options: TableOptions, snapshot: Snapshot) -> None:
    now_ms = home.clock.now_ms()
    retention = Retention.of(options, now_ms)
    if snapshot.id > retention.keep_min and not _all_young(home, retention, snapshot):
        limited = replace(retention, limit=options.get(SNAPSHOT_EXPIRE_LIMIT))
        expire_snapshots(home, options, limited, stopped_before_ms=now_ms - _AT_WORK_MS)


def _all_young(home: TableHome, retention: Retention, snapshot: Snapshot) -> bool:
    """Whether the hint to the oldest snapshot alone shows that none is expired."""
    earliest = read_hint(home, home.paths.earliest_hint)
    if earliest is None or earliest > snapshot.id or home.store.head(home.paths.snapshot(earliest)) is None:
        return False
    count = snapshot.id - earliest + 1
    if count <= retention.keep_min:
        return True
    if count > retention.keep_max:
        return False
    following = try_snapshot(home, earliest + 1)
    return following is not None and following.time_ms >= retention.replaced_since_ms


def _ms(span: timedelta) -> int:
    return int(span.total_seconds() * 1000)
