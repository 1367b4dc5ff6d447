"""Queries end when their caller, or one with all rights, cancels them, and when their client goes away."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import httpx
import pytest

from lakelet.protos.message_types import LAKELET, OLAP, message_class
from lakelet.service.access.access import Access
from lakelet.service.access.caller import Caller
from lakelet.service.query.query_engine import QueryRequest
from lakelet.service.query.query_run import QueryCancelledError
from lakelet.service.rest.app import RestApp
from lakelet.service.running_queries import RunningQueries
from lakelet.service.service import Service
from tests.unit.service.grpc.running_service import running
from tests.unit.service.served_lake import ServedLake

# One that gives no row, and one that gives rows for ever.
ENDLESS = "SELECT count(*) FROM range(100000000000) a, range(100000) b WHERE a.range % 7 = b.range"
ROWS_FOR_EVER = "SELECT a.range AS n FROM range(100000000000) a"
ARROW = "application/vnd.apache.arrow.stream"
NO_LIMITS = {"query_rows": 10**12, "query_bytes": 1 << 40, "query_seconds": 86_400}


class Keys:
    """Two callers with few rights, and one with all."""

    def caller_of(self, key: str) -> Caller | None:
        rights = {"one": {"t": "read"}, "two": {"t": "read"}, "root": {"*": "admin"}}
        return Caller(key, rights[key], key) if key in rights else None


def bearer(key: str, **more: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}", **more}


def is_idle(service: Service) -> bool:
    """Whether no query runs or waits."""
    engine = service._engine
    return engine is None or (not engine._runs and not service.starting_queries)


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("canceller", ["one", "root"])
@pytest.mark.parametrize("accept", ["application/json", ARROW])
def test_a_query_is_cancelled_by_its_caller_and_by_one_with_all_rights(
    tmp_path: Path, canceller: str, accept: str
) -> None:
    with ServedLake(tmp_path, access=Access(Keys()), query_seconds=86_400) as served:

        async def run() -> None:
            transport = httpx.ASGITransport(app=served.app)
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost", timeout=None) as client:
                headers = bearer("one", accept=accept, **{"x-request-id": "r.1"})
                query = asyncio.create_task(client.post("/v1/query", json={"sql": ENDLESS}, headers=headers))
                await until(lambda: not is_idle(served.service))
                for key, request_id in (("two", "r.1"), ("root", "r.2"), ("two", "none")):
                    told = await client.delete(f"/v1/query/{request_id}", headers=bearer(key))
                    assert (told.status_code, told.json()["code"]) == (404, "not-found")
                assert (await client.delete("/v1/query/r.1")).status_code == 401
                while not query.done():
                    # Interrupted once is enough, unless the engine has not begun.
                    told = await client.delete("/v1/query/r.1", headers=bearer(canceller))
                    assert told.status_code == 404 or told.json()["cancelled"] == 1
                    await asyncio.wait({query}, timeout=0.05)
                answer = await query
                assert (answer.status_code, "cancelled" in answer.json()["detail"]) == (400, True)
                await until(lambda: is_idle(served.service))

        served.run(run())


@pytest.mark.parametrize(
    ("sql", "accept"),
    [(ENDLESS, "application/json"), (ENDLESS, ARROW), (ROWS_FOR_EVER, ARROW)],
    ids=["json", "arrow", "stream"],
)
def test_a_client_that_goes_away_ends_its_query(tmp_path: Path, sql: str, accept: str) -> None:
    body = json.dumps({"sql": sql}).encode()
    headers = [(b"host", b"localhost"), (b"accept", accept.encode())]
    scope = {"type": "http", "method": "POST", "path": "/v1/query", "query_string": b"", "headers": headers}
    sent: list[Any] = []
    with ServedLake(tmp_path, **NO_LIMITS) as served:

        async def run() -> None:
            left = asyncio.Event()
            messages = iter([{"type": "http.request", "body": body, "more_body": False}])

            async def receive() -> Any:
                for message in messages:
                    return message
                await left.wait()
                return {"type": "http.disconnect"}

            async def send(message: Any) -> None:
                sent.append(message)

            answering = asyncio.create_task(served.app({**scope, "state": {}}, receive, send))
            await until(lambda: not is_idle(served.service) and (sql == ENDLESS or len(sent) > 2))
            left.set()
            await answering
            await until(lambda: is_idle(served.service))

        served.run(run())
        # The stream was never ended: no client takes what came for all rows.
        assert not any(one.get("more_body") is False for one in sent)
        assert served.app.metrics.requests["rest", "/v1/query", "POST", 499] == 1


@pytest.mark.parametrize(
    ("service_name", "method", "sql"),
    [(OLAP, "Query", ENDLESS), (LAKELET, "QueryArrow", ENDLESS), (LAKELET, "QueryArrow", ROWS_FOR_EVER)],
    ids=["json", "arrow", "stream"],
)
def test_a_grpc_client_that_goes_away_ends_its_query(tmp_path: Path, service_name: str, method: str, sql: str) -> None:
    package = service_name.rpartition(".")[0]

    async def run() -> None:
        async with running(tmp_path, **NO_LIMITS) as (service, channel):
            kind = channel.unary_stream if method == "QueryArrow" else channel.unary_unary
            call = kind(
                f"/{service_name}/{method}",
                request_serializer=lambda message: message.SerializeToString(),
                response_deserializer=message_class(f"{package}.{method}Response").FromString,
            )(message_class(f"{package}.{method}Request")(sql=sql))
            if sql == ROWS_FOR_EVER:
                await call.read()
            else:
                reading = asyncio.ensure_future(call.read() if method == "QueryArrow" else call)
                await until(lambda: not is_idle(service))
            call.cancel()
            await until(lambda: is_idle(service))
            if sql != ROWS_FOR_EVER:
                with pytest.raises((asyncio.CancelledError, grpc.aio.AioRpcError)):
                    await reading

    asyncio.run(run())


def test_both_edges_share_their_queries(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path, **NO_LIMITS) as (service, _):
            queries = RunningQueries(service)
            app = RestApp(service, Access(None), queries)
            query = asyncio.create_task(queries.json(QueryRequest(ENDLESS), Caller("by gRPC"), "r-1"))
            await until(lambda: not is_idle(service))
            transport = httpx.ASGITransport(app=app)
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
                while not query.done():
                    await client.delete("/v1/query/r-1")
                    await asyncio.wait({query}, timeout=0.05)
            with pytest.raises(QueryCancelledError):
                await query

    asyncio.run(run())
