"""The process of `lakelet serve`: REST and gRPC on one event loop, from the first table to the last commit.

    start    lake, served tables, rows of crashed processes ── listen ── ready
    SIGTERM  no further connections ── running requests are answered ── waiting rows are written ── all rows are committed

A second signal stops the wait for requests; rows that were acknowledged are in logs in any case.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

import uvicorn

from lakelet.catalog import connect
from lakelet.errors import InvalidError
from lakelet.service.access.access import Access, check_keys_required
from lakelet.service.access.key_store import KeyStore, first_admin_key, keys_path
from lakelet.service.grpc.grpc_server import GrpcServer
from lakelet.service.ingest.flush_callbacks import loaded_callbacks
from lakelet.service.log_lines import log_as_json
from lakelet.service.rest.app import RestApp
from lakelet.service.service import Service
from lakelet.service.settings import ServiceSettings

_LOG = logging.getLogger("lakelet.service")
_BACKLOG = 2048

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
    lake = connect(settings.warehouse, dict(options))
    access = _access(settings, lake.location, tell)
    listener = _listener(settings.host, settings.port)
    settings = replace(settings, port=listener.getsockname()[1])
    open_backup = None if settings.backup is None else partial(connect, settings.backup, dict(backup_options))
    callbacks = loaded_callbacks(settings.callbacks)
    service = Service(lake, settings, open_backup=open_backup, callbacks=callbacks)
    server = _RestServer(RestApp(service, access), settings)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, server.end)
    await service.start()
    rpc: GrpcServer | None = None
    try:
        if settings.grpc_port is not None:
            rpc = GrpcServer(service, access)
            port = await rpc.start(settings.host, settings.grpc_port)
            tell(f"gRPC on {_shown(settings.host)}:{port}")
        if not access.asks_for_keys:
            _LOG.warning("no API keys are asked for: everybody on this machine may read and write")
        tell(f"REST on http://{_shown(settings.host)}:{settings.port}")
        await server.serve(sockets=[listener])
    finally:
        if rpc is not None:
            await rpc.stop(settings.drain_seconds)
        await service.stop()
    _LOG.info("stopped: all rows are committed or in logs")


def _access(settings: ServiceSettings, location: str, tell: Told) -> Access:
    if not check_keys_required(settings.host, require_keys=settings.require_keys):
        return Access(None)
    store = KeyStore(keys_path(settings.keys_file, location))
    made = first_admin_key(store)
    if made is not None:
        tell(f"the first API key, with all rights; it is shown only now: {made}")
    return Access(store)


def _listener(host: str, port: int) -> socket.socket:
    """A socket that listens: bound before tables are loaded, so that a port that is taken is told at once."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
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

    def __init__(self, app: RestApp, settings: ServiceSettings) -> None:
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
