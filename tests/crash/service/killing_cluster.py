"""Kills nodes of a cluster, and empties its Redis, at random moments of one load, and checks every row at the end."""

import random
import time
from contextlib import ExitStack
from pathlib import Path

from tests.crash.service.killing_service import check_lake, create_tables
from tests.crash.service.service_load import Connections, Ledger, Load, RefusedError, counted
from tests.services.lakelet_server import PATIENCE_SECONDS, LakeletServer, lakelet_server
from tests.services.redis import RedisService

_NODES = 3
_THREADS = 2
# Whatever can be is spread over all nodes, so that they are killed in the middle of fragments, too.
_SPREAD = {"LAKELET_QUERY_SPREAD_BYTES": "0"}


def kill_nodes_and_check(folder: Path, redis: RedisService, *, rows: int, kills: int, seed: int) -> None:
    """Kill nodes that often while the cluster takes that many rows; every other time Redis is gone for a moment, too."""
    chance = random.Random(seed)
    ledger = Ledger()
    with ExitStack() as stack:
        servers = []
        for number in range(_NODES):
            own = folder / f"node{number}"
            own.mkdir()
            arguments = ["--redis", redis.url]
            made = lakelet_server(own, arguments, warehouse=str(folder / "warehouse"), environment=_SPREAD)
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
            servers[killed].start()
            loads[killed].up()
        for load in loads:
            load.join()
        for server in servers:
            _check_counts(server, ledger)
        told = f"{ledger.acknowledged_rows} of {rows} rows were acknowledged"
        assert ledger.acknowledged_rows >= rows * 9 // 10, told
        statuses = [server.stop() for server in servers]
        assert statuses == [0] * _NODES, f"nodes ended with {statuses}"
    for server in servers:
        check_lake(server, ledger)


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
