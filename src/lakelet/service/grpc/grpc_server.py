"""The gRPC server: both services, the health protocol and reflection, on the event loop of the process."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Protocol

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from lakelet.errors import InvalidError
from lakelet.protos.message_types import LAKELET, OLAP, PEER, message_class, service_methods
from lakelet.service.access.access import Access
from lakelet.service.error_detail import hidden_paths
from lakelet.service.grpc.lakelet_edge import LakeletEdge
from lakelet.service.grpc.olap_edge import OlapEdge
from lakelet.service.grpc.rpc_calls import Around, Callers, streaming, unary
from lakelet.service.peers.peer_access import PeerAccess
from lakelet.service.peers.peer_edge import PeerEdge
from lakelet.service.request_metrics import RequestMetrics
from lakelet.service.running_queries import RunningQueries
from lakelet.service.server_tls import ServerTls
from lakelet.service.service import Service

_LOG = logging.getLogger("lakelet.service.grpc")
_WORD = re.compile(r"(?<!^)(?=[A-Z])")
_NO_LIMIT = -1
_STATUSES = health_pb2.HealthCheckResponse.ServingStatus
# How often those who watch the health of the service are told of a change.
_LOOK_SECONDS = 1.0


class Edge(Protocol):
    """The methods of one service, by the names of its RPCs in lower case with underscores."""

    @property
    def open_methods(self) -> frozenset[str]:
        """RPCs that need no key."""


class GrpcServer:
    """A server that listens from `start` to `stop`."""

    def __init__(
        self,
        service: Service,
        access: Access,
        tls: ServerTls | None = None,
        queries: RunningQueries | None = None,
        peer_access: PeerAccess | None = None,
        metrics: RequestMetrics | None = None,
    ) -> None:
        """With `peer_access` other nodes of the cluster are answered, too; `queries` and `metrics` are shared with the other
        edge."""
        metrics = metrics or RequestMetrics()
        self._service = service
        self._tls = tls
        self._health = _Health(service)
        self._server = grpc.aio.server(
            options=[
                ("grpc.max_receive_message_length", service.settings.most_body_bytes),
                # A result has its own limit, of queries.
                ("grpc.max_send_message_length", _NO_LIMIT),
                ("grpc.so_reuseport", 0),
            ]
        )
        queries = queries or RunningQueries(service)
        edges: list[tuple[str, Edge, Callers]] = [
            (OLAP, OlapEdge(service, queries), access),
            (LAKELET, LakeletEdge(service, queries), access),
        ]
        if peer_access is not None:
            edges.append((PEER, PeerEdge(service), peer_access))
        hidden = hidden_paths(service.lake.location, service.settings.wal_folder)
        for name, edge, known in edges:
            handlers = dict(_handlers(name, edge, known, metrics, hidden))
            self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(name, handlers),))
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        reflection.enable_server_reflection((OLAP, LAKELET, health.SERVICE_NAME, reflection.SERVICE_NAME), self._server)

    async def start(self, host: str, port: int) -> int:
        """Listen; the port that was bound. InvalidError where it is taken."""
        address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        try:
            if self._tls is None:
                bound = self._server.add_insecure_port(address)
            else:
                bound = self._server.add_secure_port(address, self._tls.grpc_credentials())
        except RuntimeError as error:
            raise InvalidError(f"{address} cannot be listened at: {error}") from None
        if not bound:
            raise InvalidError(f"{address} cannot be listened at")
        await self._server.start()
        return int(bound)

    async def stop(self, drain_seconds: float) -> None:
        """Take no further calls, and answer those that run."""
        self._health.enter_graceful_shutdown()
        await self._server.stop(drain_seconds)


class _Health(health_pb2_grpc.HealthServicer):  # type: ignore[misc]
    """The health protocol, which tells the state of the service when it is asked, and its changes to those who watch."""

    def __init__(self, service: Service) -> None:
        self._service_of_rows = service
        self._stopping = asyncio.Event()

    async def Check(self, request: Any, context: Any) -> Any:
        """Whether requests should be sent here."""
        status = await self._status(request.service)
        if status == _STATUSES.SERVICE_UNKNOWN:
            await context.abort(grpc.StatusCode.NOT_FOUND, f"{request.service}: no service of this name is here")
        return health_pb2.HealthCheckResponse(status=status)

    async def Watch(self, request: Any, context: Any) -> None:
        """The same now and whenever it is another; the end of the server ends it."""
        told = None
        while True:
            status = await self._status(request.service)
            if status != told:
                told = status
                await context.write(health_pb2.HealthCheckResponse(status=status))
            if self._stopping.is_set():
                return
            with suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_SECONDS):
                    await self._stopping.wait()

    def enter_graceful_shutdown(self) -> None:
        """Say from now on that no requests should be sent here."""
        self._stopping.set()

    async def _status(self, name: str) -> Any:
        if name not in ("", OLAP, LAKELET):
            return _STATUSES.SERVICE_UNKNOWN
        if self._stopping.is_set():
            return _STATUSES.NOT_SERVING
        found = await self._service_of_rows.health()
        return _STATUSES.SERVING if found.is_ready else _STATUSES.NOT_SERVING


def _handlers(
    name: str, edge: Edge, access: Callers, metrics: RequestMetrics, hidden: Mapping[str, str]
) -> Iterator[tuple[str, Any]]:
    """A handler for each method of a service that the edge has."""
    for method in service_methods(name):
        found = getattr(edge, _WORD.sub("_", method.name).lower(), None)
        if found is None:
            # The client gets UNIMPLEMENTED.
            continue
        around = Around(access, metrics, f"/{name}/{method.name}", hidden)
        codecs = {
            "request_deserializer": message_class(method.input_type.full_name).FromString,
            "response_serializer": message_class(method.output_type.full_name).SerializeToString,
        }
        if method.server_streaming:
            yield method.name, grpc.unary_stream_rpc_method_handler(streaming(around, found), **codecs)
        elif method.client_streaming:
            yield method.name, grpc.stream_unary_rpc_method_handler(unary(around, found), **codecs)
        else:
            handler = unary(around, found, is_open=method.name in edge.open_methods)
            yield method.name, grpc.unary_unary_rpc_method_handler(handler, **codecs)
