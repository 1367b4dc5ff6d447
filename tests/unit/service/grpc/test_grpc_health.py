"""The health protocol of gRPC says whether requests should be sent here, to those who ask and to those who watch."""

from __future__ import annotations

import asyncio
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from lakelet.protos.message_types import LAKELET, OLAP
from lakelet.service.access.access import Access
from lakelet.service.grpc import grpc_server
from lakelet.service.service import Service
from lakelet.service.values import Health
from tests.unit.service.grpc.running_service import running

SERVING, NOT_SERVING, SERVICE_UNKNOWN = 1, 2, 3


def test_the_health_protocol_follows_the_service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grpc_server, "_LOOK_SECONDS", 0.01)
    ready = True

    async def health(_: Service) -> Health:
        return Health("ok" if ready else "degraded", {})

    monkeypatch.setattr(Service, "health", health)

    async def run() -> None:
        nonlocal ready
        async with running(tmp_path) as (_, channel):
            stub = health_pb2_grpc.HealthStub(channel)
            watch = stub.Watch(health_pb2.HealthCheckRequest(service=OLAP))
            unknown = stub.Watch(health_pb2.HealthCheckRequest(service="nobody"))
            assert (await watch.read()).status == SERVING
            assert (await unknown.read()).status == SERVICE_UNKNOWN
            for name in ("", OLAP, LAKELET):
                assert (await stub.Check(health_pb2.HealthCheckRequest(service=name))).status == SERVING
            ready = False
            assert (await watch.read()).status == NOT_SERVING
            for name in ("", OLAP, LAKELET):
                assert (await stub.Check(health_pb2.HealthCheckRequest(service=name))).status == NOT_SERVING
            ready = True
            assert (await watch.read()).status == SERVING
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await stub.Check(health_pb2.HealthCheckRequest(service="nobody"))
            assert caught.value.code() == grpc.StatusCode.NOT_FOUND

    asyncio.run(run())


def test_a_watch_holds_up_no_stop(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path) as (service, _):
            server = grpc_server.GrpcServer(service, Access(None))
            port = await server.start("127.0.0.1", 0)
            async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
                watch = health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest())
                assert (await watch.read()).status == SERVING
                # Far longer than the test may take.
                await server.stop(drain_seconds=3_000)
                assert (await watch.read()).status == NOT_SERVING
                assert await watch.read() is grpc.aio.EOF

    asyncio.run(run())
