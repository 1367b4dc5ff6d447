"""Nodes that do not reach one another, or whose Redis fails: no row is lost or doubled, and a short answer says so."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import redis as redis_library

from tests.services.lakelet_server import PATIENCE_SECONDS, LakeletServer, lakelet_server
from tests.services.redis import RedisService
from tests.services.server import free_ports
from tests.services.tcp_proxy import TcpProxy, tcp_proxy

_MORE_FAULTS = ("slow", "silent", "read-only")


@dataclass
class Split:
    """Two nodes that reach each other, and Redis, by proxies."""

    nodes: list[LakeletServer]
    peers: list[TcpProxy]
    redis: TcpProxy
    server: RedisService

    def cut(self) -> None:
        for one in self.peers:
            one.cut()

    def heal(self) -> None:
        for one in self.peers:
            one.heal()


@pytest.fixture
def split(tmp_path: Path, redis_service: RedisService) -> Iterator[Split]:
    with ExitStack() as stack:
        (redis_port,) = free_ports(1)
        redis = stack.enter_context(tcp_proxy(redis_port, redis_service.port))
        nodes, peers = [], []
        for name in ("one", "two"):
            (tmp_path / name).mkdir()
            (port,) = free_ports(1)
            arguments = ["--redis", f"redis://{redis.address}/0", "--node-address", f"127.0.0.1:{port}"]
            server = lakelet_server(tmp_path / name, arguments, warehouse=str(tmp_path / "lake"))
            nodes.append(stack.enter_context(server))
            own = int(nodes[-1].grpc_address.rpartition(":")[2])
            peers.append(stack.enter_context(tcp_proxy(port, own)))
        for node in nodes:
            node.start()
        _sent(nodes[0], "/v1/tables", {"table_name": "events", "config": {"flush_interval_seconds": 3600}})
        keyed = {"flush_interval_seconds": 3600, "properties": {"primary_key": "id"}}
        _sent(nodes[0], "/v1/tables", {"table_name": "users", "config": keyed})
        yield Split(nodes, peers, redis, redis_service)


def _sent(server: LakeletServer, path: str, body: Any, key: str = "") -> dict[str, Any]:
    headers = {"Content-Type": "application/json", **({"Idempotency-Key": key} if key else {})}
    request = urllib.request.Request(server.url + path, json.dumps(body).encode(), headers, method="POST")
    with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS) as answer:
        found: dict[str, Any] = json.load(answer)
    return found


def _refused(server: LakeletServer, path: str, body: Any, key: str = "") -> str:
    with pytest.raises(urllib.error.HTTPError) as caught:
        _sent(server, path, body, key)
    assert caught.value.code == 503
    code: str = json.load(caught.value)["code"]
    return code


def _rows(*ids: str, n: int = 1) -> list[dict[str, Any]]:
    return [{"id": id, "timestamp": "2026-01-31T10:00:00Z", "payload": {"n": n}} for id in ids]


def _ids(server: LakeletServer, table: str = "events") -> tuple[list[str], list[str]]:
    found = _sent(server, "/v1/query", {"sql": f"SELECT id FROM {table} ORDER BY id"})
    return [row["id"] for row in json.loads(found["result_json"])], found.get("warnings", [])


def _whole(server: LakeletServer, table: str = "events") -> list[str]:
    """What a node finds once no answer has a warning."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while (found := _ids(server, table))[1]:
        assert time.monotonic() < deadline, found[1]
        time.sleep(0.1)
    return found[0]


def test_nodes_that_do_not_reach_each_other_say_so_and_lose_nothing(split: Split) -> None:
    one, two = split.nodes
    _sent(one, "/v1/data/batch?table=events", _rows("a"))
    _sent(two, "/v1/data/batch?table=events", _rows("b"))
    assert _whole(one) == _whole(two) == ["a", "b"]
    split.cut()
    for server, own in ((one, "c"), (two, "d")):
        _sent(server, "/v1/data/batch?table=events", _rows(own))
        ids, warnings = _ids(server)
        assert own in ids
        assert len(ids) == len(set(ids))
        assert "does not answer" in warnings[0]
        assert _refused(server, "/v1/data/batch?table=events", _rows("x"), "key") == "outcome-unknown"
        _sent(server, "/v1/data", {"table": "users", **_rows("u", n=1 if own == "c" else 2)[0]})
    split.heal()
    assert _whole(one) == _whole(two) == ["a", "b", "c", "d"]
    assert _whole(one, "users") == ["u"]
    # The key was left free on both sides.
    _sent(one, "/v1/data/batch?table=events", _rows("x"), "key")
    assert _sent(two, "/v1/data/batch?table=events", _rows("x"), "key")["repeated"]
    assert [node.stop() for node in split.nodes] == [0, 0]


@pytest.mark.parametrize("fault", ["full", *(pytest.param(one, marks=pytest.mark.deep) for one in _MORE_FAULTS)])
def test_rows_are_written_and_found_while_redis_fails(split: Split, fault: str) -> None:
    one, two = split.nodes
    server = redis_library.Redis.from_url(split.server.url)
    _sent(one, "/v1/data/batch?table=events", _rows("a"))
    if fault == "slow":
        split.redis.delay_seconds = 1.0
    elif fault == "silent":
        split.redis.delay_seconds = 1000.0
    else:
        server.config_set(*(("maxmemory", 1) if fault == "full" else ("min-replicas-to-write", 1)))
    for number, node in enumerate((one, two)):
        _sent(node, "/v1/data/batch?table=events", _rows(f"b{number}"))
        _sent(node, "/v1/data", {"table": "events", **_rows(f"c{number}")[0]})
        _sent(node, "/v1/data/batch?table=events", _rows("d"), "key")
    for node in (one, two):
        assert _whole(node) == ["a", "b0", "b1", "c0", "c1", "d"]
    # A node that dies meanwhile is missed, and is back with its rows.
    two.kill()
    _, warnings = _ids(one)
    assert warnings
    split.redis.delay_seconds = 0.0
    server.config_set("maxmemory", 0)
    server.config_set("min-replicas-to-write", 0)
    two.start()
    assert _whole(one) == _whole(two) == ["a", "b0", "b1", "c0", "c1", "d"]
    server.close()
    assert [node.stop() for node in split.nodes] == [0, 0]
