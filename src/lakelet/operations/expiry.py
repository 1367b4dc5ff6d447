"""Expire snapshots and partitions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lakelet.commit.retention.expiry import ExpiredSnapshots
from lakelet.commit.retention.partition_expiry import ExpiredPartitions
from lakelet.options import (
    PARTITION_EXPIRATION_STRATEGY,
    PARTITION_TIMESTAMP_FORMATTER,
    PARTITION_TIMESTAMP_PATTERN,
    SNAPSHOT_EXPIRE_LIMIT,
    TableOptions,
)
from lakelet.table import Table
from lakelet.table.time_arguments import Age
from lakelet.table.upkeep.retention import TableRetention


@dataclass(frozen=True, slots=True)
class ExpireSnapshots:
    """Which snapshots expire; None means what the table's options say. At most `limit` expire at once."""

    retain_min: int | None = None
    retain_max: int | None = None
    older_than: Age | None = None
    limit: int | None = None
    dry_run: bool = False
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ExpireChangelogs:
    """Which of the changelogs expire that were kept longer than their snapshots; None means what the table's options say."""

    retain_min: int | None = None
    retain_max: int | None = None
    older_than: Age | None = None
    limit: int | None = None
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ExpirePartitions:
    """Which partitions expire, and how their time is parsed; None means what the table's options say."""

    older_than: Age | None = None
    max_partitions: int | None = None
    timestamp_formatter: str | None = None
    timestamp_pattern: str | None = None
    strategy: str | None = None
    dry_run: bool = False
    options: Mapping[str, str] = field(default_factory=dict)


def expire_snapshots(table: Table, request: ExpireSnapshots) -> ExpiredSnapshots:
    """Expires snapshots of a table, and removes the files that only they need."""
    limit = request.limit
    if limit is None and SNAPSHOT_EXPIRE_LIMIT.name in request.options:
        limit = TableOptions(request.options).get(SNAPSHOT_EXPIRE_LIMIT)
    return table.expire_snapshots(
        request.retain_min,
        retain_max=request.retain_max,
        older_than=request.older_than,
        limit=limit,
        dry_run=request.dry_run,
        options=request.options,
    )


def expire_changelogs(table: Table, request: ExpireChangelogs) -> ExpiredSnapshots:
    """Expires long-lived changelogs of a table, and removes the files that only they need."""
    return TableRetention(table.home).expire_changelogs(
        request.retain_min,
        retain_max=request.retain_max,
        older_than=request.older_than,
        limit=request.limit,
        options=request.options,
    )


def expire_partitions(table: Table, request: ExpirePartitions) -> ExpiredPartitions:
    """Drops expired partitions of a table in one commit."""
    asked = {
        PARTITION_TIMESTAMP_FORMATTER.name: request.timestamp_formatter,
        PARTITION_TIMESTAMP_PATTERN.name: request.timestamp_pattern,
        PARTITION_EXPIRATION_STRATEGY.name: request.strategy,
    }
    return table.expire_partitions(
        request.older_than,
        max_partitions=request.max_partitions,
        dry_run=request.dry_run,
        options={**request.options, **{name: text for name, text in asked.items() if text is not None}},
    )
