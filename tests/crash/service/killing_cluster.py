"""Kills nodes of a cluster, and empties its Redis or ends its MinIO, at random moments of a load, and checks every row."""

import random
import time
from contextlib import ExitStack
from pathlib import Path

from tests.crash.service.killing_service import check_lake, create_tables
from tests.crash.service.service_load import Connections, Ledger, Load, RefusedError, counted
from tests.services.lakelet_server import PATIENCE_SECONDS, LakeletServer, lakelet_server
from tests.services.minio import RestartableMinio
from tests.services.redis import RedisService

_NODES = 3
_THREADS = 2
# Each table is compacted and expired by one node or another all the time, and whatever can be is spread over all nodes, so that
# they are killed in the middle of fragments, too.
_ENVIRONMENT = {"LAKELET_MAINTENANCE_SECONDS": "1", "LAKELET_QUERY_SPREAD_BYTES": "0"}


def kill_nodes_and_check(
    folder: Path, redis: RedisService, *, rows: int, kills: int, seed: int, minio: RestartableMinio | None = None
) -> None:
    """Kill nodes that often while the cluster takes that many rows and maintains its tables all the time; every other time Redis
    is gone for a moment, too, and where the warehouse is in MinIO, that is, the other times."""
    chance = random.Random(seed)
    ledger = Ledger()
    with ExitStack() as stack:
        servers = []
        for number in range(_NODES):
            own = folder / f"node{number}"
            own.mkdir()
            arguments = ["--redis", redis.url, *_options(minio)]
            made = lakelet_server(own, arguments, warehouse=_warehouse(folder, minio), environment=_ENVIRONMENT)
            servers.append(stack.enter_context(made))
            servers[-1].start()
        create_tables(servers[0])
        loads = [
            Load(
                server,
                ledger,
                rows=rows // _NODES,
                threads=_THREADS,
                chance=chance,
                reads=number == 0,
                name=f"n{number}t",
                others=[other for other in servers if other is not server],
            )
            for number, server in enumerate(servers)
        ]
        for load in loads:
            load.start()
            stack.callback(load.end)
        moments = sorted(chance.sample(range(1, sum(load.requests for load in loads) * 9 // 10), kills))
        for number, moment in enumerate(moments):
            ledger.wait_for_requests(moment, lambda: all(load.is_over for load in loads))
            time.sleep(chance.random() / 20)
            killed = chance.randrange(_NODES)
            loads[killed].down()
            servers[killed].kill()
            if number % 2:
                redis.kill()
                redis.start()
            elif minio is not None:
                minio.end()
                time.sleep(1 + chance.random())
                minio.start()
            servers[killed].start()
            loads[killed].up()
        for load in loads:
            load.join()
        assert sum(load.resent for load in loads), "no request was sent again through another node"
        for server in servers:
            _check_counts(server, ledger)
        told = f"{ledger.acknowledged_rows} of {rows} rows were acknowledged"
        assert ledger.acknowledged_rows >= rows * 9 // 10, told
        statuses = [server.stop() for server in servers]
        assert statuses == [0] * _NODES, f"nodes ended with {statuses}"
    for server in servers:
        check_lake(server, ledger, None if minio is None else minio.service.options)


def _warehouse(folder: Path, minio: RestartableMinio | None) -> str:
    return str(folder / "warehouse") if minio is None else minio.service.url("cluster")


def _options(minio: RestartableMinio | None) -> list[str]:
    given = {} if minio is None else minio.service.options
    return [part for name, text in given.items() for part in ("--option", f"{name}={text}")]


def _check_counts(server: LakeletServer, ledger: Ledger) -> None:
    """Every node finds what any has acknowledged, once no answer has a warning."""
    connections = Connections(server)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            found = counted(connections)
            break
        except RefusedError:
            assert time.monotonic() < deadline
            time.sleep(0.2)
    connections.close()
    for table, (rows, ids) in found.items():
        told = f"{table}: {rows} rows of {ids} ids, {ledger.durable[table]} were acknowledged"
        assert rows == ids >= ledger.durable[table], told
