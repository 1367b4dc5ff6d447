"""`olap.v1.OlapService`: each RPC a request of the operation layer, and its answer a message."""

from __future__ import annotations

from typing import Any

from lakelet.protos.message_types import message_class
from lakelet.service.grpc.rpc_calls import Call
from lakelet.service.grpc.struct_values import payload_of, timestamp_us_of
from lakelet.service.ingest.record import check_id
from lakelet.service.ingest.request_keys import request_key
from lakelet.service.running_queries import RunningQueries
from lakelet.service.service import Service
from lakelet.service.values import (
    BackupRequest,
    CreateTableRequest,
    DropTableRequest,
    Record,
    RequestKey,
    TableConfig,
    TableInfo,
    WriteRequest,
)

_MICROS = 1_000_000


def record_of_message(message: Any) -> Record:
    """The record of a message with the fields `id`, `timestamp` and `payload`."""
    return Record(check_id(message.id), timestamp_us_of(message, "timestamp"), payload_of(message.payload))


def message_key(message: Any, key: str | None) -> RequestKey | None:
    """The idempotency key of a message, None where it has none."""
    if key is None:
        return None
    return request_key(key, message.DESCRIPTOR.full_name.encode(), message.SerializeToString(deterministic=True))


class OlapEdge:
    """The methods of the service, by the names of their RPCs. Those in `open_methods` need no key."""

    open_methods = frozenset(("HealthCheck",))

    def __init__(self, service: Service, queries: RunningQueries) -> None:
        self._service = service
        self._queries = queries

    async def write(self, message: Any, call: Call) -> Any:
        """Write one record."""
        key = message_key(message, call.idempotency_key)
        done = await self._service.write(WriteRequest(message.table, record_of_message(message), key), call.caller)
        return _message("WriteResponse", success=True, message=done.message)

    async def query(self, message: Any, call: Call) -> Any:
        """Answer a SELECT as JSON; a caller that goes away ends the query."""
        from lakelet.service.query.query_engine import QueryRequest  # noqa: PLC0415 - DuckDB is loaded by the first query.

        request = QueryRequest(message.sql)
        found = await self._queries.json(request, call.caller, call.request_id)
        call.warn(request.warnings)
        return _message("QueryResponse", result_json=found)

    async def create_table(self, message: Any, call: Call) -> Any:
        """Create a table, or attach one."""
        config = _config_of(message.config) if message.HasField("config") else None
        request = CreateTableRequest(message.table_name, config, message.if_not_exists)
        info, is_new = await self._service.create_table(request, call.caller)
        text = f"table {info.name!r} created" if is_new else f"table {info.name!r} exists"
        return _message("CreateTableResponse", success=True, message=text)

    async def drop_table(self, message: Any, call: Call) -> Any:
        """Stop serving a table."""
        request = DropTableRequest(message.table_name, message.if_exists, message.cascade)
        done = await self._service.drop_table(request, call.caller)
        return _message("DropTableResponse", success=True, message=done.message, files_deleted=done.files_deleted)

    async def list_tables(self, message: Any, call: Call) -> Any:
        """List tables by a pattern."""
        found = await self._service.list_tables(message.pattern, call.caller)
        return _message("ListTablesResponse", tables=[_info(one.table_info) for one in found], total=len(found))

    async def describe_table(self, message: Any, call: Call) -> Any:
        """A table and its statistics."""
        found = await self._service.describe_table(message.table_name, call.caller)
        stats = found.stats
        told = _message(
            "TableStats",
            record_count=stats.record_count,
            file_count=stats.file_count,
            size_bytes=stats.size_bytes,
            oldest_record=stats.oldest_record,
            newest_record=stats.newest_record,
        )
        return _message("DescribeTableResponse", table_info=_info(found.table_info), stats=told)

    async def trigger_backup(self, message: Any, call: Call) -> Any:
        """Copy a table, or a part of it, to the backup store."""
        done = await self._service.trigger_backup(BackupRequest(message.table, message.id, message.day), call.caller)
        return _message("TriggerBackupResponse", success=True, message=done.message, files_backed_up=done.files)

    async def recover_data(self, message: Any, call: Call) -> Any:
        """Restore a table, or a part of it, from the backup store."""
        done = await self._service.recover(BackupRequest(message.table, message.id, message.day), call.caller)
        return _message("RecoverDataResponse", success=True, message=done.message, files_recovered=done.files)

    async def health_check(self, _: Any, call: Call) -> Any:
        """The state of the service; details, which name tables, are for admins."""
        found = await self._service.health()
        details = dict(found.details) if call.caller.is_admin else {}
        return _message("HealthCheckResponse", status=found.status, details=details)

    async def get_stats(self, message: Any, call: Call) -> Any:
        """Totals over tables, or of one."""
        found = await self._service.stats(message.table, call.caller)
        return _message(
            "GetStatsResponse",
            tables=found.tables,
            records=found.records,
            files=found.files,
            bytes=found.bytes,
            buffered_records=found.buffered_records,
        )

    async def get_nodes(self, _: Any, call: Call) -> Any:
        """The nodes of the cluster."""
        found = await self._service.nodes(call.caller)
        nodes = []
        for one in found:
            node = _message("NodeInfo", id=one.id, address=one.address, status=one.status)
            seconds, micros = divmod(one.last_heartbeat_us, _MICROS)
            node.last_heartbeat.seconds, node.last_heartbeat.nanos = seconds, micros * 1000
            nodes.append(node)
        return _message("GetNodesResponse", nodes=nodes, total=len(nodes))


def _config_of(message: Any) -> TableConfig:
    """A configuration; 0 is the default of sizes and intervals, and for ever as retention."""
    default = TableConfig()
    return TableConfig(
        buffer_size=message.buffer_size or default.buffer_size,
        flush_interval_seconds=message.flush_interval_seconds or default.flush_interval_seconds,
        retention_days=message.retention_days,
        backup_enabled=message.backup_enabled,
        properties=dict(message.properties),
    )


def _info(info: TableInfo) -> Any:
    config = info.config
    made = _message(
        "TableInfo", name=info.name, created_at=info.created_at, last_write=info.last_write, status=info.status
    )
    made.config.buffer_size = config.buffer_size
    made.config.flush_interval_seconds = config.flush_interval_seconds
    made.config.retention_days = config.retention_days
    made.config.backup_enabled = config.backup_enabled
    made.config.properties.update(config.properties)
    return made


def _message(message: str, /, **fields: Any) -> Any:
    return message_class(f"olap.v1.{message}")(**fields)
