"""Logs on two nodes: what is acknowledged survives the disk of one of them, and is there once."""

from __future__ import annotations

import asyncio
import json
import shutil
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from lakelet.cluster.held_copy import held_copies
from lakelet.cluster.replica_records import ReplicaRecords
from lakelet.errors import OutcomeUnknownError, UnavailableError
from lakelet.service.access.caller import ANYBODY
from lakelet.service.replicas import adoption
from lakelet.service.values import DropTableRequest
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


def test_a_node_alone_takes_no_rows(tmp_path: Path) -> None:
    async def run() -> None:
        async with cluster(tmp_path, ("one",), wal_replicas=1) as (_, (one,)):
            await one.create("users")
            with pytest.raises(UnavailableError, match="no other node") as refused:
                await one.write_batch("users", ("a", {"n": 1}))
            assert refused.value.nothing_done
            health = await one.service.health()
            assert health.status == "degraded"
            assert "no other node" in health.details["replica.users"]

    asyncio.run(run())


def test_a_request_that_a_lost_node_has_written_is_not_written_again(tmp_path: Path) -> None:
    async def run() -> None:
        async with cluster(tmp_path, NAMES, wal_replicas=1) as (_, nodes):
            one, two, three = nodes
            await one.create("users")
            rows = (("a", {"n": 1}), ("b", {"n": 2}))
            await one.send("k1", "users", *rows)
            await one.shared.flush_table("users")
            # In a log that is committed and dropped, and in one that is not.
            await one.send("k2", "users", ("c", {"n": 3}), ("d", {"n": 4}))
            await lose(one, tmp_path)
            with pytest.raises(OutcomeUnknownError):
                await three.send("k2", "users", ("c", {"n": 3}), ("d", {"n": 4}))
            await look([two, three])
            assert three.shared.absent is not None
            three.shared.absent.look()
            assert (await three.send("k2", "users", ("c", {"n": 3}), ("d", {"n": 4}))).repeated
            assert (await two.send("k1", "users", *rows)).repeated
            assert await ids(two) == ["a", "b", "c", "d"]

    asyncio.run(run())


def test_a_request_is_not_written_while_a_copy_that_may_have_it_is_adopted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise UnavailableError("no space")

    async def run() -> None:
        async with cluster(tmp_path, ("one", "two"), wal_replicas=1) as (_, (one, two)):
            await one.create("users")
            await one.send("k1", "users", ("a", {"n": 1}), ("b", {"n": 2}))
            ((copy, _),) = two.shared.replicas.held.all()
            with monkeypatch.context() as patch:
                patch.setattr(adoption, "recover_table", broken)
                with pytest.raises(UnavailableError):
                    await two.service.in_thread(two.shared.replicas.adoption.adopt, copy)
            with pytest.raises(OutcomeUnknownError, match="being committed"):
                await two.send("k2", "users", ("c", {"n": 3}), ("d", {"n": 4}))
            # The other node is alive, and finds that it was taken for dead.
            with pytest.raises((OutcomeUnknownError, UnavailableError)):
                await one.write_batch("users", ("e", {"n": 5}))
            await two.service.in_thread(two.shared.replicas.adoption.resume)
            await two.send("k2", "users", ("c", {"n": 3}), ("d", {"n": 4}))
            await one.write_batch("users", ("f", {"n": 6}))
            assert [id for id in await ids(one) if id != "e"] == ["a", "b", "c", "d", "f"]
            await one.shared.flush_table("users")
            assert [id for id in await ids(two) if id != "e"] == ["a", "b", "c", "d", "f"]

    asyncio.run(run())


def test_requests_are_written_again_once_a_node_is_back_whose_copy_could_not_be_claimed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        async with cluster(tmp_path, ("one", "two"), wal_replicas=1) as (_, (one, two)):
            await one.create("users")
            await one.send("k1", "users", ("a", {"n": 1}), ("b", {"n": 2}))
            ((copy, _),) = two.shared.replicas.held.all()
            with monkeypatch.context() as patch:
                patch.setattr(ReplicaRecords, "adopt", silent)
                with pytest.raises(UnavailableError):
                    await two.service.in_thread(two.shared.replicas.adoption.adopt, copy)
            with pytest.raises(OutcomeUnknownError, match="being committed"):
                await two.send("k2", "users", ("c", {"n": 3}), ("d", {"n": 4}))
            await look([two])
            await two.send("k2", "users", ("c", {"n": 3}), ("d", {"n": 4}))
            assert await ids(one) == ["a", "b", "c", "d"]

    asyncio.run(run())


def test_one_adoption_that_ends_does_not_end_another_of_the_same_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        async with cluster(tmp_path, ("one", "two"), wal_replicas=1) as (_, (one, two)):
            await one.create("users")
            await one.send("k1", "users", ("a", {"n": 1}), ("b", {"n": 2}))
            held, adopting = two.shared.replicas.held, two.shared.replicas.adoption
            ((copy, _),) = held.all()
            with monkeypatch.context() as patch:
                patch.setattr(adoption, "recover_table", silent)
                with pytest.raises(UnavailableError):
                    await two.service.in_thread(adopting.adopt, copy)
            with monkeypatch.context() as patch:
                # The event loop asks, which waits for no store.
                patch.setattr(adoption, "table_identity", silent)
                with pytest.raises(OutcomeUnknownError, match="being committed"):
                    adopting.check_not_adopting(two.service.tables.open("users"))
            # That of a node which has left counts no longer.
            held.open("gone", "1-a", copy.identity, copy.table)
            (other,) = [one for one, _ in held.all() if one.origin == "gone"]
            await two.service.in_thread(adopting.adopt, other)
            with pytest.raises(OutcomeUnknownError, match="being committed"):
                await two.send("k2", "users", ("c", {"n": 3}), ("d", {"n": 4}))

    asyncio.run(run())


def test_a_table_that_was_just_dropped_holds_up_no_adoption_of_others(tmp_path: Path) -> None:
    async def run() -> None:
        async with cluster(tmp_path, ("one", "two"), wal_replicas=1) as (_, (one, two)):
            await two.create("gone")
            await one.create("users")
            await one.send("k1", "users", ("a", {"n": 1}), ("b", {"n": 2}))
            ((copy, _),) = two.shared.replicas.held.all()
            two.service.lake.drop_table("default.gone")
            await two.service.in_thread(two.shared.replicas.adoption.adopt, copy)
            assert two.shared.replicas.adoption.adopted_rows == 2

    asyncio.run(run())


def test_rows_of_a_table_that_was_created_again_are_found_in_its_copy(tmp_path: Path) -> None:
    async def run() -> None:
        async with cluster(tmp_path, ("one", "two"), wal_replicas=1) as (_, (one, two)):
            await one.create("users")
            opened = one.service.tables.open("users")
            schema = opened.schema
            lake = one.service.lake
            lake.drop_table("default.users")
            columns = [(field.name, str(field.type)) for field in schema.fields]
            lake.create_table(
                "default.users", columns, partitioned_by=list(schema.partition_keys), options=dict(schema.options)
            )
            moment = datetime(2026, 1, 31, tzinfo=UTC)
            row = {"id": "a", "timestamp": moment, "payload_rest": None, "dt": moment.date()}
            await one.service.in_thread(opened.open_writer().put, row)
            ((copy, _),) = two.shared.replicas.held.all()
            await two.service.in_thread(two.shared.replicas.adoption.adopt, copy)
            assert two.shared.replicas.adoption.adopted_rows == 1

    asyncio.run(run())


def silent(*_: object, **__: object) -> None:
    raise UnavailableError("the store is silent")


def test_rows_are_committed_before_the_node_with_their_copy_leaves(tmp_path: Path) -> None:
    async def run() -> None:
        async with cluster(tmp_path, ("one", "two"), wal_replicas=1) as (town, (one, two)):
            await one.create("users")
            await one.write_batch("users", ("a", {"n": 1}))
            held = two.shared.replicas.held
            assert held.logs == 1
            two.shared.replicas.refuse("the node leaves")
            town.nodes["two"] = replace(town.nodes["two"], status="draining")
            await one.service.in_thread(one.shared.replicas.look)
            while held.logs:
                await asyncio.sleep(0.01)
            assert one.service.tables.open("users").buffered_records == 0
            # Nobody else is there.
            with pytest.raises(UnavailableError, match="no other node"):
                await one.write_batch("users", ("b", {"n": 2}))

    asyncio.run(run())


def test_a_copy_of_a_dropped_table_is_deleted(tmp_path: Path) -> None:
    async def run() -> None:
        async with cluster(tmp_path, ("one", "two"), wal_replicas=1) as (_, (one, _)):
            await one.create("users")
            await one.write_batch("users", ("a", {"n": 1}))
            assert len(copies(tmp_path, "two")) == 1
            await one.service.drop_table(DropTableRequest("users", cascade=True), ANYBODY)
            assert copies(tmp_path, "two") == []
            assert list((tmp_path / "lake").glob("service/replicas/*/*/*")) == []

    asyncio.run(run())


def test_nodes_without_copies_hold_those_of_others(tmp_path: Path) -> None:
    async def run() -> None:
        async with cluster(tmp_path, ("one", "two"), secrets=dict.fromkeys(("one", "two"), "s" * 16)) as (
            _,
            (one, two),
        ):
            one.service.tables.copies = one.shared.replicas._link
            await one.create("users")
            await one.write("users", "a", n=1)
            await two.write("users", "b", n=1)
            assert await ids(two) == ["a", "b"]

    asyncio.run(run())
