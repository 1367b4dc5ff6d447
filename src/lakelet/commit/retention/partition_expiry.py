"""Partition expiry: drop expired partitions, in one commit that replaces them by nothing.

    values-time     the time that the partition's values denote (`partition_time`), in this machine's time zone as in Java
    update-time     the creation of its newest file

The drop is an OVERWRITE like any other: it makes a snapshot, time travel reaches before it, and its files are removed when
the snapshots before it expire. As in Java it drops whatever the partition holds when it is committed. A partition with a NULL
or with text that is no time does not expire by its values; this is logged.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import pyarrow.compute as pc

from lakelet.commit.committer import commit
from lakelet.commit.metadata.manifests import ManifestSettings, live_entries, snapshot_manifests
from lakelet.commit.metadata.snapshots import latest_snapshot
from lakelet.commit.request import CommitRequest, Overwrite
from lakelet.commit.retention.partition_time import PartitionTime
from lakelet.errors import InvalidError
from lakelet.events import PartitionsExpired, publish
from lakelet.format.rows.binary_row import decode_row
from lakelet.model.partition_path import partition_text
from lakelet.model.schema import TableSchema
from lakelet.model.snapshot import Snapshot
from lakelet.options import (
    PARTITION_EXPIRATION_BATCH_SIZE,
    PARTITION_EXPIRATION_STRATEGY,
    PARTITION_TIMESTAMP_FORMATTER,
    PARTITION_TIMESTAMP_PATTERN,
    TableOptions,
)
from lakelet.storage.home import TableHome

_LOG = logging.getLogger(__name__)
VALUES_TIME, UPDATE_TIME = "values-time", "update-time"


@dataclass(frozen=True, slots=True)
class ExpiredPartitions:
    """The partitions that were dropped, or with `dry_run` would be, each by the text of its columns, and the snapshot of the
    last commit that dropped some.
    """

    partitions: tuple[Mapping[str, str | None], ...]
    snapshot: Snapshot | None
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class _Partition:
    row: bytes
    values: Mapping[str, str | None]
    updated_ms: int


def expire_partitions(
    home: TableHome, schema: TableSchema, *, older_than_ms: int, at_most: int, dry_run: bool = False
) -> ExpiredPartitions:
    """Drop the partitions whose time is before `older_than_ms`, the first `at_most` in the order of their values."""
    if not schema.partition_keys:
        raise InvalidError(f"{home.where(home.paths.root)} has no partitions that could expire")
    options = TableOptions(schema.options)
    strategy = options.get(PARTITION_EXPIRATION_STRATEGY)
    if strategy not in (VALUES_TIME, UPDATE_TIME):
        raise InvalidError(
            f"option 'partition.expiration-strategy': expected {VALUES_TIME} or {UPDATE_TIME}, found {strategy!r}"
        )
    latest = latest_snapshot(home)
    there = [] if latest is None else _partitions(home, schema, latest, options)
    if strategy == UPDATE_TIME:
        past = [partition for partition in there if partition.updated_ms < older_than_ms]
    else:
        reader = PartitionTime(options.get(PARTITION_TIMESTAMP_PATTERN), options.get(PARTITION_TIMESTAMP_FORMATTER))
        past = _past_by_values(there, reader, datetime.fromtimestamp(older_than_ms / 1000))
    chosen = sorted(past, key=lambda partition: [text or "" for text in partition.values.values()])[:at_most]
    made = None if dry_run else _drop(home, chosen, options.get(PARTITION_EXPIRATION_BATCH_SIZE))
    expired = ExpiredPartitions(tuple(partition.values for partition in chosen), made, dry_run)
    if made is not None:
        publish(PartitionsExpired(home.table_name, home.paths.branch, expired.partitions, made.id))
    return expired


def _partitions(home: TableHome, schema: TableSchema, latest: Snapshot, options: TableOptions) -> list[_Partition]:
    """The partitions that have files, with the creation time of their newest one."""
    entries = live_entries(
        home,
        snapshot_manifests(home, latest),
        columns=["_CREATION_TIME"],
        threads=ManifestSettings.of(options).threads,
    )
    groups = entries.group_by("_PARTITION", use_threads=False).aggregate([("_CREATION_TIME", "max")])
    rows: Sequence[bytes] = groups.column("_PARTITION").to_pylist()
    # A file of unknown age keeps its partition.
    times = pc.fill_null(groups.column("_CREATION_TIME_max"), 2**62).to_pylist()
    found = []
    for row, updated in zip(rows, times, strict=True):
        values = zip(
            schema.partition_keys, schema.partition_types, decode_row(row, schema.partition_types), strict=True
        )
        texts = {
            name: None if value is None else partition_text(data_type, value, legacy=False)
            for name, data_type, value in values
        }
        found.append(_Partition(row, texts, updated))
    return found


def _past_by_values(there: Sequence[_Partition], reader: PartitionTime, before: datetime) -> list[_Partition]:
    past, unknown = [], []
    for partition in there:
        time = reader.of(partition.values)
        if time is None:
            unknown.append(partition)
        elif time < before:
            past.append(partition)
    if unknown:
        _LOG.warning(
            "%d partitions are no time and do not expire, the first is %s: see partition.timestamp-pattern and "
            "partition.timestamp-formatter, or use partition.expiration-strategy = update-time",
            len(unknown),
            dict(unknown[0].values),
        )
    return past


def _drop(home: TableHome, chosen: Sequence[_Partition], batch: int | None) -> Snapshot | None:
    made = None
    step = batch or len(chosen) or 1
    for start in range(0, len(chosen), step):
        rows = frozenset(partition.row for partition in chosen[start : start + step])
        made = commit(home, CommitRequest(home.ids.uuid(), (), overwrite=Overwrite(None, rows))) or made
    return made
