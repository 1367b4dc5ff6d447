"""Whatever fails behind whichever operation: the answer tells its kind and the request, the log tells the rest."""

import asyncio
import inspect
import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from lakelet.errors import CommitUnknownError, CorruptionError, InternalError, UnavailableError
from lakelet.protos.message_types import LAKELET, OLAP, message_class, service_methods
from lakelet.service.rest.openapi import openapi_json
from lakelet.service.service import Service
from tests.unit.service.grpc.running_service import running
from tests.unit.service.served_lake import MORNING, ServedLake

SECRET = "/srv/warehouse/db.db/t/bucket-0/data-1.parquet"


class SpeechlessError(Exception):
    """One that cannot even be shown."""

    def __str__(self) -> str:
        raise OSError(SECRET)


def failures() -> Iterator[BaseException]:
    for kind in (CommitUnknownError, CorruptionError, InternalError, UnavailableError):
        yield kind(f"{SECRET}: expected a footer")
    for other in (OSError, KeyError, RecursionError, MemoryError, AssertionError, TimeoutError, StopAsyncIteration):
        yield other(SECRET)
    yield FileNotFoundError(2, "No such file or directory", SECRET)
    yield UnicodeDecodeError("utf-8", SECRET.encode(), 0, 1, SECRET)
    yield ExceptionGroup("several", [OSError(SECRET), ValueError(SECRET)])
    yield SpeechlessError()


def failing(service: Service, error: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every operation fails."""

    async def fail(*_: object, **__: object) -> Any:
        raise error

    for name, method in inspect.getmembers(type(service), inspect.iscoroutinefunction):
        if not name.startswith("_") and name not in ("start", "stop", "cancel_query"):
            assert method
            monkeypatch.setattr(service, name, fail)


BODIES: dict[str, Any] = {
    "WriteBody": {"table": "t", "id": "a", "timestamp": MORNING, "payload": {}},
    "QueryBody": {"sql": "SELECT 1"},
    "CreateTableBody": {"table_name": "t"},
    "AlterTableBody": {},
    "BackupBody": {"table": "t"},
}


def operations() -> Iterator[tuple[str, str, Any]]:
    """A request of each operation that is described."""
    for path, methods in json.loads(openapi_json())["paths"].items():
        for method, described in methods.items():
            if path in ("/v1/health/live", "/v1/query/{request_id}"):
                # These ask the operation layer nothing that may fail.
                continue
            body: Any = None
            if "requestBody" in described:
                schema = described["requestBody"]["content"]["application/json"]["schema"]
                body = [] if schema.get("type") == "array" else BODIES[schema["$ref"].rsplit("/", 1)[1]]
            query = "?table=t&id=a" if any(one["in"] == "query" for one in described.get("parameters", ())) else ""
            filled = path.replace("{table}", "t").replace("{table_name}", "t").replace("{id}", "a")
            yield method.upper(), filled + query, body


def test_no_answer_over_rest_tells_paths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(logging, "raiseExceptions", False)
    asked = list(operations())
    assert len(asked) >= 18
    with ServedLake(tmp_path) as served:
        served.create("t")
        for error in failures():
            with monkeypatch.context() as patch:
                failing(served.service, error, patch)
                for method, path, body in asked:
                    caplog.clear()
                    accept = "application/vnd.apache.arrow.stream" if isinstance(error, OSError) else "*/*"
                    answer = served.request(method, path, json=body, headers={"accept": accept})
                    assert answer.status_code in (500, 503), (method, path, answer.text)
                    assert SECRET not in answer.text
                    assert "Traceback" not in answer.text
                    told = answer.json()
                    assert told["request_id"] in told["detail"]
                    assert isinstance(error, SpeechlessError) or SECRET in caplog.text


def test_no_answer_over_grpc_tells_paths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(logging, "raiseExceptions", False)

    async def run() -> None:
        async with running(tmp_path) as (service, channel):
            for error in failures():
                with monkeypatch.context() as patch:
                    failing(service, error, patch)
                    for name in (OLAP, LAKELET):
                        for method in service_methods(name):
                            if method.name != "CancelQuery":
                                caplog.clear()
                                await refused(channel, name, method)
                                assert isinstance(error, SpeechlessError) or SECRET in caplog.text

    asyncio.run(run())


async def refused(channel: Any, name: str, method: Any) -> None:
    """Call a method that fails, and look at what is told."""
    kind = f"{'stream' if method.client_streaming else 'unary'}_{'stream' if method.server_streaming else 'unary'}"
    request = message_class(method.input_type.full_name)()
    if hasattr(request, "id"):
        request.id = "a"
    if hasattr(request, "timestamp"):
        request.timestamp.seconds = 1
    call = getattr(channel, kind)(
        f"/{name}/{method.name}",
        request_serializer=lambda message: message.SerializeToString(),
        response_deserializer=message_class(method.output_type.full_name).FromString,
    )(iter([request]) if method.client_streaming else request)
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await (call.read() if method.server_streaming else call)
    error = caught.value
    assert error.code().name in ("UNKNOWN", "DATA_LOSS", "INTERNAL", "UNAVAILABLE")
    assert SECRET not in str(error)
    assert "Traceback" not in str(error)
    assert dict(error.trailing_metadata() or ())["x-request-id"] in str(error.details())
