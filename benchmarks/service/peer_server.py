"""What servers of others share: the table and its log, which are Lakelet's, and uvicorn as Lakelet runs it."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import uvicorn

import lakelet
from benchmarks.service.rows import TABLE


def peer_writer() -> tuple[Any, Any]:
    """The served table of the folder that the command line names, and a writer of it."""
    folder = Path(sys.argv[2])
    table = lakelet.connect(str(folder / "lake")).table(f"default.{TABLE}")
    return table, table.writer(wal_folder=str(folder / "wal"))


def run(app: Any) -> None:
    """Serve until SIGTERM, and print the port first."""
    config = uvicorn.Config(
        app,
        port=0,
        http="httptools",
        ws="none",
        loop="asyncio",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
    )
    _Server(config).run()
    os._exit(0)


class _Server(uvicorn.Server):
    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        print(self.servers[0].sockets[0].getsockname()[1], flush=True)
