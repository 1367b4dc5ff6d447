"""A service with a gRPC server on a free port, and messages compiled from any proto text."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, struct_pb2, timestamp_pb2
from grpc_tools import protoc

from lakelet.catalog.connect import connect
from lakelet.service.access.access import Access, KnownKeys
from lakelet.service.access.audit_log import AuditLog
from lakelet.service.access.rate_limits import RateLimits
from lakelet.service.grpc.grpc_server import GrpcServer
from lakelet.service.request_metrics import RequestMetrics
from lakelet.service.service import Service
from lakelet.service.settings import ServiceSettings

HERE = Path(__file__).parent


def seed_text() -> str:
    """The proto of the design, and the messages that it leaves open."""
    return (HERE / "seed.proto").read_text() + (HERE / "left_open.proto.txt").read_text()


@dataclass(frozen=True)
class Compiled:
    """Messages and methods of a proto, in a pool of their own."""

    pool: Any
    service: str

    def message(self, name: str) -> Any:
        """The class of a message."""
        package = self.service.rpartition(".")[0]
        return message_factory.GetMessageClass(self.pool.FindMessageTypeByName(f"{package}.{name}"))

    def call(self, channel: Any, method: str) -> Callable[..., Any]:
        """A method of the service as a function."""
        found = self.pool.FindServiceByName(self.service).FindMethodByName(method)
        kind = f"{'stream' if found.client_streaming else 'unary'}_{'stream' if found.server_streaming else 'unary'}"
        made: Callable[..., Any] = getattr(channel, kind)(
            f"/{self.service}/{method}",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=message_factory.GetMessageClass(found.output_type).FromString,
        )
        return made


@cache
def compiled_client(text: str, service: str) -> Compiled:
    """Compile a text. Pools are kept for as long as the process lives: protobuf crashes where one goes before its messages."""
    with TemporaryDirectory() as folder:
        (Path(folder) / "client.proto").write_text(text)
        out = Path(folder) / "client.desc"
        include = Path(protoc.__file__).parent / "_proto"
        assert protoc.main(["", f"-I{folder}", f"-I{include}", f"--descriptor_set_out={out}", "client.proto"]) == 0
        found = descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes())
    pool = descriptor_pool.DescriptorPool()
    for known in (struct_pb2, timestamp_pb2):
        pool.AddSerializedFile(known.DESCRIPTOR.serialized_pb)
    for file in found.file:
        pool.AddSerializedFile(file.SerializeToString())
    return Compiled(pool, service)


@asynccontextmanager
async def running(
    folder: Path,
    keys: KnownKeys | None = None,
    limits: RateLimits | None = None,
    audit: AuditLog | None = None,
    backup: Path | None = None,
    metrics: RequestMetrics | None = None,
    **further: Any,
) -> AsyncIterator[tuple[Service, Any]]:
    """A service that runs, and a channel to it."""
    settings = ServiceSettings(
        warehouse=str(folder / "lake"), wal_folder=str(folder / "wal"), most_body_bytes=1 << 20, **further
    )
    open_backup = None if backup is None else partial(connect, str(backup))
    service = Service(connect(settings.warehouse), settings, open_backup=open_backup)
    await service.start()
    server = GrpcServer(service, Access(keys, limits, audit), metrics=metrics)
    port = await server.start("127.0.0.1", 0)
    try:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            yield service, channel
    finally:
        await server.stop(1)
        await service.stop()
