"""A cluster whose nodes join, leave and die under load: every answer without a warning has what was acknowledged before.

writers ── rows, batches, upserts, deletions ──┐
chaos   ── join, leave, kill, flush, compact ──┼── nodes ── answers ── compared with the ledger
readers ── counts, rows, groups ───────────────┘

All of it is drawn from one seed. How the threads of the nodes interleave is not: delays are put where the order of two events
matters (`delays`).
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any
from unittest.mock import patch

from lakelet.errors import LakeletError
from lakelet.realtime import flush_worker
from lakelet.service.access.caller import ANYBODY
from lakelet.service.ingest.record import record_of
from lakelet.service.peers import absent_nodes, cluster_member, shared_tables
from lakelet.service.query.query_engine import QueryRequest
from lakelet.service.replicas import adoption
from lakelet.service.values import BatchRequest, CreateTableRequest, RowRequest, TableConfig, WriteRequest
from tests.property.service.churn.churn_ledger import Appended, Upserted, Versions, WrongAnswerError
from tests.property.service.churn.churning_nodes import ChurningNode
from tests.property.service.churn.churning_registry import ALIVE_SECONDS, LOOK_SECONDS, Registry
from tests.property.service.churn.delays import delays

EVENTS, USERS = "events", "users"
_KEYS = 30
_QUERIES = (
    "SELECT id, payload.n AS n FROM {}",
    "SELECT id, max(payload.n) AS n FROM {} GROUP BY id, payload.n",
    "SELECT id, n FROM (SELECT id, payload.n AS n FROM {} ORDER BY id) AS x",
)
_COUNTS = "SELECT count(*) AS c, count(DISTINCT id) AS d FROM events"
# A node that is killed ends the calls of its clients, and its own.
_FAILURES = (LakeletError, RuntimeError, OSError, asyncio.CancelledError)
_CONFIG: dict[str, Any] = {"flush_interval_seconds": 1, "buffer_size": 40}


class ChurningCluster:
    """The model."""

    def __init__(self, folder: Path, seed: int, *, nodes: int = 3, ahead_ms: int = 0, replicas: int = 0) -> None:
        """With `replicas` nodes that die lose their disks, one at a time."""
        self.chance = random.Random(seed)
        self.replicas = replicas
        self.registry = Registry()
        self.nodes = [
            ChurningNode(
                f"n{number}",
                folder,
                self.registry,
                ahead_ms=ahead_ms * (number - 1),
                strict=not number,
                replicas=replicas,
            )
            for number in range(nodes)
        ]
        self.events, self.users = Appended(), Upserted()
        self.number = 0
        self.answers = self.warned = self.refused = self.writes = self.failed = 0
        self.losses = 0
        self.is_over = False
        self.history: list[str] = []
        self._busy: set[str] = set()
        self._changing = asyncio.Lock()

    def up(self) -> list[ChurningNode]:
        """The nodes that take requests."""
        return [node for node in self.nodes if node.is_up]

    def _someone(self) -> ChurningNode | None:
        found = self.up()
        return self.chance.choice(found) if found else None

    async def start(self) -> None:
        """Start all nodes and create the tables."""
        for node in self.nodes:
            await node.start()
        service = self.nodes[0].service
        assert service is not None
        for name, properties in ((EVENTS, {}), (USERS, {"primary_key": "id", "buckets": "2"})):
            config = TableConfig(properties={**properties}, **_CONFIG)
            await service.create_table(CreateTableRequest(name, config), ANYBODY)

    async def run(self, seconds: float) -> None:
        """Write, ask and churn for a while, then check everything at rest."""
        workers = [self._write, self._write, self._upsert, self._upsert, self._ask, self._ask, self._ask, self._churn]
        tasks = [asyncio.create_task(one()) for one in workers]
        await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_EXCEPTION)
        self.is_over = True
        await asyncio.gather(*tasks)
        self.registry.is_away = False
        for node in self.nodes:
            if not node.is_up:
                await node.start()
        await asyncio.sleep(ALIVE_SECONDS)
        if self.replicas:
            await self._lose_after_writes()
        for node in self.up():
            for _ in range(3 if self.replicas else 1):
                await self._check_once(node, must_be_whole=True)
        for node in self.up():
            await node.leave()

    # ------------------------------------------------------------------ writers

    async def _write(self) -> None:
        while not self.is_over:
            await asyncio.sleep(self.chance.random() * 0.02)
            node = self._someone()
            if node is None:
                continue
            if self.chance.random() < 0.03 and self.events.acknowledged:
                await self._delete_event(node)
                continue
            count = self.chance.choice((1, 1, 3, 10))
            ids = [f"e{self.number + place}" for place in range(count)]
            self.number += count
            self.events.sent.update(ids)
            if await self._sent(node, EVENTS, [(id, self.number) for id in ids]):
                self.events.acknowledged.update(ids)

    async def _delete_event(self, node: ChurningNode) -> None:
        id = self.chance.choice(sorted(self.events.acknowledged))
        if id in self.events.deleting:
            return
        self.events.deleting.add(id)
        with suppress(*_FAILURES):
            assert node.service is not None
            if await node.call(node.service.delete_rows(RowRequest(EVENTS, id), ANYBODY)):
                self.events.deleted.add(id)

    async def _upsert(self) -> None:
        while not self.is_over:
            await asyncio.sleep(self.chance.random() * 0.02)
            node = self._someone()
            free = sorted({f"u{number}" for number in range(_KEYS)} - self._busy)
            if node is None:
                continue
            ids = self.chance.sample(free, min(len(free), self.chance.choice((1, 1, 4))))
            self._busy.update(ids)
            self.number += 1
            number = self.number
            known = [self.users.keys.setdefault(id, Versions()) for id in ids]
            for one in known:
                one.open.add(number)
            if await self._sent(node, USERS, [(id, number) for id in ids]):
                for one in known:
                    one.newest = number
                    one.open.discard(number)
            self._busy.difference_update(ids)

    async def _sent(self, node: ChurningNode, table: str, rows: list[tuple[str, int]]) -> bool:
        """Whether rows were acknowledged. Now and then they have a new field."""
        more = {f"f{self.number % 7}": self.number} if self.chance.random() < 0.05 else {}
        records = [
            record_of({"id": id, "timestamp": "2026-01-31T10:00:00Z", "payload": {"n": number, **more}})
            for id, number in rows
        ]
        service = node.service
        if service is None:
            return False
        try:
            if len(records) == 1:
                await node.call(service.write(WriteRequest(table, records[0]), ANYBODY))
            else:
                await node.call(service.write_batch(BatchRequest(table, records, False), ANYBODY))
        except _FAILURES:
            self.failed += 1
            return False
        self.writes += 1
        return True

    # ------------------------------------------------------------------ readers

    async def _ask(self) -> None:
        while not self.is_over:
            await asyncio.sleep(self.chance.random() * 0.02)
            node = self._someone()
            if node is not None:
                await self._check_once(node)

    async def _check_once(self, node: ChurningNode, *, must_be_whole: bool = False) -> None:
        service = node.service
        assert service is not None
        table = self.chance.choice((EVENTS, USERS))
        kind = self.chance.randrange(len(_QUERIES) + 1)
        sql = _COUNTS if kind == len(_QUERIES) else _QUERIES[kind].format(table)
        due, keys = self.events.due(), self.users.due()
        request = QueryRequest(sql)
        try:
            rows: list[dict[str, Any]] = json.loads(await node.call(service.query_json(request, ANYBODY)))
        except _FAILURES:
            if must_be_whole:
                raise
            self.refused += 1
            return
        self.answers += 1
        self.warned += bool(request.warnings)
        assert not (request.warnings and node.settings.query_strict), request.warnings
        assert not must_be_whole or not request.warnings, request.warnings
        told = f"{sql} of {node.name}, after {self.history[-6:]}"
        if sql == _COUNTS:
            found, ids = rows[0]["c"], rows[0]["d"]
            least = 0 if request.warnings else len(due[0] - self.events.deleting)
            if found != ids or not least <= found <= len(self.events.sent):
                raise WrongAnswerError(f"{told}: {found} rows, {ids} ids, {least} were acknowledged")
        elif table == EVENTS:
            self.events.check(due, [row["id"] for row in rows], is_warned=bool(request.warnings), told=told)
        else:
            versions = [(row["id"], row["n"]) for row in rows]
            self.users.check(keys, versions, is_warned=bool(request.warnings), told=told)

    # ------------------------------------------------------------------ chaos

    async def _churn(self) -> None:
        # Nodes come back sooner than others go: answers while all are there are those that show most.
        ends = (self._lose, self._lose, self._leave) if self.replicas else (self._kill, self._leave)
        steps = (*ends, *[self._come] * 5, self._flush, self._compact)
        more = (self._empty_registry, self._lose_registry, self._commit, self._commit)
        while not self.is_over:
            await asyncio.sleep(self.chance.random() * 0.3)
            step = self.chance.choice(steps + more)
            self.history.append(step.__name__)
            try:
                await step()
            except _FAILURES as error:
                self.history.append(f"{step.__name__}: {error}")

    async def _kill(self) -> None:
        node = self.chance.choice(self.nodes)
        if node.is_up and len(self.up()) > 1:
            self.history.append(f"kill {node.name}")
            await node.kill()

    async def _lose(self) -> None:
        """Lose a node with its disk. Before another one is lost, what it had is committed, and the others have moved on."""
        node = self.chance.choice(self.nodes)
        if node.is_up and len(self.up()) == len(self.nodes):
            await self._lose_one(node)

    async def _lose_one(self, node: ChurningNode) -> None:
        self.history.append(f"lose {node.name}")
        id = await node.lose()
        self.losses += 1
        while not all(one.has_moved_on(id) for one in self.up()):
            await asyncio.sleep(LOOK_SECONDS)

    async def _lose_after_writes(self) -> None:
        """Lose a node that has just acknowledged rows."""
        node = self.chance.choice(self.nodes)
        for _ in range(5):
            ids = [f"e{self.number}", f"e{self.number + 1}"]
            self.number += 2
            self.events.sent.update(ids)
            if await self._sent(node, EVENTS, [(id, self.number) for id in ids]):
                self.events.acknowledged.update(ids)
        await self._lose_one(node)

    async def _leave(self) -> None:
        node = self.chance.choice(self.nodes)
        if node.is_up and len(self.up()) > 1:
            self.history.append(f"leave {node.name}")
            await node.leave()

    async def _come(self) -> None:
        away = [node for node in self.nodes if not node.is_up]
        if away:
            node = self.chance.choice(away)
            if self.chance.random() < 0.3:
                await asyncio.sleep(ALIVE_SECONDS)
            self.history.append(f"come {node.name}")
            # Now and then at the address that another one had.
            await node.start(self.chance.choice((0, *(other.port for other in away if other is not node))))

    async def _flush(self) -> None:
        node = self._someone()
        assert node is not None
        assert node.service is not None
        assert node.service.shared is not None
        await node.service.shared.flush_table(self.chance.choice((EVENTS, USERS)))

    async def _commit(self) -> None:
        await self._flush()

    async def _compact(self) -> None:
        node = self._someone()
        assert node is not None
        service = node.service
        assert service is not None
        table = service.tables.open(self.chance.choice((EVENTS, USERS))).table
        await service.in_thread(table.compact)

    async def _empty_registry(self) -> None:
        self.registry.empty()

    async def _lose_registry(self) -> None:
        self.registry.is_away = True
        await asyncio.sleep(self.chance.random() * 0.5)
        self.registry.is_away = False


@contextmanager
def short_times() -> Iterator[None]:
    """The times of a cluster, a thirtieth of what they are."""
    with ExitStack() as stack:
        for module, name, seconds in (
            (cluster_member, "_REGISTRY_SECONDS", 3 * LOOK_SECONDS),
            (cluster_member, "_LOOK_SECONDS", LOOK_SECONDS),
            (shared_tables, "_FOLLOW_SECONDS", 0.2),
            (absent_nodes, "_LOOK_SECONDS", 0.05),
            (adoption, "_SILENT_SECONDS", 0.2),
            (flush_worker, "_LONGEST_PAUSE_SECONDS", 0.2),
        ):
            stack.enter_context(patch.object(module, name, seconds))
        yield


def churn(
    folder: Path, seed: int, seconds: float, *, nodes: int = 3, ahead_ms: int = 0, replicas: int = 0
) -> ChurningCluster:
    """Run the model once; WrongAnswerError for an answer that is none."""

    async def run() -> ChurningCluster:
        model = ChurningCluster(folder, seed, nodes=nodes, ahead_ms=ahead_ms, replicas=replicas)
        await model.start()
        await model.run(seconds)
        return model

    with short_times(), delays(random.Random(seed)):
        return asyncio.run(run())
