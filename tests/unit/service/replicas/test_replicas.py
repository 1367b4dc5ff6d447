"""Logs on two nodes: what is acknowledged survives the disk of one of them, and is there once."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path

import pytest

from lakelet.cluster.held_copy import held_copies
from lakelet.service.replicas import adoption
from tests.unit.realtime.written_table import kill
from tests.unit.service.peers.nodes import Node, cluster

pytestmark = pytest.mark.usefixtures("quick")
NAMES = ("one", "two", "three")


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A node that has sent something a moment ago may be gone."""
    monkeypatch.setattr(adoption, "_SILENT_SECONDS", 0.0)


async def ids(node: Node, table: str = "users") -> list[str]:
    return [row["id"] for row in json.loads(await node.rows(f"SELECT id FROM {table} ORDER BY id"))]


def copies(folder: Path, name: str) -> list[Path]:
    return [Path(one.root) for one in held_copies(str(folder / f"wal-{name}" / "replicas"))]


async def lose(node: Node, folder: Path) -> None:
    """End a node as if its process were killed, and its disk gone."""
    await node.die()
    for opened in node.service.tables.all():
        if opened.writer is not None:
            await node.service.in_thread(kill, opened.writer)
    shutil.rmtree(folder / f"wal-{node.name}")


async def look(nodes: list[Node]) -> None:
    """What nodes do every few seconds, often enough for all of it to happen."""
    for _ in range(3):
        for node in nodes:
            await node.service.in_thread(node.shared.replicas.look)


def test_rows_of_a_lost_disk_are_there_once(tmp_path: Path) -> None:
    async def run() -> None:
        async with cluster(tmp_path, NAMES, wal_replicas=1) as (_, nodes):
            one, two, three = nodes
            await one.create("users")
            await one.write_batch("users", ("z", {"n": 0}))
            await one.shared.flush_table("users")
            await one.write_batch("users", ("a", {"n": 1}), ("b", {"n": 2}))
            await one.write_batch("users", ("c", {"n": 3}))
            assert sum(len(copies(tmp_path, name)) for name in NAMES) == 1
            await lose(one, tmp_path)
            assert await ids(two) == ["z"]
            await look([two, three])
            assert await ids(two) == ["a", "b", "c", "z"]
            assert await ids(three) == ["a", "b", "c", "z"]
            assert not any(copies(tmp_path, name) for name in NAMES)
            assert three.shared.absent is not None
            three.shared.absent.look()
            assert three.shared.absent.problems() == ()

    asyncio.run(run())
