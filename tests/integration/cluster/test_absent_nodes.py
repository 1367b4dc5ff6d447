"""A node that was killed with rows is told by others, also when Redis has forgotten it, until its rows are recovered."""

import json
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from lakelet.cli.main import main
from tests.services.lakelet_server import LakeletServer, lakelet_server
from tests.services.redis import RedisService

RECORD = {"table": "users", "id": "a", "timestamp": "2026-01-31T10:00:00Z", "payload": {"n": 1}}


def _sent(server: LakeletServer, path: str, body: Any) -> tuple[Any, str | None]:
    request = urllib.request.Request(
        server.url + path, json.dumps(body).encode(), {"Content-Type": "application/json"}, method="POST"
    )
    with urllib.request.urlopen(request) as answer:
        return json.load(answer), answer.headers.get("Lakelet-Warning")


def _ids(server: LakeletServer) -> tuple[list[str], str | None]:
    found, warning = _sent(server, "/v1/query", {"sql": "SELECT id FROM users"})
    return [row["id"] for row in json.loads(found["result_json"])], warning


@pytest.fixture
def nodes(tmp_path: Path, redis_service: RedisService) -> Iterator[list[LakeletServer]]:
    with ExitStack() as stack:
        made = []
        for name in ("one", "two"):
            (tmp_path / name).mkdir()
            server = lakelet_server(tmp_path / name, ["--redis", redis_service.url], warehouse=str(tmp_path / "lake"))
            made.append(stack.enter_context(server))
        yield made


def test_rows_of_a_killed_node_are_told_until_they_are_recovered(
    nodes: list[LakeletServer], redis_service: RedisService, capsys: pytest.CaptureFixture[str]
) -> None:
    one, two = nodes
    one.start()
    _sent(one, "/v1/tables", {"table_name": "users", "config": {"flush_interval_seconds": 3600}})
    _sent(one, "/v1/data", RECORD)
    one.kill()
    redis_service.kill()
    redis_service.start()
    two.start()
    ids, warning = _ids(two)
    assert ids == []
    assert warning is not None
    assert "ended without committing" in warning
    place = ["-w", one.warehouse]
    assert main(["cluster", "nodes", "--redis", redis_service.url, *place, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    (absent,) = [row["id"] for row in rows if row["status"] == "absent, with rows"]
    live = next(row["id"] for row in rows if row["status"] == "active")
    assert main(["cluster", "forget", live, "--redis", redis_service.url, *place]) != 0
    assert "is live" in capsys.readouterr().err
    assert main(["recover", "users", *place, "--wal-folder", one.wal_folder]) == 0
    assert f"all rows of node {absent} are committed" in capsys.readouterr().out
    while (found := _ids(two))[1] is not None:
        pass
    assert found[0] == ["a"]
    assert main(["cluster", "forget", absent, "--redis", redis_service.url, *place]) != 0
    assert "is not known" in capsys.readouterr().err
    # Who leaves is not missed.
    one.start()
    assert one.stop() == 0
    assert _ids(two) == (["a"], None)
    assert two.stop() == 0
    assert list(Path(one.warehouse, "service", "nodes").iterdir()) == []
