"""A client of a service over HTTP or gRPC, for any number of threads."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote, urlencode

from lakelet.client.answers import (
    QueryAnswer,
    Record,
    RefusedRecord,
    ServedTable,
    ServiceHealth,
    WriteAnswer,
    changed_table,
    decoded,
    decoded_rows,
    listed_table,
    record,
    write_answer,
)
from lakelet.client.bodies import ARROW, batches_of, json_body, timestamp_text
from lakelet.client.connections import Address, Connections, HttpAnswer, HttpRequest, TlsChoice, Transport
from lakelet.client.repeats import RepeatedRequests, RepeatPolicy
from lakelet.clock import Clock, SystemClock
from lakelet.errors import InvalidError, LakeletError
from lakelet.ids import Ids, RandomIds

DEFAULT_ADDRESS = "http://127.0.0.1:8080"
_JSON = "application/json"
_BATCH_ROWS = 10_000
_LONGEST_KEY = 255
# A query has its own limit of time in the service; the answer comes a little later.
_QUERY_GRACE_SECONDS = 10.0


class Client:
    """A client of the service at an address; close it, or use it in a `with`.

    Errors are the kinds of `lakelet.errors`, as in a lake that is opened directly. Requests are sent again where that cannot do
    anything twice (`repeats`); a change whose outcome is not known is a CommitUnknownError.
    """

    def __init__(
        self,
        address: str = DEFAULT_ADDRESS,
        *,
        api_key: str | None = None,
        ca_file: str | None = None,
        certificate_file: str | None = None,
        key_file: str | None = None,
        timeout_seconds: float = 60.0,
        repeats: RepeatPolicy | None = None,
        clock: Clock | None = None,
        ids: Ids | None = None,
    ) -> None:
        if not 0 < timeout_seconds < math.inf:
            raise InvalidError(f"timeout_seconds: expected a number above 0, found {timeout_seconds!r}")
        headers = {"accept": _JSON, "user-agent": "lakelet-client"}
        if api_key is not None:
            if not api_key or not api_key.isascii() or not api_key.isprintable() or " " in api_key:
                raise InvalidError("api_key: expected printable characters without spaces")
            headers["authorization"] = f"Bearer {api_key}"
        clock = clock or SystemClock()
        self._timeout = timeout_seconds
        tls = TlsChoice(ca_file, certificate_file, key_file)
        self._connections = _opened(Address.parse(address), headers, timeout_seconds, tls, clock)
        self._ids = ids or RandomIds()
        self._requests = RepeatedRequests(self._connections, repeats or RepeatPolicy(), clock, self._ids)

    @property
    def address(self) -> str:
        """Where the service is."""
        return str(self._connections.address)

    # ------------------------------------------------------------------ rows

    def write(
        self,
        table: str,
        id: str,
        timestamp: object,
        payload: Mapping[str, Any],
        *,
        idempotency_key: str | None = None,
    ) -> WriteAnswer:
        """Write one record; it is durable and visible to queries when this returns. `timestamp` is a datetime with a zone, or
        RFC 3339. Under an idempotency key of the caller a write that is repeated within a day is written once; without one it has
        a key of its own, so that it can be sent again."""
        body = {"table": table, "id": id, "timestamp": timestamp_text(timestamp), "payload": payload}
        return self._write("/v1/data", _JSON, json_body(body), idempotency_key)

    def write_many(
        self,
        table: str,
        rows: object,
        *,
        partial: bool = False,
        batch_rows: int = _BATCH_ROWS,
        idempotency_key: str | None = None,
    ) -> WriteAnswer:
        """Write records: mappings of `id`, `timestamp` and `payload`, Arrow data, or a pandas or polars frame.

        They are sent in batches, each of which is written whole or not at all; an error says how many records the batches before
        have written. With `partial` invalid records are reported, and the others of their batch written. Under an idempotency key
        of the caller the batches have the keys `KEY-0`, `KEY-1` and so on: the same rows in batches of the same size, repeated
        within a day, are written once.
        """
        written, rest_values, refused = 0, 0, list[RefusedRecord]()
        try:
            answers = self.write_batches(
                table, rows, partial=partial, batch_rows=batch_rows, idempotency_key=idempotency_key
            )
            for one in answers:
                written += one.written
                rest_values += one.rest_values
                refused.extend(one.refused)
        except LakeletError as error:
            if written:
                error.args = (f"{error}; the batches before have written {written} records", *error.args[1:])
            raise
        return WriteAnswer(written, rest_values, tuple(refused))

    def write_batches(
        self,
        table: str,
        rows: object,
        *,
        partial: bool = False,
        batch_rows: int = _BATCH_ROWS,
        idempotency_key: str | None = None,
    ) -> Iterator[WriteAnswer]:
        """`write_many`, with the answer to each batch as it is written."""
        query = urlencode({"table": table, "partial": str(partial).lower()})
        sent = 0
        for number, batch in enumerate(batches_of(rows, batch_rows)):
            key = None if idempotency_key is None else f"{idempotency_key}-{number}"
            answer = self._write(f"/v1/data/batch?{query}", batch.media_type, batch.body, key)
            refused = tuple(RefusedRecord(sent + one.place, one.reason) for one in answer.refused)
            sent += batch.records
            yield WriteAnswer(answer.written, answer.rest_values, refused)

    def get(self, table: str, id: str) -> list[Record]:
        """The records of an id, oldest first; none where there are none."""
        answer = self._send("GET", _row_path(table, id), repeatable=True)
        return decoded(answer, lambda document: [record(one) for one in document["records"]])

    def delete(self, table: str, id: str) -> int:
        """Delete the records of an id; how many there were."""
        return decoded(self._send("DELETE", _row_path(table, id)), lambda document: int(document["deleted"]))

    # ------------------------------------------------------------------ queries

    def query(
        self,
        sql: str,
        params: Mapping[str, Any] | Sequence[Any] | None = None,
        *,
        time_zone: str | None = None,
        timeout_seconds: float | None = None,
        engine: str | None = None,
    ) -> QueryAnswer:
        """Run a SELECT; `params` are values of `$name`, or of `?`. Texts without a zone are in `time_zone`, by default UTC.

        `engine` is `spark` or `local`; by default the service decides by what the query reads.
        """
        body: dict[str, object] = {"sql": sql}
        if params is not None:
            body["params"] = dict(params) if isinstance(params, Mapping) else list(params)
        if time_zone is not None:
            body["time_zone"] = time_zone
        if timeout_seconds is not None:
            body["timeout_seconds"] = timeout_seconds
        if engine is not None:
            body["engine"] = engine
        waited = max(self._timeout, (timeout_seconds or 0.0) + _QUERY_GRACE_SECONDS)
        headers = {"content-type": _JSON, "accept": f"{ARROW}, application/problem+json"}
        request = HttpRequest("POST", "/v1/query", json_body(body), headers, repeatable=True, timeout_seconds=waited)
        return decoded_rows(self._requests.send(request))

    # ------------------------------------------------------------------ tables

    def create_table(
        self,
        name: str,
        *,
        buffer_size: int = 0,
        flush_interval_seconds: int = 0,
        retention_days: int = 0,
        backup_enabled: bool = False,
        properties: Mapping[str, str] | None = None,
        if_not_exists: bool = False,
    ) -> ServedTable:
        """Create a table, or serve one that exists (property `attach`). 0 is the default, as retention for ever."""
        config = {
            "buffer_size": buffer_size,
            "flush_interval_seconds": flush_interval_seconds,
            "retention_days": retention_days,
            "backup_enabled": backup_enabled,
            "properties": dict(properties or {}),
        }
        body = {"table_name": name, "config": config, "if_not_exists": if_not_exists}
        return decoded(self._send("POST", "/v1/tables", body, repeatable=if_not_exists), changed_table)

    def list_tables(self, pattern: str = "") -> list[ServedTable]:
        """The tables that the caller may read, whose names match a pattern of `*` and `?`."""
        path = f"/v1/tables?{urlencode({'pattern': pattern})}" if pattern else "/v1/tables"
        answer = self._send("GET", path, repeatable=True)
        return decoded(answer, lambda document: [listed_table(one) for one in document["tables"]])

    def describe_table(self, name: str) -> ServedTable:
        """A table with its configuration and statistics."""
        return decoded(self._send("GET", _table_path(name), repeatable=True), changed_table)

    def alter_table(
        self,
        name: str,
        *,
        buffer_size: int | None = None,
        flush_interval_seconds: int | None = None,
        retention_days: int | None = None,
        backup_enabled: bool | None = None,
        properties: Mapping[str, str | None] | None = None,
        status: str | None = None,
    ) -> ServedTable:
        """Change the configuration of a table, or its status: active or archived. What is None stays; a property that is None
        is reset."""
        given = {
            "buffer_size": buffer_size,
            "flush_interval_seconds": flush_interval_seconds,
            "retention_days": retention_days,
            "backup_enabled": backup_enabled,
            "properties": None if properties is None else dict(properties),
        }
        config = {name: value for name, value in given.items() if value is not None}
        body: dict[str, object] = {"config": config}
        if status is not None:
            body["status"] = status
        return decoded(self._send("PATCH", _table_path(name), body), changed_table)

    def drop_table(self, name: str, *, if_exists: bool = False, cascade: bool = False) -> int:
        """Stop serving a table; with `cascade` delete its files. How many files were deleted."""
        query = urlencode({"if_exists": str(if_exists).lower(), "cascade": str(cascade).lower()})
        answer = self._send("DELETE", f"{_table_path(name)}?{query}")
        return decoded(answer, lambda document: int(document["files_deleted"]))

    # ------------------------------------------------------------------ the service itself

    def health(self) -> ServiceHealth:
        """The state of the service."""
        answer = self._send("GET", "/v1/health", repeatable=True)
        return decoded(answer, lambda document: ServiceHealth(str(document["status"]), dict(document["details"])))

    def close(self) -> None:
        """Close the connections."""
        self._connections.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _write(self, path: str, media_type: str, body: bytes, key: str | None) -> WriteAnswer:
        """Send a write under a key, its own where none is given: so it is written once, however often it is sent."""
        fresh = key is None
        key = self._ids.uuid() if key is None else key
        if not 0 < len(key) <= _LONGEST_KEY or any(not "!" <= letter <= "~" for letter in key):
            raise InvalidError(f"idempotency_key: expected 1 to {_LONGEST_KEY} visible ASCII characters, found {key!r}")
        headers = {"content-type": media_type, "idempotency-key": key}
        request = HttpRequest("POST", path, body, headers, keyed=True, fresh=fresh)
        return decoded(self._requests.send(request), write_answer)

    def _send(
        self, method: str, path: str, body: Mapping[str, object] | None = None, *, repeatable: bool = False
    ) -> HttpAnswer:
        content = None if body is None else json_body(body)
        headers = {} if body is None else {"content-type": _JSON}
        return self._requests.send(HttpRequest(method, path, content, headers, repeatable=repeatable))


def _opened(
    address: Address, headers: Mapping[str, str], timeout_seconds: float, tls: TlsChoice, clock: Clock
) -> Transport:
    """The transport that the scheme of an address names."""
    if not address.scheme.startswith("grpc"):
        return Connections(address, headers=headers, timeout_seconds=timeout_seconds, tls=tls, clock=clock)
    try:
        from lakelet.client.grpc_connections import GrpcConnections  # noqa: PLC0415 - an extra, which need not be there.
    except ImportError as error:
        raise InvalidError(f"grpc:// needs further packages: pip install 'lakelet[server]' ({error})") from error
    return GrpcConnections(address, headers=headers, timeout_seconds=timeout_seconds, tls=tls)


def _table_path(name: str) -> str:
    if name in ("", ".", ".."):
        raise InvalidError(f"table: expected a name, found {name!r}")
    return f"/v1/tables/{_quoted(name)}"


def _row_path(table: str, id: str) -> str:
    """The id is a parameter: proxies rewrite paths with slashes, dots and empty parts."""
    if table in ("", ".", ".."):
        raise InvalidError(f"table: expected a name, found {table!r}")
    return f"/v1/data/{_quoted(table)}?id={_quoted(id)}"


def _quoted(text: str) -> str:
    try:
        return quote(text, safe="")
    except UnicodeEncodeError:
        raise InvalidError("expected text that UTF-8 can hold, found half of a surrogate pair") from None
