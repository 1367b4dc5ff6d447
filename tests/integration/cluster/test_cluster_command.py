"""`lakelet cluster` on a real Redis."""

import asyncio
import itertools
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lakelet
from lakelet.cli.main import main
from lakelet.cluster.cluster_keys import ClusterKeys
from tests.integration.cluster.members import started
from tests.services.redis import RedisService

_PREFIXES = itertools.count()


@pytest.fixture
def prefix() -> str:
    return f"command-{next(_PREFIXES)}:"


def run(capsys: pytest.CaptureFixture[str], url: str, prefix: str, *arguments: str) -> tuple[int, list[dict[str, Any]]]:
    code = main(["cluster", *arguments, "--redis", url, "--redis-prefix", prefix, "--json"])
    return code, [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_nodes_are_listed_and_decommissioned(
    redis_service: RedisService, prefix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    async def cluster() -> None:
        async with started(redis_service.url, "ab", ClusterKeys(prefix)) as members:
            code, lines = await asyncio.to_thread(run, capsys, redis_service.url, prefix, "nodes")
            assert (code, [row["id"] for row in lines[0]["rows"]]) == (0, ["a", "b"])
            assert lines[0]["rows"][0]["address"] == members["a"].node.address
            code, _ = await asyncio.to_thread(run, capsys, redis_service.url, prefix, "decommission", "b")
            assert code == 0
            _, lines = await asyncio.to_thread(run, capsys, redis_service.url, prefix, "nodes")
            assert lines[0]["rows"][1]["status"] == "active, asked to be draining"
            await members.refresh()
            assert members["b"].node.status == "draining"
            await asyncio.to_thread(run, capsys, redis_service.url, prefix, "decommission", "b", "--undo")
            await members.refresh()
            _, lines = await asyncio.to_thread(run, capsys, redis_service.url, prefix, "nodes")
            assert [row["status"] for row in lines[0]["rows"]] == ["active", "active"]
            assert (await asyncio.to_thread(run, capsys, redis_service.url, prefix, "decommission", "x"))[0] != 0

    asyncio.run(cluster())


def test_keys_are_compared_and_repaired(
    redis_service: RedisService, prefix: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    lake = lakelet.connect(tmp_path / "warehouse")
    lake.create_database("default")
    table = lake.create_table("default.t", [("id", "STRING")], options={"service.status": "active"})
    lake.create_table("default.other", [("id", "STRING")])
    table.write(pa.table({"id": ["a"]}))
    place = ("-w", str(tmp_path / "warehouse"))
    code, lines = run(capsys, redis_service.url, prefix, "repair", "--dry-run", *place)
    assert (code, lines[0]["tables"]) == (1, 1)
    code, lines = run(capsys, redis_service.url, prefix, "repair", *place)
    assert (code, lines[0]["skipped tables"]) == (0, 0)
    assert f"{prefix}tables:list" in {row["key"] for row in lines[1]["rows"]}
    code, lines = run(capsys, redis_service.url, prefix, "repair", "--dry-run", *place)
    assert (code, lines[0]["differences"]) == (0, 0)


@pytest.mark.parametrize(("url", "said"), [("redis://127.0.0.1:1", "not reachable"), ("http://x", "expected a URL")])
def test_a_redis_that_is_none_is_told(url: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cluster", "nodes", "--redis", url]) != 0
    assert said in capsys.readouterr().err
