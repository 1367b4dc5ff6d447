"""Requests and answers of the service's operation layer: plain frozen values that every edge makes and reads.

    REST body, protobuf message ── edge ── request ── Service ── answer ── edge ── JSON, protobuf message

Nothing here knows HTTP or gRPC. A point in time is a whole number of microseconds since 1970 in UTC, so that the same record is
the same value however it came; `timestamps` reads and writes its texts. What is made once a record is a `msgspec.Struct`: a
frozen dataclass takes ten times as long to make.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pyarrow as pa

from lakelet.errors import InvalidError

ACTIVE, ARCHIVED, DELETING = "active", "archived", "deleting"
# The status of a node that ended without committing all rows.
ABSENT = "absent"

DEFAULT_BUFFER_SIZE = 10_000
DEFAULT_FLUSH_INTERVAL_SECONDS = 30


class Record(msgspec.Struct, frozen=True):
    """One row as it comes in; `payload` holds what JSON can: None, booleans, numbers, texts, lists and mappings."""

    id: str
    timestamp_us: int
    payload: Mapping[str, Any]


class RequestKey(msgspec.Struct, frozen=True):
    """An idempotency key, and a digest of the request that it came with; `is_first` where the client says that it has just
    made it, and sends the request for the first time."""

    key: str
    fingerprint: bytes
    is_first: bool = False


class WriteRequest(msgspec.Struct, frozen=True):
    """Write one record into a table."""

    table: str
    record: Record
    idempotency_key: RequestKey | None = None


@dataclass(frozen=True, slots=True)
class JsonLines:
    """Records as NDJSON, as they came."""

    body: bytes


@dataclass(frozen=True, slots=True)
class BatchRequest:
    """Write records into one table, all of them or none; with `partial` those that are valid.

    `records` are `Record`s, mappings that have not been validated yet, as a JSON body gives them, or errors in the place of
    records that are none; or NDJSON; or an Arrow table with the columns `id`, `timestamp` and `payload`.
    """

    table: str
    records: Sequence[Record | Mapping[str, Any] | InvalidError] | pa.Table | JsonLines
    partial: bool = False
    idempotency_key: RequestKey | None = None


@dataclass(frozen=True, slots=True)
class RefusedRecord:
    """A record of a partial batch that was not written: its place in the batch, from 0 on, and why."""

    place: int
    reason: str


class WriteResult(msgspec.Struct, frozen=True):
    """What a write has done: records that are durable, values that went to `payload_rest`, and records that were refused; with
    `repeated`, what the first request under its idempotency key has done."""

    written: int
    rest_values: int = 0
    refused: tuple[RefusedRecord, ...] = ()
    repeated: bool = False

    @property
    def message(self) -> str:
        """The result in words."""
        words = ["1 record written" if self.written == 1 else f"{self.written} records written"]
        if self.rest_values:
            words.append(f"{self.rest_values} values that fit no column are in payload_rest")
        if self.refused:
            words.append(f"{len(self.refused)} refused")
        return ", ".join(words)


@dataclass(frozen=True, slots=True)
class TableConfig:
    """The configuration of a served table. A retention of 0 days is for ever."""

    buffer_size: int = DEFAULT_BUFFER_SIZE
    flush_interval_seconds: int = DEFAULT_FLUSH_INTERVAL_SECONDS
    retention_days: int = 0
    backup_enabled: bool = False
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CreateTableRequest:
    """Create a table, or serve one that exists (`properties.attach`). Without a config the defaults hold; in a config that is
    given, 0 means the default of sizes and intervals, and for ever as retention."""

    table_name: str
    config: TableConfig | None = None
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class AlterTableRequest:
    """Change the configuration of a table: what is None stays; in `properties` a value of None resets an option."""

    table_name: str
    buffer_size: int | None = None
    flush_interval_seconds: int | None = None
    retention_days: int | None = None
    backup_enabled: bool | None = None
    status: str | None = None
    properties: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DropTableRequest:
    """Stop serving a table; with `cascade` its files are deleted, too."""

    table_name: str
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True, slots=True)
class DropTableResult:
    """What a drop has done."""

    message: str
    files_deleted: int = 0


@dataclass(frozen=True, slots=True)
class TableInfo:
    """A served table. Times are RFC 3339 in UTC; `last_write` is empty before the first commit."""

    name: str
    config: TableConfig
    created_at: str
    last_write: str
    status: str


@dataclass(frozen=True, slots=True)
class TableStats:
    """Statistics of a table from its metadata; buffered records are counted in `record_count`. Where that is not exact it is an
    upper bound: files of a table with a primary key hold replaced and deleted rows until they are compacted. Times are RFC 3339
    in UTC, empty for a table without rows."""

    record_count: int
    file_count: int
    size_bytes: int
    oldest_record: str
    newest_record: str
    buffered_records: int = 0
    record_count_is_exact: bool = True


@dataclass(frozen=True, slots=True)
class DescribedTable:
    """A table with its statistics."""

    table_info: TableInfo
    stats: TableStats


@dataclass(frozen=True, slots=True)
class RowRequest:
    """The row or rows of one id."""

    table: str
    id: str


@dataclass(frozen=True, slots=True)
class BackupRequest:
    """Back a table up, or recover it: all of it, or what may hold an id, a day (YYYY-MM-DD, UTC), or both."""

    table: str
    id: str = ""
    day: str = ""


@dataclass(frozen=True, slots=True)
class BackupResult:
    """What a backup or a recovery has done."""

    message: str
    files: int


@dataclass(frozen=True, slots=True)
class BackupInfo:
    """The backup of a table: the snapshot of the table that it mirrors (0 for none), when that was mirrored in RFC 3339 (empty
    for none), how many records it holds, and whether it was mirrored as a whole."""

    table: str
    source_snapshot: int
    backed_up_at: str
    record_count: int
    complete: bool


@dataclass(frozen=True, slots=True)
class BackupCheck:
    """A comparison of a backup's files with their checksums: how many, and what is wrong with which."""

    files: int
    bytes: int
    problems: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class ServiceStats:
    """Totals over served tables."""

    tables: int
    records: int
    files: int
    bytes: int
    buffered_records: int


@dataclass(frozen=True, slots=True)
class Health:
    """The state of the service: "ok", "degraded" (flushes fail; rows are safe in logs) or "stopping"; details by subject."""

    status: str
    details: Mapping[str, str]

    @property
    def is_ready(self) -> bool:
        """Whether requests should be sent here."""
        return self.status == "ok"


@dataclass(frozen=True, slots=True)
class Node:
    """A node of the cluster; one process is a cluster of one."""

    id: str
    address: str
    status: str
    last_heartbeat_us: int
