"""Resolve the version that a read names, by snapshot id, time or tag, or that the table's options name; else the newest."""

from __future__ import annotations

from datetime import datetime
from typing import TypeAlias

from lakelet.commit.metadata.schemas import latest_schema, read_schema
from lakelet.commit.metadata.snapshots import read_snapshot, snapshot_at
from lakelet.commit.metadata.source import metadata
from lakelet.commit.metadata.version_ids import snapshot_ids, tag_names
from lakelet.commit.versions.tags import read_tag
from lakelet.commit.versions.told_versions import told_at, try_told
from lakelet.errors import InvalidError, NotFoundError
from lakelet.model.schema import TableSchema
from lakelet.model.schema_change.evolution import COLUMN_OPTIONS
from lakelet.model.snapshot import Snapshot
from lakelet.options import (
    SCAN_SNAPSHOT_ID,
    SCAN_TAG_NAME,
    SCAN_TIMESTAMP,
    SCAN_TIMESTAMP_MILLIS,
    SCAN_VERSION,
    TableOptions,
)
from lakelet.storage.home import TableHome
from lakelet.table.time_arguments import milliseconds

VersionLike: TypeAlias = int | str | datetime


def named_version(
    home: TableHome, version: int | str | None, timestamp: datetime | str | int | None, tag: str | None
) -> tuple[TableSchema, Snapshot | None]:
    """The schema to read in and the snapshot to read: an older version is read in the schema it had."""
    chosen = [
        name for name, value in (("version", version), ("timestamp", timestamp), ("tag", tag)) if value is not None
    ]
    if len(chosen) > 1:
        raise InvalidError(f"a scan reads one version; both {chosen[0]} and {chosen[1]} were given")
    if chosen:
        latest = latest_schema(home)
    else:
        newest, latest = metadata(home).newest(home)
        version, timestamp, tag = stored_version(TableOptions(latest.options))
        if version is None and timestamp is None and tag is None:
            return latest, newest
    if timestamp is not None:
        snapshot = snapshot_at(home, milliseconds(timestamp))
    elif tag is not None:
        snapshot = read_tag(home, tag)
    else:
        snapshot = _by_name(home, version)
    if snapshot.schema_id == latest.id:
        return latest, snapshot
    old = read_schema(home, snapshot.schema_id)
    named = {key: text for key, text in old.options.items() if key in COLUMN_OPTIONS}
    return TableSchema(
        old.id,
        old.fields,
        old.highest_field_id,
        old.partition_keys,
        old.primary_keys,
        {**latest.options, **named},
        old.comment,
        old.time_ms,
    ), snapshot


def change_bound(home: TableHome, version: VersionLike) -> int:
    """The id of the snapshot at which changes begin or end, 0 for one before the first; a time means the newest one made
    by then."""
    if isinstance(version, str):
        if version in tag_names(home):
            return read_tag(home, version).id
        if version.isdigit():
            return int(version)
    elif not isinstance(version, datetime):
        # A value that is no number is reported by whoever reads the changes.
        return version
    moment = milliseconds(version)
    try:
        return told_at(home, moment).id
    except NotFoundError:
        if not snapshot_ids(home) or try_told(home, 1) is not None:
            return 0
        raise


def stored_version(options: TableOptions) -> tuple[int | str | None, str | int | None, str | None]:
    """The version that the table's own options ask for, where a scan names none."""
    stored_id, stored_millis = options.get(SCAN_SNAPSHOT_ID), options.get(SCAN_TIMESTAMP_MILLIS)
    version = stored_id if stored_id is not None else options.get(SCAN_VERSION)
    timestamp = stored_millis if stored_millis is not None else options.get(SCAN_TIMESTAMP)
    tag = options.get(SCAN_TAG_NAME)
    given = [value for value in (version, timestamp, tag) if value is not None]
    if len(given) > 1:
        raise InvalidError(f"the table's options name several versions to read: {given[0]!r} and {given[1]!r}")
    return version, timestamp, tag


def _by_name(home: TableHome, version: int | str | None) -> Snapshot:
    if isinstance(version, int):
        return read_snapshot(home, version)
    text = str(version)
    if text in tag_names(home):
        return read_tag(home, text)
    if text.isdigit():
        return read_snapshot(home, int(text))
    raise NotFoundError(f"version {text!r} is neither a tag of {home.where(home.paths.branch_root)} nor a snapshot id")
