"""Records go to the node that owns them, once, and of a key the later write wins whichever nodes took part."""

from __future__ import annotations

import asyncio
import json
import random
from pathlib import Path
from typing import Any

import pytest

from lakelet.clock import SystemClock
from lakelet.cluster.hash_ring import HashRing
from lakelet.errors import InvalidError, NotFoundError, OutcomeUnknownError
from lakelet.service.access.caller import ANYBODY
from lakelet.service.values import RowRequest
from tests.unit.service.peers.nodes import Node, cluster


class SkewedClock(SystemClock):
    """The time of day, some milliseconds off."""

    def __init__(self, off_ms: int) -> None:
        super().__init__()
        self._off = off_ms

    def now_ms(self) -> int:
        return super().now_ms() + self._off


def _buffered(node: Node, table: str) -> int:
    opened = node.service.tables.try_open(table)
    return 0 if opened is None else opened.buffered_records


def test_a_record_is_written_by_its_owner(tmp_path: Path) -> None:
    async def run() -> None:
        async with cluster(tmp_path) as (_, (one, two)):
            await one.create("users")
            ids = [f"id-{number}" for number in range(40)]
            await asyncio.gather(
                *(one.write("users", id, big=2**60 + 1, f=0.1, s="é", deep=[{"a": None}]) for id in ids)
            )
            ring = HashRing.of(["one", "two"])
            owned = [ring.owner("users", id) for id in ids]
            assert 0 < owned.count("two") < 40
            assert [_buffered(one, "users"), _buffered(two, "users")] == [owned.count("one"), owned.count("two")]
            sql = "SELECT DISTINCT payload.big AS big, payload.f AS f, payload.s AS s FROM users"
            assert json.loads(await one.rows(sql)) == [{"big": 2**60 + 1, "f": 0.1, "s": "é"}]
            assert json.loads(await two.rows("SELECT count(DISTINCT id) AS c FROM users")) == [{"c": 40}]

    asyncio.run(run())


def test_refusals_of_the_owner_are_those_of_the_service(tmp_path: Path) -> None:
    async def run() -> None:
        async with cluster(tmp_path) as (_, (one, two)):
            await one.create("users")
            ids = [f"id-{number}" for number in range(20)]
            await asyncio.gather(*(one.write("users", id, n=1) for id in ids))
            for node in (one, two):
                node.service.tables.open("users").table.set_options({"service.status": "archived"})
            for id in ids:
                with pytest.raises(InvalidError, match="archived"):
                    await one.write("users", id, n=1)
            with pytest.raises(NotFoundError):
                await one.write("nowhere", "a", n=1)

    asyncio.run(run())


def test_records_of_a_node_that_is_gone_are_written_where_they_come(tmp_path: Path) -> None:
    async def run() -> None:
        async with cluster(tmp_path) as (_, (one, two)):
            await one.create("users")
            await two.server.stop(0)
            await asyncio.gather(*(one.write("users", f"id-{number}", n=1) for number in range(10)))
            assert _buffered(one, "users") == 10

    asyncio.run(run())


def test_an_answer_that_never_comes_is_told_and_nothing_is_written_here(tmp_path: Path) -> None:
    async def run() -> None:
        async with cluster(tmp_path) as (_, (one, two)):
            await one.create("users")
            ring = HashRing.of(["one", "two"])
            id = next(f"id-{number}" for number in range(40) if ring.owner("users", f"id-{number}") == "two")
            await one.write("users", id, n=1)

            begun = asyncio.Event()

            async def never_answer(*_: Any) -> Any:
                begun.set()
                await asyncio.Event().wait()

            two.service.write_owned = never_answer  # type: ignore[method-assign]
            write = asyncio.create_task(one.write("users", id, n=2))
            await begun.wait()
            await two.server.stop(0)
            with pytest.raises(OutcomeUnknownError, match="node two"):
                await write
            assert _buffered(one, "users") == 0

    asyncio.run(run())


def test_a_forward_whose_connections_are_closed_is_answered(tmp_path: Path) -> None:
    async def run() -> None:
        async with cluster(tmp_path) as (_, (one, two)):
            await one.create("users")
            ring = HashRing.of(["one", "two"])
            id = next(f"id-{number}" for number in range(40) if ring.owner("users", f"id-{number}") == "two")
            begun = asyncio.Event()

            async def never_answer(*_: Any) -> Any:
                begun.set()
                await asyncio.Event().wait()

            two.service.write_owned = never_answer  # type: ignore[method-assign]
            # The second waits for the call of the first.
            writes = [asyncio.create_task(one.write("users", id, n=number)) for number in range(2)]
            await begun.wait()
            await one.shared.peers.close()
            found = await asyncio.wait_for(asyncio.gather(*writes, return_exceptions=True), 60)
            assert all(isinstance(error, OutcomeUnknownError) for error in found), found

    asyncio.run(run())


async def _write_again_until_known(node: Node, id: str, n: int) -> None:
    """As a client does that is told `outcome-unknown`, because the connection was closed under its request."""
    for _ in range(100):
        try:
            await node.write("users", id, n=n)
        except OutcomeUnknownError:
            continue
        return
    raise AssertionError("the outcome stays unknown")


@pytest.mark.parametrize("joins", [False, True])
def test_a_write_after_the_death_of_a_node_wins_against_its_last_ones(tmp_path: Path, joins: bool) -> None:
    """The clock of the dead node went ahead, and nobody has heard of its last numbers."""
    clocks = {"one": SkewedClock(0), "two": SkewedClock(3_600_000)}

    async def run() -> None:
        async with cluster(tmp_path, clocks=clocks) as (_, (one, two)):
            await one.create("users", primary_key="id", buckets="1")
            ring = HashRing.of(["one", "two"])
            id = next(f"id-{number}" for number in range(40) if ring.owner("users", f"id-{number}") == "two")
            # As they do every few seconds, and when a node joins.
            await (one.shared.look_at_nodes() if joins else one.shared.peers.exchange_clocks())
            await asyncio.sleep(0.05)
            await two.write("users", id, n=1)
            await two.server.stop(0)
            await _write_again_until_known(one, id, n=2)
            await two.come_back()
            assert json.loads(await one.rows("SELECT payload.n AS n FROM users")) == [{"n": 2}]

    asyncio.run(run())


@pytest.mark.parametrize("seed", range(3))
def test_the_later_write_of_a_key_wins_with_clocks_apart(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    names = ("one", "two", "three")
    clocks = {"one": SkewedClock(0), "two": SkewedClock(3_600_000), "three": SkewedClock(-86_400_000)}

    async def run() -> None:
        expected: dict[str, int] = {}
        async with cluster(tmp_path, names, clocks=clocks) as (_, nodes):
            await nodes[0].create("users", primary_key="id", buckets="1")
            for number in range(60):
                node, ids = chance.choice(nodes), [f"id-{one}" for one in chance.sample(range(5), 2)]
                match chance.choice(["one", "one", "batch", "delete", "flush", "read"]):
                    case "one":
                        await node.write("users", ids[0], n=number)
                        expected[ids[0]] = number
                    case "batch":
                        await node.write_batch("users", *((id, {"n": number}) for id in ids))
                        expected.update(dict.fromkeys(ids, number))
                    case "delete":
                        found = await node.service.delete_rows(RowRequest("users", ids[0]), ANYBODY)
                        assert found == (expected.pop(ids[0], None) is not None)
                    case "flush":
                        await node.shared.flush_table("users")
                    case _:
                        got = json.loads(await node.rows("SELECT id, payload.n AS n FROM users"))
                        assert {row["id"]: row["n"] for row in got} == expected
        stored = nodes[0].service.lake.table("default.users").scan().to_arrow().to_pylist()
        assert {row["id"]: row["payload"]["n"] for row in stored} == expected

    asyncio.run(run())
