"""The JSON bodies of requests, as types that are decoded and checked in one go."""

from __future__ import annotations

from typing import Any

import msgspec


class WriteBody(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """POST /v1/data."""

    table: str
    id: str
    timestamp: str
    payload: dict[str, Any]


class RecordBody(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """One record of a batch."""

    id: str
    timestamp: str
    payload: dict[str, Any]


class QueryBody(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """POST /v1/query."""

    sql: str
    params: dict[str, Any] | list[Any] | None = None
    time_zone: str | None = None
    timeout_seconds: float | None = None
    engine: str | None = None


class BackupBody(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """POST /v1/backup/trigger and /v1/backup/recover."""

    table: str
    id: str = ""
    day: str = ""


class ConfigBody(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The config of a new table. What is left out is 0, and 0 is the default of sizes and intervals."""

    buffer_size: int = 0
    flush_interval_seconds: int = 0
    retention_days: int = 0
    backup_enabled: bool = False
    properties: dict[str, str] = {}


class CreateTableBody(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """POST /v1/tables."""

    table_name: str
    config: ConfigBody | None = None
    if_not_exists: bool = False


class ChangedConfigBody(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The changes of a table's config; what is left out stays, a property that is null is reset."""

    buffer_size: int | None = None
    flush_interval_seconds: int | None = None
    retention_days: int | None = None
    backup_enabled: bool | None = None
    properties: dict[str, str | None] = {}


class AlterTableBody(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """PATCH /v1/tables/{table_name}."""

    config: ChangedConfigBody | None = None
    status: str | None = None
