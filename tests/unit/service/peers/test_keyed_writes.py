"""A request with an idempotency key is written once by all nodes together, or its outcome is unknown and nothing is written."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from lakelet.errors import AlreadyExistsError, LakeletError, OutcomeUnknownError
from lakelet.service.peers import claims_of_others
from lakelet.service.values import WriteResult
from tests.unit.service.peers.nodes import Node, cluster

_BATCH = (("a", {"n": 1}), ("b", {"n": 2}))


async def _rows(node: Node, table: str = "events") -> dict[str, int]:
    found = json.loads(await node.rows(f"SELECT id, count(*) AS n FROM {table} GROUP BY id"))
    return {row["id"]: row["n"] for row in found}


@pytest.mark.parametrize("properties", [{}, {"primary_key": "id", "buckets": "1"}], ids=["append", "primary-key"])
def test_a_key_through_all_nodes_at_once_is_written_once(tmp_path: Path, properties: dict[str, str]) -> None:
    async def run() -> None:
        async with cluster(tmp_path, ("one", "two", "three")) as (_, nodes):
            await nodes[0].create("events", **properties)
            found = await asyncio.gather(*(node.send("k", "events", *_BATCH) for node in nodes for _ in range(3)))
            assert [one.written for one in found] == [2] * 9
            assert sum(not one.repeated for one in found) == 1
            single = await asyncio.gather(*(node.send("s", "events", ("c", {"n": 1})) for node in nodes * 2))
            assert sum(not one.repeated for one in single) == 1
            assert await _rows(nodes[1]) == {"a": 1, "b": 1, "c": 1}

    asyncio.run(run())


def test_another_node_answers_as_the_first_did(tmp_path: Path) -> None:
    async def run() -> None:
        async with cluster(tmp_path) as (_, (one, two)):
            await one.create("events")
            first = await one.send("k", "events", *_BATCH)
            assert await two.send("k", "events", *_BATCH) == WriteResult(first.written, repeated=True)
            await one.shared.flush_table("events")
            assert (await two.send("k", "events", *_BATCH)).repeated
            with pytest.raises(AlreadyExistsError):
                await two.send("k", "events", ("z", {"n": 1}), ("y", {"n": 2}))
            assert await _rows(two) == {"a": 1, "b": 1}

    asyncio.run(run())


@pytest.mark.parametrize("is_dead", [False, True], ids=["unplugged", "dead"])
def test_nothing_is_written_while_a_node_that_may_have_written_is_away(tmp_path: Path, is_dead: bool) -> None:
    async def run() -> None:
        async with cluster(tmp_path) as (_, (one, two)):
            await one.create("events")
            await one.create("users", primary_key="id", buckets="1")
            await two.send("k", "events", *_BATCH)
            mine = await one.send("mine", "events", ("c", {"n": 1}), ("d", {"n": 2}))
            await (two.die() if is_dead else two.unplug())
            for key in ("k", "new"):
                with pytest.raises(OutcomeUnknownError, match="node two"):
                    await one.send(key, "events", *_BATCH)
            # What this node has written itself it knows; rows without a key, or with a primary key, wait for nobody.
            assert (await one.send("mine", "events", ("c", {"n": 1}), ("d", {"n": 2}))).written == mine.written
            await one.write_batch("events", ("e", {"n": 1}))
            assert not (await one.send("k", "users", *_BATCH)).repeated
            await two.come_back()
            assert (await one.send("k", "events", *_BATCH)).repeated
            assert not (await one.send("new", "events", ("f", {"n": 1}), ("g", {"n": 1}))).repeated
            assert await _rows(one) == dict.fromkeys("abcdefg", 1)

    asyncio.run(run())


def test_a_node_that_leaves_hands_its_keys_to_those_that_stay_and_come(tmp_path: Path) -> None:
    async def run() -> None:
        async with cluster(tmp_path, ("one", "two", "three")) as (_, (one, two, three)):
            await one.create("events")
            await three.unplug()
            port = one.town.nodes.pop("three")
            # Joins, takes a request, and leaves before the others take any.
            await one.send("before", "events", ("z", {"n": 1}), ("y", {"n": 1}))
            await two.send("k", "events", *_BATCH)
            await two.leave()
            assert (await one.send("k", "events", *_BATCH)).repeated
            await one.leave()
            assert port.id == "three"
            await three.come_back()
            assert (await three.send("k", "events", *_BATCH)).repeated
            assert (await three.send("before", "events", ("z", {"n": 1}), ("y", {"n": 1}))).repeated
            assert await _rows(three) == dict.fromkeys("abyz", 1)

    asyncio.run(run())


def test_an_owner_that_is_lost_after_its_write_makes_the_outcome_unknown(tmp_path: Path) -> None:
    async def run() -> None:
        async with cluster(tmp_path) as (_, (one, two)):
            await one.create("events")
            await one.write_batch("events", ("z", {"n": 0}))
            id = next(f"id-{n}" for n in range(99) if one.shared.members.owner("events", f"id-{n}").id == "two")
            written, write = asyncio.Event(), two.service.write_owned

            async def never_answer(*given: Any) -> Any:
                await write(*given)
                written.set()
                await asyncio.Event().wait()

            two.service.write_owned = never_answer  # type: ignore[method-assign]
            first = asyncio.create_task(one.send("k", "events", (id, {"n": 1})))
            await written.wait()
            await two.unplug()
            with pytest.raises(OutcomeUnknownError):
                await first
            with pytest.raises(OutcomeUnknownError):
                await one.send("k", "events", (id, {"n": 1}))
            two.service.write_owned = write  # type: ignore[method-assign]
            await two.come_back()
            assert (await one.send("k", "events", (id, {"n": 1}))).repeated
            assert await _rows(one) == {"z": 1, id: 1}

    asyncio.run(run())


def test_a_request_that_is_given_up_is_still_told_to_other_nodes(tmp_path: Path) -> None:
    async def run() -> None:
        async with cluster(tmp_path) as (_, (one, two)):
            await one.create("events")
            await two.send("first", "events", *_BATCH)
            begun, may_go, write = asyncio.Event(), asyncio.Event(), one.service.ingest.write_batch

            async def slow(*given: Any) -> Any:
                begun.set()
                await may_go.wait()
                return await write(*given)

            one.service.ingest.write_batch = slow  # type: ignore[method-assign]
            given_up = asyncio.create_task(one.send("k", "events", ("c", {"n": 1}), ("d", {"n": 1})))
            await begun.wait()
            given_up.cancel()
            again = asyncio.create_task(two.send("k", "events", ("c", {"n": 1}), ("d", {"n": 1})))
            await asyncio.sleep(0)
            may_go.set()
            assert (await again).repeated
            assert await _rows(two) == dict.fromkeys("abcd", 1)

    asyncio.run(run())


def test_a_cluster_that_is_not_settled_writes_no_request_that_may_be_written(tmp_path: Path) -> None:
    async def run() -> None:
        async with cluster(tmp_path, ("one",)) as (town, (one,)):
            await one.create("events")
            await one.send("known", "events", ("c", {"n": 1}), ("d", {"n": 1}))
            town.unsettled = "Redis was not reached"
            with pytest.raises(OutcomeUnknownError, match="Redis was not reached"):
                await one.send("k", "events", *_BATCH)
            assert (await one.send("known", "events", ("c", {"n": 1}), ("d", {"n": 1}))).repeated
            town.unsettled = None
            assert not (await one.send("k", "events", *_BATCH)).repeated

    asyncio.run(run())


@pytest.mark.usefixtures("believing")
@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.deep) for seed in range(2, 20))])
def test_any_order_of_requests_losses_and_changes(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)

    async def run() -> None:
        acknowledged: set[str] = set()
        asked: set[str] = set()

        async def request(node: Node, key: str, is_sure: bool = False) -> None:
            count = 1 if key.endswith("0") else 3
            is_first = key not in asked
            asked.add(key)
            rows = [(f"{key}-{place}", {"n": place}) for place in range(count)]
            try:
                result = await node.send(key, "events", *rows, is_first=is_first)
            except LakeletError:
                if is_sure:
                    raise
                return
            assert result.written == count
            acknowledged.add(key)

        async with cluster(tmp_path, ("one", "two", "three")) as (_, nodes):
            here, away = list(nodes), list[Node]()
            await here[0].create("events")
            for _ in range(40):
                running = [
                    asyncio.create_task(request(chance.choice(here), f"k{chance.randrange(12)}"))
                    for _ in range(chance.randrange(1, 6))
                ]
                for _ in range(chance.randrange(4)):
                    await asyncio.sleep(0)
                match chance.choice(["nothing", "nothing", "cancel", "flush", "unplug", "die", "back", "back"]):
                    case "cancel":
                        chance.choice(running).cancel()
                    case "flush":
                        await chance.choice(here).shared.flush_table("events")
                    case "unplug" | "die" as way if len(here) > 1:
                        away.append(here.pop(chance.randrange(len(here))))
                        await (away[-1].unplug() if way == "unplug" else away[-1].die())
                    case "back" if away:
                        here.append(away.pop())
                        await here[-1].come_back()
                await asyncio.gather(*running, return_exceptions=True)
                for task in running:
                    if not task.cancelled() and (error := task.exception()) is not None:
                        raise error
            for node in away:
                await node.come_back()
            left = chance.choice(nodes)
            _check(await _stored(nodes), acknowledged)
            await left.leave()
            stay = [node for node in nodes if node is not left]
            for key in sorted(asked):
                await request(chance.choice(stay), key, is_sure=True)
            assert acknowledged == asked
            _check(await _stored(stay), acknowledged)

    asyncio.run(run())


@pytest.fixture
def believing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nodes that have run for long enough to believe clients."""
    monkeypatch.setattr(claims_of_others, "_LATE_SECONDS", 0.0)


@pytest.mark.usefixtures("believing")
@pytest.mark.parametrize("way", ["unplug", "die"])
def test_a_request_that_was_never_sent_before_waits_for_no_dead_node(tmp_path: Path, way: str) -> None:
    async def run() -> None:
        async with cluster(tmp_path, ("one", "two", "three")) as (_, (one, two, three)):
            await one.create("events")
            await (three.unplug() if way == "unplug" else three.die())
            assert not (await one.send("k", "events", *_BATCH, is_first=True)).repeated
            assert (await two.send("k", "events", *_BATCH)).repeated
            # Nobody can tell of one that may have been sent before.
            with pytest.raises(OutcomeUnknownError, match="node three"):
                await one.send("again", "events", *_BATCH)

    asyncio.run(run())


@pytest.mark.usefixtures("believing")
def test_a_request_that_comes_after_it_was_sent_again_is_not_the_first(tmp_path: Path) -> None:
    """Its client gave it up while it was on its way; the node that wrote it has died."""

    async def run() -> None:
        async with cluster(tmp_path) as (_, (one, two)):
            await one.create("events")
            await two.send("k", "events", *_BATCH)
            await two.die()
            with pytest.raises(OutcomeUnknownError, match="node two"):
                await one.send("k", "events", *_BATCH, is_first=True)

    asyncio.run(run())


def test_a_node_that_has_just_started_believes_no_client(tmp_path: Path) -> None:
    """What it was asked about before it was killed, it does not know."""

    async def run() -> None:
        async with cluster(tmp_path) as (_, (one, two)):
            await one.create("events")
            await two.die()
            with pytest.raises(OutcomeUnknownError, match="node two"):
                await one.send("k", "events", *_BATCH, is_first=True)

    asyncio.run(run())


async def _stored(nodes: Sequence[Node]) -> dict[str, int]:
    """How often each id is in the table, once all nodes have committed."""
    for node in nodes:
        await node.shared.flush_table("events")
    return Counter(nodes[0].service.lake.table("default.events").scan().to_arrow().column("id").to_pylist())


def _check(found: dict[str, int], acknowledged: set[str]) -> None:
    """No row is there twice, and all of what was acknowledged."""
    assert set(found.values()) <= {1}, f"twice: {[id for id, count in found.items() if count > 1]}"
    for key in acknowledged:
        places = range(1 if key.endswith("0") else 3)
        assert all(f"{key}-{place}" in found for place in places), f"{key} was acknowledged and is lost"
