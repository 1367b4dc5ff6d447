"""`lakelet serve` as a process that is measured: `python lakelet_server.py KIND FOLDER` prints its port and serves until SIGTERM.

lakelet      REST alone
with_grpc    REST and gRPC
parse_only   rows that are decoded and checked are answered, and go nowhere
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from lakelet.cli.deferred_pandas import defer_pandas

# As the command does, before the rest is loaded: pandas alone would be a third of what is measured.
defer_pandas()

from lakelet.service.ingest.ingest import Ingest  # noqa: E402
from lakelet.service.ingest.write_unit import WriteUnit  # noqa: E402
from lakelet.service.server import serve  # noqa: E402
from lakelet.service.settings import ServiceSettings  # noqa: E402
from lakelet.service.values import WriteResult  # noqa: E402


async def _write_nothing(self: Ingest, table: str, unit: WriteUnit) -> WriteResult:
    self.lane(table)
    return unit.result(0)


def _tell(text: str) -> None:
    if text.startswith("REST"):
        print(text.rsplit(":", 1)[1], flush=True)


if __name__ == "__main__":
    kind, folder = sys.argv[1], Path(sys.argv[2])
    if kind == "parse_only":
        Ingest.write = _write_nothing  # type: ignore[method-assign]
    serve(
        ServiceSettings(
            warehouse=str(folder / "lake"),
            wal_folder=str(folder / "wal"),
            port=0,
            grpc_port=0 if kind == "with_grpc" else None,
            log_level="warning",
        ),
        {},
        _tell,
    )
    os._exit(0)
