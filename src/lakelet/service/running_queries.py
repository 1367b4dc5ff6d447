"""Queries that run, by the ids of their requests: who may cancel them, and their end where nobody waits for them any more.

    edge ── queries.json, json_text, arrow ── Service.query_json, answer, query_arrow
    DELETE /v1/query/{request_id}, CancelQuery ── queries.cancel ── Service.cancel_query

A query is cancelled by its own caller, or by one with all rights; to others it does not exist. One whose client goes away is
cancelled until it has ended, for the engine knows of it only from its start on. Shared by both
edges; used on the event loop alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Iterator
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from lakelet.errors import NotFoundError
from lakelet.service.access.caller import Caller
from lakelet.service.query.json_text import JsonText
from lakelet.service.query_answer import json_text
from lakelet.service.service import Service

if TYPE_CHECKING:
    from lakelet.service.query.query_engine import QueryRequest

T = TypeVar("T")
_AGAIN_SECONDS = 0.05


@dataclass(frozen=True, slots=True, eq=False)
class OwnedQuery:
    """A query of a caller; `id` is the one that the engine knows it by."""

    owner: str
    request_id: str

    @property
    def id(self) -> str:
        """The request id with its owner: two callers may use the same one."""
        return f"{self.owner}/{self.request_id}"


class GoneError(Exception):
    """The client of a query went away, and the query was cancelled."""


class RunningQueries:
    """The queries of one service."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._running: dict[str, list[OwnedQuery]] = {}

    async def json(self, request: QueryRequest, caller: Caller, request_id: str) -> str:
        """The answer to a SELECT as JSON."""
        with self._owned(caller, request_id) as query:
            asked = replace(request, request_id=query.id)
            return await self._result(query, self._service.query_json(asked, caller))

    async def json_text(
        self, request: QueryRequest, caller: Caller, request_id: str, gone: asyncio.Future[None]
    ) -> JsonText:
        """The same as the text of a JSON string. GoneError where `gone` was done before: the client is no longer there."""
        with self._owned(caller, request_id) as query:
            asked = replace(request, request_id=query.id)
            return await self._result(query, self._service.answer(json_text, asked, caller), gone)

    async def arrow(
        self, request: QueryRequest, caller: Caller, request_id: str, gone: asyncio.Future[None] | None = None
    ) -> AsyncGenerator[bytes]:
        """The answer to a SELECT as the bytes of an Arrow IPC stream, part by part."""
        with self._owned(caller, request_id) as query:
            asked = replace(request, request_id=query.id)
            stream = await self._result(query, self._service.query_arrow(asked, caller), gone)
            async with aclosing(stream):
                while (part := await self._result(query, anext(stream, None), gone)) is not None:
                    yield part

    @contextmanager
    def _owned(self, caller: Caller, request_id: str) -> Iterator[OwnedQuery]:
        """A query of a caller for as long as the block runs."""
        query = OwnedQuery(caller.name, request_id)
        self._running.setdefault(request_id, []).append(query)
        try:
            yield query
        finally:
            left = self._running[request_id]
            left.remove(query)
            if not left:
                del self._running[request_id]

    async def cancel(self, caller: Caller, request_id: str) -> int:
        """Cancel the queries of a request; how many. NotFoundError where the caller has none that runs."""
        running = self._running.get(request_id, ())
        found = {one.id for one in running if one.owner == caller.name or caller.is_admin}
        if not found:
            raise NotFoundError(f"request {request_id!r} has no query that runs")
        for one in found:
            await self._service.cancel_query(one)
        return len(found)

    async def _result(self, query: OwnedQuery, work: Awaitable[T], gone: asyncio.Future[None] | None = None) -> T:
        """What `work` of a query gives. The query is cancelled where the caller of this is, and where `gone` is done (GoneError);
        it has ended when this raises."""
        task = asyncio.ensure_future(work)
        awaited: list[asyncio.Future[Any]] = [task] if gone is None else [task, gone]
        try:
            await asyncio.wait(awaited, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            await self._end(query, task)
            raise
        if not task.done():
            await self._end(query, task)
            raise GoneError
        return await task

    async def _end(self, query: OwnedQuery, task: asyncio.Future[T]) -> None:
        while not task.done():
            await self._service.cancel_query(query.id)
            await asyncio.wait({task}, timeout=_AGAIN_SECONDS)
        if not task.cancelled():
            # Looked at, so that nobody is told of an error that nobody waits for.
            task.exception()
