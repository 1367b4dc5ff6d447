"""The process of `lakelet serve`: REST and gRPC on one event loop, from the first table to the last commit.

    start    certificates, lake, served tables, rows of crashed processes ── listen ── ready
    SIGTERM  no further connections ── running requests are answered ── waiting rows are written ── all rows are committed
    SIGHUP   certificates are read again, the audit log is opened again

A second signal stops the wait for requests; rows that were acknowledged are in logs in any case.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import uvicorn

from lakelet.catalog import connect
from lakelet.errors import InvalidError, LakeletError
from lakelet.service.access.access import Access, check_keys_required, is_loopback
from lakelet.service.access.audit_log import AuditLog
from lakelet.service.access.key_store import KeyStore, first_admin_key, keys_path
from lakelet.service.access.rate_limits import RateLimit, RateLimits
from lakelet.service.grpc.grpc_server import GrpcServer
from lakelet.service.ingest.flush_callbacks import loaded_callbacks
from lakelet.service.log_lines import log_as_json
from lakelet.service.request_metrics import RequestMetrics
from lakelet.service.rest.app import RestApp
from lakelet.service.running_queries import RunningQueries
from lakelet.service.server_tls import ServerTls
from lakelet.service.service import Service
from lakelet.service.settings import ServiceSettings

_LOG = logging.getLogger("lakelet.service")
_BACKLOG = 2048
_COUNT_SECONDS = 60.0

if TYPE_CHECKING:
    from lakelet.cluster.redis.invalidation_bus import RedisBus
    from lakelet.service.peers.cluster_member import ClusterMember

Told = Callable[[str], None]


def serve(
    settings: ServiceSettings, options: Mapping[str, str], tell: Told, backup_options: Mapping[str, str] | None = None
) -> None:
    """Serve until a signal comes; each store has options of its own.

    `tell` is given what the one who started it has to know: the address, and a first key.
    """
    log_as_json(settings.log_level)
    asyncio.run(_serve(settings, options, tell, backup_options or {}))


async def _serve(
    settings: ServiceSettings, options: Mapping[str, str], tell: Told, backup_options: Mapping[str, str]
) -> None:
    tls = ServerTls.of_settings(settings)
    bus = None if settings.redis is None else _bus(settings.redis)
    lake = connect(settings.warehouse, dict(options), bus=bus)
    audit = AuditLog(settings.audit_file, sql=settings.audit_sql, writes=settings.audit_writes)
    access = _access(settings, lake.location, audit, tell)
    listener = _listener(settings.host, settings.port)
    settings = replace(settings, port=listener.getsockname()[1])
    open_backup = None if settings.backup is None else partial(connect, settings.backup, dict(backup_options))
    callbacks = loaded_callbacks(settings.callbacks)
    service = Service(lake, settings, open_backup=open_backup, callbacks=callbacks)
    queries = RunningQueries(service)
    metrics = RequestMetrics()
    server = _RestServer(RestApp(service, access, queries, metrics), settings, tls)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, server.end)
    loop.add_signal_handler(signal.SIGHUP, _reload, tls, audit)
    member = None if settings.redis is None else _member(service, settings, tls, access.limits)
    counting = asyncio.create_task(_flush_counts(audit))
    rpc: GrpcServer | None = None
    try:
        if member is None:
            await service.start()
        if settings.grpc_port is not None:
            peers = None if member is None else member.access
            rpc = GrpcServer(service, access, tls, queries, peers, metrics)
            port = await rpc.start(settings.host, settings.grpc_port)
            tell(f"gRPC on {_shown(settings.host)}:{port}")
            if member is not None:
                # Its address is known only now; until the service has started calls are refused.
                member.join(port)
                await member.register()
                await service.start()
                await member.keep_index()
        if not access.asks_for_keys:
            _LOG.warning("no API keys are asked for: everybody on this machine may read and write")
        if tls is None and not is_loopback(settings.host):
            _LOG.warning("no TLS: rows and API keys travel over the network as they are (tls_certificate, tls_key)")
        tell(f"REST on {'http' if tls is None else 'https'}://{_shown(settings.host)}:{settings.port}")
        # What was loaded by now stays: nothing of it is garbage, and looking through it again would hold up requests.
        gc.freeze()
        await server.serve(sockets=[listener])
    finally:
        if member is not None:
            await member.leave()
        if rpc is not None:
            await rpc.stop(settings.drain_seconds)
        await service.stop()
        if member is not None:
            await member.close()
        if bus is not None:
            await asyncio.to_thread(bus.close)
        counting.cancel()
        audit.close()
    _LOG.info("stopped: all rows are committed or in logs")


def _member(service: Service, settings: ServiceSettings, tls: ServerTls | None, limits: RateLimits) -> ClusterMember:
    from lakelet.service.peers.cluster_member import ClusterMember  # noqa: PLC0415 - a single node starts without Redis.

    return ClusterMember(service, settings, tls, limits)


def _bus(redis: str) -> RedisBus:
    from lakelet.cluster.redis.invalidation_bus import RedisBus  # noqa: PLC0415 - as above.

    made = RedisBus(redis)
    made.start()
    return made


async def _flush_counts(audit: AuditLog) -> None:
    """Have the audit log tell each minute how much was written."""
    while True:
        await asyncio.sleep(_COUNT_SECONDS)
        audit.flush_counts()


def _reload(tls: ServerTls | None, audit: AuditLog) -> None:
    """Open the files again that may change while the process runs; those that are wrong are told, and the old ones hold."""
    try:
        audit.reopen()
    except LakeletError as error:
        _LOG.error("the audit log stays where it was: %s", error)
    if tls is not None:
        try:
            tls.reload()
        except LakeletError as error:
            _LOG.error("the certificates stay as they were: %s", error)
        else:
            _LOG.info("the certificates were read again")


def _access(settings: ServiceSettings, location: str, audit: AuditLog, tell: Told) -> Access:
    limits = RateLimits(RateLimit(settings.requests_per_second, settings.bytes_per_second))
    if not check_keys_required(settings.host, require_keys=settings.require_keys):
        return Access(None, limits, audit)
    store = KeyStore(keys_path(settings.keys_file, location), when_changed=audit.keys_changed)
    made = first_admin_key(store)
    if made is not None:
        tell(f"the first API key, with all rights; it is shown only now: {made}")
    return Access(store, limits, audit)


def _listener(host: str, port: int) -> socket.socket:
    """A socket that listens: bound before tables are loaded, so that a port that is taken is told at once.

    It names its protocol: connections of a socket that says 0 are not known to asyncio as TCP, keep Nagle's algorithm, and
    hold the second packet of each answer back for as long as the client delays its acknowledgement, 40 ms.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host, port))
        made.listen(_BACKLOG)
    except OSError as error:
        made.close()
        raise InvalidError(f"{host}:{port} cannot be listened at: {error}") from None
    made.setblocking(False)
    return made


def _shown(host: str) -> str:
    return f"[{host}]" if ":" in host else host


class _RestServer(uvicorn.Server):
    """uvicorn on an event loop that others use, too."""

    def __init__(self, app: RestApp, settings: ServiceSettings, tls: ServerTls | None) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                http="httptools",
                ws="none",
                loop="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                date_header=False,
                timeout_graceful_shutdown=settings.drain_seconds,
                timeout_keep_alive=75,
                ssl_context_factory=None if tls is None else lambda *_: tls.context,
            )
        )

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals are handled by the process: they may come before this server starts."""
        yield

    def end(self) -> None:
        """Take no further connections and answer what runs; called again, do not wait for it."""
        self.force_exit = self.should_exit
        self.should_exit = True
