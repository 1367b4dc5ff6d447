"""The OpenAPI document of the HTTP edge: the schemas of bodies come from their types, paths and answers are declared here."""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec

from lakelet.service.rest.bodies import AlterTableBody, BackupBody, CreateTableBody, QueryBody, RecordBody, WriteBody

_BODIES = (WriteBody, RecordBody, QueryBody, CreateTableBody, AlterTableBody, BackupBody)
_REFERENCE = "#/components/schemas/{name}"
_TEXT: dict[str, Any] = {"type": "string"}
_NUMBER: dict[str, Any] = {"type": "integer"}
_FLAG: dict[str, Any] = {"type": "string", "enum": ["true", "false"]}
_NAME: dict[str, Any] = {"type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]{0,63}$"}
_ID: dict[str, Any] = {"type": "string", "minLength": 1, "maxLength": 1024}
_REQUEST_ID: dict[str, Any] = {"type": "string", "pattern": "^[A-Za-z0-9._-]{1,64}$"}
_MOMENT: dict[str, Any] = {
    "type": "string",
    "format": "date-time",
    "description": "RFC 3339 with a zone, microseconds at the finest.",
}
# What the operation layer takes, where that is less than the types of bodies do.
_NARROWED: dict[str, dict[str, Any]] = {
    "WriteBody": {"table": _NAME, "id": _ID, "timestamp": _MOMENT},
    "RecordBody": {"id": _ID, "timestamp": _MOMENT},
    "CreateTableBody": {"table_name": _NAME},
}
_DONE = {"success": {"type": "boolean", "const": True}, "message": _TEXT}
_ARROW = "application/vnd.apache.arrow.stream"
_HEADERS = {"X-Request-Id": {"description": "The id under which logs have the request.", "schema": _TEXT}}
_RETRY_AFTER = {"description": "Seconds after which the request may come again.", "schema": _NUMBER}
_GIVEN_ID = {
    "name": "X-Request-Id",
    "in": "header",
    "required": False,
    "schema": _REQUEST_ID,
    "description": "An id of the request, in logs and to cancel a query by; made by the service where there is none.",
}
_ERRORS = ("400", "401", "403", "404", "409", "413", "429", "500", "503")


@cache
def openapi_json() -> bytes:
    """The document as JSON."""
    _, schemas = msgspec.json.schema_components(_BODIES, ref_template=_REFERENCE)
    for body, members in _NARROWED.items():
        schemas[body]["properties"].update(members)
    document = {
        "openapi": "3.1.0",
        "info": {
            "title": "Lakelet",
            "version": "1",
            "description": "Rows in, queries out: tables of a lake behind REST. docs/service.md says what each operation does.",
        },
        "security": [{"key": []}, {}],
        "paths": _paths(),
        "components": {
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
            "schemas": {**schemas, **_answers()},
        },
    }
    return msgspec.json.encode(document)


def _paths() -> dict[str, Any]:
    table, name = _parameter("table", "path", _NAME), _parameter("table_name", "path", _NAME)
    row = [table, _parameter("id", "path", _ID)]
    by_query = [table, _parameter("id", "query", _ID, required=True)]
    key = _parameter("Idempotency-Key", "header", {"type": "string", "pattern": "^[!-~]{1,255}$"})
    first = _parameter("Idempotency-First", "header", {"type": "string", "enum": ["true"]})
    batch = {
        "application/json": {"schema": {"type": "array", "items": _ref("RecordBody")}},
        "application/x-ndjson": {"schema": _TEXT},
        _ARROW: {"schema": {"type": "string", "format": "binary"}},
    }
    return {
        "/v1/data": {"post": _operation("Write one record", "Written", [key, first], body="WriteBody")},
        "/v1/data/batch": {
            "post": {
                **_operation(
                    "Write records of one table, all or none",
                    "Written",
                    [
                        _parameter("table", "query", _NAME, required=True),
                        _parameter("partial", "query", _FLAG),
                        key,
                        first,
                    ],
                ),
                "requestBody": {"required": True, "content": batch},
            }
        },
        "/v1/data/{table}": {
            "get": _operation("The records of an id", "Records", by_query),
            "delete": _operation("Delete the records of an id", "Deleted", by_query),
        },
        "/v1/data/{table}/{id}": {
            "get": _operation("The records of an id", "Records", row),
            "delete": _operation("Delete the records of an id", "Deleted", row),
        },
        "/v1/query": {"post": _query()},
        "/v1/query/{request_id}": {
            "delete": _operation(
                "Cancel the query of a request", "Cancelled", [_parameter("request_id", "path", _REQUEST_ID)]
            )
        },
        "/v1/tables": {
            "get": _operation("List tables", "Tables", [_parameter("pattern", "query", _TEXT)]),
            "post": _operation(
                "Create a table, or serve one that exists", "Changed", body="CreateTableBody", status="201"
            ),
        },
        "/v1/tables/{table_name}": {
            "get": _operation("Describe a table", "Described", [name]),
            "patch": _operation("Change the configuration or status", "Changed", [name], body="AlterTableBody"),
            "delete": _operation(
                "Stop serving a table; with cascade delete its files",
                "Dropped",
                [name, _parameter("cascade", "query", _FLAG), _parameter("if_exists", "query", _FLAG)],
            ),
        },
        "/v1/backup": {"get": _operation("List backups", "Backups")},
        "/v1/backup/trigger": {"post": _operation("Back a table up", "BackedUp", body="BackupBody")},
        "/v1/backup/recover": {"post": _operation("Recover a table from its backup", "Recovered", body="BackupBody")},
        "/v1/backup/{table}/verify": {
            "get": _operation("Compare the files of a backup with their checksums", "BackupCheck", [table])
        },
        "/v1/health": {"get": _operation("The state of the service", "Health")},
        "/v1/health/live": {"get": _operation("Whether the process lives", "Health")},
        "/v1/health/ready": {"get": _ready()},
        "/v1/stats": {"get": _operation("Totals", "Stats", [_parameter("table", "query", _NAME)])},
        "/v1/nodes": {"get": _operation("The nodes of the cluster", "Nodes")},
    }


def _operation(
    summary: str,
    answer: str,
    parameters: list[dict[str, Any]] | None = None,
    *,
    body: str | None = None,
    status: str = "200",
) -> dict[str, Any]:
    done = {"description": "Done.", "headers": _HEADERS, "content": {"application/json": {"schema": _ref(answer)}}}
    problem = {
        "description": "A problem.",
        "headers": _HEADERS,
        "content": {"application/problem+json": {"schema": _ref("Problem")}},
    }
    made: dict[str, Any] = {"summary": summary, "responses": {status: done, **dict.fromkeys(_ERRORS, problem)}}
    made["responses"]["401"] = {**problem, "headers": {**_HEADERS, "WWW-Authenticate": {"schema": _TEXT}}}
    made["responses"]["429"] = {**problem, "headers": {**_HEADERS, "Retry-After": _RETRY_AFTER}}
    if status == "201":
        made["responses"]["200"] = done
    made["parameters"] = [*(parameters or []), _GIVEN_ID]
    if body is not None:
        made["requestBody"] = {"required": True, "content": {"application/json": {"schema": _ref(body)}}}
    return made


def _query() -> dict[str, Any]:
    made = _operation("Answer a SELECT", "QueryAnswer", body="QueryBody")
    made["responses"]["200"]["content"][_ARROW] = {"schema": {"type": "string", "format": "binary"}}
    return made


def _ready() -> dict[str, Any]:
    made = _operation("Whether requests should be sent here", "Health")
    made["responses"]["503"] = {
        "description": "Not now.",
        "headers": _HEADERS,
        "content": {"application/json": {"schema": _ref("Health")}},
    }
    return made


def _parameter(name: str, place: str, schema: dict[str, Any], *, required: bool = False) -> dict[str, Any]:
    return {"name": name, "in": place, "required": required or place == "path", "schema": schema}


def _ref(name: str) -> dict[str, str]:
    return {"$ref": _REFERENCE.format(name=name)}


def _object(properties: dict[str, Any], *optional: str) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": [name for name in properties if name not in optional],
    }


def _list(item: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": item}


def _answers() -> dict[str, Any]:
    config = _object(
        {
            "buffer_size": _NUMBER,
            "flush_interval_seconds": _NUMBER,
            "retention_days": _NUMBER,
            "backup_enabled": {"type": "boolean"},
            "properties": {"type": "object", "additionalProperties": _TEXT},
        }
    )
    named = {"name": _TEXT, "created_at": _TEXT, "last_write": _TEXT}
    status = {"status": {"type": "string", "enum": ["active", "archived", "deleting"]}}
    counts = {"record_count": _NUMBER, "file_count": _NUMBER, "size_bytes": _NUMBER}
    info = _object({**named, "config": config, **status})
    record = _object({"id": _TEXT, "timestamp": {"type": ["string", "null"]}, "payload": {"type": "object"}})
    exact = {"type": "boolean", "description": "Whether record_count is exact; else it is an upper bound."}
    times = {"oldest_record": _TEXT, "newest_record": _TEXT}
    stats = _object({**counts, **times, "buffered_records": _NUMBER, "record_count_is_exact": exact})
    refused = _list(_object({"place": _NUMBER, "reason": _TEXT}))
    backup = _object(
        {
            "table": _TEXT,
            "source_snapshot": _NUMBER,
            "backed_up_at": _TEXT,
            "record_count": _NUMBER,
            "complete": {"type": "boolean"},
        }
    )
    problem = _object({"path": _TEXT, "problem": _TEXT})
    node = _object({"id": _TEXT, "address": _TEXT, "status": _TEXT, "last_heartbeat": _TEXT})
    return {
        "Written": _object(
            {
                **_DONE,
                "written": _NUMBER,
                "rest_values": _NUMBER,
                "refused": refused,
                "repeated": {"type": "boolean", "description": "Written before under this idempotency key."},
            },
            "rest_values",
            "refused",
            "repeated",
        ),
        "Records": _object({"records": _list(record), "total": _NUMBER}),
        "Deleted": _object({**_DONE, "deleted": _NUMBER}),
        "QueryAnswer": _object({"result_json": {**_TEXT, "description": "The text of a JSON array of objects."}}),
        "Cancelled": _object({**_DONE, "cancelled": _NUMBER}),
        "Tables": _object({"tables": _list(_object({**named, **status, **counts})), "total": _NUMBER}),
        "Described": _object({"table_info": info, "stats": stats}),
        "Changed": _object({**_DONE, "table_info": info}),
        "Dropped": _object({**_DONE, "files_deleted": _NUMBER}),
        "Backups": _object({"backups": _list(backup), "total": _NUMBER}),
        "BackedUp": _object({**_DONE, "files_backed_up": _NUMBER}),
        "Recovered": _object({**_DONE, "files_recovered": _NUMBER}),
        "BackupCheck": _object({"files": _NUMBER, "bytes": _NUMBER, "problems": _list(problem)}),
        "Health": _object({"status": _TEXT, "details": {"type": "object", "additionalProperties": _TEXT}}, "details"),
        "Stats": _object(dict.fromkeys(("tables", "records", "files", "bytes", "buffered_records"), _NUMBER)),
        "Nodes": _object({"nodes": _list(node), "total": _NUMBER}),
        "Problem": _object(
            {"type": _TEXT, "title": _TEXT, "status": _NUMBER, "detail": _TEXT, "code": _TEXT, "request_id": _TEXT}
        ),
    }
