"""A node that is killed, and whose disk is lost: what it has acknowledged is on another one, with `wal_replicas` = 1."""

import json
import shutil
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from lakelet.cli.main import main
from tests.services.lakelet_server import LakeletServer, lakelet_server
from tests.services.redis import RedisService

_PATIENCE_SECONDS = 900


def _sent(server: LakeletServer, path: str, body: Any) -> tuple[Any, str | None]:
    request = urllib.request.Request(
        server.url + path, json.dumps(body).encode(), {"Content-Type": "application/json"}, method="POST"
    )
    with urllib.request.urlopen(request) as answer:
        return json.load(answer), answer.headers.get("Lakelet-Warning")


def _ids(server: LakeletServer) -> tuple[list[str], str | None]:
    found, warning = _sent(server, "/v1/query", {"sql": "SELECT id FROM events ORDER BY id"})
    return [row["id"] for row in json.loads(found["result_json"])], warning


def _write(server: LakeletServer, *ids: str) -> None:
    rows = [{"id": id, "timestamp": "2026-01-31T10:00:00Z", "payload": {"n": 1}} for id in ids]
    _sent(server, "/v1/data/batch?table=events", rows)


@pytest.fixture
def nodes(tmp_path: Path, redis_service: RedisService) -> Iterator[list[LakeletServer]]:
    arguments = ["--redis", redis_service.url, "--wal-replicas", "1"]
    with ExitStack() as stack:
        made = []
        for name in ("one", "two"):
            (tmp_path / name).mkdir()
            server = lakelet_server(tmp_path / name, arguments, warehouse=str(tmp_path / "lake"), zone="Asia/Kolkata")
            made.append(stack.enter_context(server))
        for server in made:
            server.start()
        _sent(made[0], "/v1/tables", {"table_name": "events", "config": {"flush_interval_seconds": 3600}})
        yield made


def _refused(server: LakeletServer, id: str) -> float | None:
    """Write a row; after how many seconds to come back, where it is refused."""
    try:
        _write(server, id)
    except urllib.error.HTTPError as error:
        return float(error.headers["Retry-After"])
    return None


def _copies(server: LakeletServer) -> list[Path]:
    return [path.parent for path in Path(server.wal_folder).glob("replicas/*/*/COPY")]


def test_rows_of_a_lost_disk_are_recovered_by_hand_from_the_copy(
    nodes: list[LakeletServer], capsys: pytest.CaptureFixture[str]
) -> None:
    one, two = nodes
    ids = [f"e{number:02}" for number in range(20)]
    for first in range(0, 20, 4):
        _write(one, *ids[first : first + 4])
    one.kill()
    shutil.rmtree(one.wal_folder)
    (copy,) = _copies(two)
    place = ["-w", one.warehouse, "--wal-folder", str(copy)]
    # The node that holds it does it itself, when it takes the other one for dead.
    assert main(["recover", "events", *place]) != 0
    assert "is in use by another writer" in capsys.readouterr().err
    two.kill()
    assert main(["recover", "events", *place]) == 0
    assert "all rows of node" in capsys.readouterr().out
    two.start()
    assert _ids(two)[0] == ids
    assert main(["recover", "events", *place]) == 0
    assert _ids(two)[0] == ids


@pytest.mark.deep
def test_the_holder_of_the_copy_commits_the_rows_of_a_node_that_is_gone(nodes: list[LakeletServer]) -> None:
    one, two = nodes
    ids = [f"e{number:02}" for number in range(20)]
    for first in range(0, 20, 4):
        _write(one, *ids[first : first + 4])
    one.kill()
    shutil.rmtree(one.wal_folder)
    # Nobody else could have a copy of the next rows.
    with pytest.raises(urllib.error.HTTPError) as refused:
        _write(two, "x")
    assert refused.value.code == 503
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while (found := _ids(two))[1] is not None:
        assert time.monotonic() < deadline
        time.sleep(1)
    assert [id for id in found[0] if id != "x"] == ids
    # In its place a node with another id.
    one.start()
    # Until it is found.
    while (wait := _refused(two, "y")) is not None and time.monotonic() < deadline:
        time.sleep(wait)
    assert [id for id in _ids(one)[0] if id != "x"] == [*ids, "y"]
