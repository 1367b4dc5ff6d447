"""The client for programs on an event loop: each request runs in one of a few threads, over the connections of one `Client`.

A request that is cancelled is not taken back: it runs to its end in its thread, and what it changes is changed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial as bound
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar

from lakelet.client.answers import QueryAnswer, Record, ServedTable, ServiceHealth, WriteAnswer
from lakelet.client.client import DEFAULT_ADDRESS, Client
from lakelet.client.repeats import RepeatPolicy
from lakelet.errors import InvalidError

P = ParamSpec("P")
T = TypeVar("T")
_BATCH_ROWS = 10_000


class AsyncClient:
    """`Client` with methods to await; at most `connections` requests are under way, further ones wait."""

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
        connections: int = 16,
    ) -> None:
        if connections < 1:
            raise InvalidError(f"connections: expected 1 or more, found {connections}")
        self._client = Client(
            address,
            api_key=api_key,
            ca_file=ca_file,
            certificate_file=certificate_file,
            key_file=key_file,
            timeout_seconds=timeout_seconds,
            repeats=repeats,
        )
        self._threads = ThreadPoolExecutor(connections, "lakelet-client")

    @property
    def address(self) -> str:
        """Where the service is."""
        return self._client.address

    async def write(
        self,
        table: str,
        id: str,
        timestamp: object,
        payload: Mapping[str, Any],
        *,
        idempotency_key: str | None = None,
    ) -> WriteAnswer:
        """Write one record; it is durable and visible to queries when this returns."""
        return await self._run(self._client.write, table, id, timestamp, payload, idempotency_key=idempotency_key)

    async def write_many(
        self,
        table: str,
        rows: object,
        *,
        partial: bool = False,
        batch_rows: int = _BATCH_ROWS,
        idempotency_key: str | None = None,
    ) -> WriteAnswer:
        """Write records, Arrow data or a frame in batches; `rows` is read in another thread."""
        return await self._run(
            self._client.write_many,
            table,
            rows,
            partial=partial,
            batch_rows=batch_rows,
            idempotency_key=idempotency_key,
        )

    async def write_batches(
        self,
        table: str,
        rows: object,
        *,
        partial: bool = False,
        batch_rows: int = _BATCH_ROWS,
        idempotency_key: str | None = None,
    ) -> AsyncIterator[WriteAnswer]:
        """`write_many`, with the answer to each batch as it is written."""
        answers = self._client.write_batches(
            table, rows, partial=partial, batch_rows=batch_rows, idempotency_key=idempotency_key
        )
        while (answer := await self._run(next, answers, None)) is not None:
            yield answer

    async def get(self, table: str, id: str) -> list[Record]:
        """The records of an id, oldest first; none where there are none."""
        return await self._run(self._client.get, table, id)

    async def delete(self, table: str, id: str) -> int:
        """Delete the records of an id; how many there were."""
        return await self._run(self._client.delete, table, id)

    async def query(
        self,
        sql: str,
        params: Mapping[str, Any] | Sequence[Any] | None = None,
        *,
        time_zone: str | None = None,
        timeout_seconds: float | None = None,
        engine: str | None = None,
    ) -> QueryAnswer:
        """Run a SELECT."""
        return await self._run(
            self._client.query, sql, params, time_zone=time_zone, timeout_seconds=timeout_seconds, engine=engine
        )

    async def create_table(
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
        """Create a table, or serve one that exists (property `attach`)."""
        return await self._run(
            self._client.create_table,
            name,
            buffer_size=buffer_size,
            flush_interval_seconds=flush_interval_seconds,
            retention_days=retention_days,
            backup_enabled=backup_enabled,
            properties=properties,
            if_not_exists=if_not_exists,
        )

    async def list_tables(self, pattern: str = "") -> list[ServedTable]:
        """The tables that the caller may read, whose names match a pattern of `*` and `?`."""
        return await self._run(self._client.list_tables, pattern)

    async def describe_table(self, name: str) -> ServedTable:
        """A table with its configuration and statistics."""
        return await self._run(self._client.describe_table, name)

    async def alter_table(
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
        """Change the configuration of a table, or its status."""
        return await self._run(
            self._client.alter_table,
            name,
            buffer_size=buffer_size,
            flush_interval_seconds=flush_interval_seconds,
            retention_days=retention_days,
            backup_enabled=backup_enabled,
            properties=properties,
            status=status,
        )

    async def drop_table(self, name: str, *, if_exists: bool = False, cascade: bool = False) -> int:
        """Stop serving a table; with `cascade` delete its files. How many files were deleted."""
        return await self._run(self._client.drop_table, name, if_exists=if_exists, cascade=cascade)

    async def health(self) -> ServiceHealth:
        """The state of the service."""
        return await self._run(self._client.health)

    async def close(self) -> None:
        """Wait for requests that are under way, and close the connections."""
        await asyncio.get_running_loop().run_in_executor(None, self._shut_down)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def _shut_down(self) -> None:
        self._threads.shutdown()
        self._client.close()

    async def _run(self, function: Callable[P, T], *given: P.args, **named: P.kwargs) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, bound(function, *given, **named))
