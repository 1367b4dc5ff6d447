"""A load of a running service: clients that send rows by REST and gRPC, singly and in batches, and know what became of each.

    plan ── requests in random order ── some threads, each with connections of its own ── ledger: sent, acknowledged

A request that was not answered is sent again to a table with a primary key, where that changes nothing. To an append table it is
not, unless it has an idempotency key and there are other nodes: these get it until one acknowledges it. Without a key its rows
may be there once or not at all, and other rows are sent in their place. Refusals (429, 503 with `nothing_done`) have done
nothing: they are sent again. An answer with a warning may lack the rows of a node that is away: nobody looks at it.
Each thread has keys of its own, so that it knows which value of a key is the newest.
"""

from __future__ import annotations

import http.client
import io
import itertools
import json
import random
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import grpc
import pyarrow as pa

from lakelet.protos.message_types import LAKELET, OLAP, message_class
from tests.services.lakelet_server import PATIENCE_SECONDS, LakeletServer

EVENTS, USERS, VERSIONS = "Events", "Users", "Versions"
TABLES = {EVENTS: {}, USERS: {"primary_key": "id", "buckets": "2"}, VERSIONS: {"primary_key": "id, timestamp"}}
"""By day without a key, by key without days, and by key and day."""

SINGLE, ARRAY, NDJSON, ARROW, RPC_SINGLE, RPC_BATCH, RPC_ARROW = KINDS = (
    *("single", "array", "ndjson", "arrow"),
    *("rpc-single", "rpc-batch", "rpc-arrow"),
)
_SIZES = {SINGLE: 1, ARRAY: 20, NDJSON: 100, ARROW: 500, RPC_SINGLE: 1, RPC_BATCH: 50, RPC_ARROW: 500}
# The parts of all rows that come in each way.
_SHARES = {SINGLE: 0.012, ARRAY: 0.04, NDJSON: 0.2, ARROW: 0.4, RPC_SINGLE: 0.008, RPC_BATCH: 0.08, RPC_ARROW: 0.26}
_FIRST_DAY = datetime(2026, 1, 30, tzinfo=UTC)
_ARROW_TYPE = "application/vnd.apache.arrow.stream"
_KEYS_OF_A_THREAD = 4000


@dataclass(frozen=True, slots=True)
class Row:
    """A row as it is sent; `number` rises with each row of a thread."""

    id: str
    number: int

    @property
    def time(self) -> datetime:
        """Its timestamp, which the id decides: a key with a time has one row."""
        place = int(self.id.rsplit("-", 1)[1])
        return _FIRST_DAY + timedelta(days=place % 3, microseconds=place)

    def record(self) -> dict[str, Any]:
        """As a record in JSON."""
        payload = {"n": self.number, "half": self.number / 2, "name": f"名 {self.number}"}
        return {"id": self.id, "timestamp": self.time.isoformat().replace("+00:00", "Z"), "payload": payload}


@dataclass(slots=True)
class Sent:
    """What is known of one id: the last number that was acknowledged, and those that were sent since."""

    acknowledged: int | None = None
    since: tuple[int, ...] = ()


class Ledger:
    """What was sent and what was acknowledged, of all tables."""

    def __init__(self) -> None:
        self.rows: dict[str, dict[str, Sent]] = {table: defaultdict(Sent) for table in TABLES}
        self.durable: dict[str, int] = dict.fromkeys(TABLES, 0)
        self.requests = 0
        self.acknowledged_rows = 0
        self.refused = 0
        self.unanswered = 0
        self.changed = threading.Condition()

    def sending(self, table: str, rows: Sequence[Row]) -> None:
        """Rows are about to be sent."""
        with self.changed:
            known = self.rows[table]
            for row in rows:
                known[row.id].since += (row.number,)

    def acknowledge(self, table: str, rows: Sequence[Row]) -> None:
        """Rows were acknowledged."""
        with self.changed:
            known = self.rows[table]
            for row in rows:
                sent = known[row.id]
                self.durable[table] += sent.acknowledged is None
                sent.acknowledged, sent.since = row.number, ()
            self.acknowledged_rows += len(rows)
            self.requests += 1
            self.changed.notify_all()

    def wait_for_requests(self, number: int, is_over: Callable[[], bool]) -> None:
        """Wait until so many requests were acknowledged, or the load is over."""
        with self.changed:
            assert self.changed.wait_for(lambda: self.requests >= number or is_over(), PATIENCE_SECONDS)

    def check(self, table: str, found: Sequence[tuple[str, int]]) -> None:
        """Every acknowledged row is there, none twice, none that was not sent, and of each key the newest value."""
        numbers = dict(found)
        assert len(numbers) == len(found), f"{table}: {len(found) - len(numbers)} rows are there twice"
        for id, sent in self.rows[table].items():
            number = numbers.pop(id, None)
            if number is None:
                assert sent.acknowledged is None, f"{table}: {id} was acknowledged and is lost"
            else:
                assert number == sent.acknowledged or number in sent.since, f"{table}: {id} has {number}, not {sent}"
        assert not numbers, f"{table}: {list(numbers)[:3]} were never sent"


class UnansweredError(Exception):
    """Nobody knows whether the request was done."""


class RefusedError(Exception):
    """The service did nothing, and says when to come back."""


class Connections:
    """The connections of one thread."""

    def __init__(self, server: LakeletServer) -> None:
        self._server = server
        self._rest: http.client.HTTPConnection | None = None
        self._channel: Any = None

    def close(self) -> None:
        """Give them up; the next request makes new ones."""
        if self._rest is not None:
            self._rest.close()
        if self._channel is not None:
            self._channel.close()
        self._rest = self._channel = None

    def post(self, path: str, body: bytes, content_type: str = "application/json", key: str = "") -> bytes:
        """The body of an answer of 200."""
        headers = {"content-type": content_type, **({"idempotency-key": key} if key else {})}
        try:
            if self._rest is None:
                self._rest = http.client.HTTPConnection(self._server.address, timeout=PATIENCE_SECONDS)
            self._rest.request("POST", path, body, headers)
            answer = self._rest.getresponse()
            data = answer.read()
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise UnansweredError from error
        if answer.status == 429 or (answer.status == 503 and json.loads(data).get("nothing_done")):
            raise RefusedError(answer.status)
        if answer.status == 503:
            raise UnansweredError(data)
        assert answer.status in (200, 201), data
        return data

    def call(self, service: str, method: str, request: Any, answer: str, key: str = "") -> Any:
        """The answer of an RPC."""
        if self._channel is None:
            self._channel = grpc.insecure_channel(self._server.grpc_address)
        try:
            return self._channel.unary_unary(
                f"/{service}/{method}",
                request_serializer=lambda message: message.SerializeToString(),
                response_deserializer=message_class(answer).FromString,
            )(request, timeout=PATIENCE_SECONDS, metadata=(("idempotency-key", key),) if key else None)
        except grpc.RpcError as error:
            told = dict(error.trailing_metadata() or ())
            if "lakelet-nothing-done" in told or told.get("lakelet-code") == "overloaded":
                raise RefusedError(error.code()) from error
            if error.code() is grpc.StatusCode.UNAVAILABLE and "lakelet-code" in told:
                raise UnansweredError(error.details()) from error
            # The service answers no other error: these are of the connection.
            if "lakelet-code" in told:
                raise
            self.close()
            raise UnansweredError from error


def send(connections: Connections, table: str, kind: str, rows: Sequence[Row], key: str = "") -> None:
    """Send rows in one request, under an idempotency key where one is given."""
    batch = f"/v1/data/batch?table={table}"
    if kind == SINGLE:
        connections.post("/v1/data", json.dumps({"table": table, **rows[0].record()}).encode(), key=key)
    elif kind == ARRAY:
        connections.post(batch, json.dumps([row.record() for row in rows]).encode(), key=key)
    elif kind == NDJSON:
        lines = b"\n".join(json.dumps(row.record()).encode() for row in rows)
        connections.post(batch, lines, "application/x-ndjson", key)
    elif kind == ARROW:
        connections.post(batch, _arrow(rows), _ARROW_TYPE, key)
    elif kind == RPC_SINGLE:
        request = message_class(f"{OLAP.rpartition('.')[0]}.WriteRequest")(table=table)
        _fill(request, rows[0])
        connections.call(OLAP, "Write", request, f"{OLAP.rpartition('.')[0]}.WriteResponse", key)
    else:
        request = message_class(f"{LAKELET.rpartition('.')[0]}.WriteBatchRequest")(table=table)
        if kind == RPC_ARROW:
            request.arrow = _arrow(rows)
        else:
            for row in rows:
                _fill(request.records.add(), row)
        connections.call(LAKELET, "WriteBatch", request, f"{LAKELET.rpartition('.')[0]}.WriteBatchResponse", key)


def _fill(message: Any, row: Row) -> None:
    message.id = row.id
    message.timestamp.FromDatetime(row.time)
    message.payload.update(row.record()["payload"])


def _arrow(rows: Sequence[Row]) -> bytes:
    payloads = [row.record()["payload"] for row in rows]
    table = pa.table(
        {
            "id": [row.id for row in rows],
            "timestamp": pa.array([row.time for row in rows], pa.timestamp("us", "UTC")),
            "payload": payloads,
        }
    )
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


class Load:
    """Threads that send a plan of requests, whatever becomes of the service meanwhile."""

    def __init__(
        self,
        server: LakeletServer,
        ledger: Ledger,
        *,
        rows: int,
        threads: int,
        chance: random.Random,
        reads: bool = True,
        name: str = "t",
        others: Sequence[LakeletServer] = (),
    ) -> None:
        self._server = server
        # Where requests with a key are sent again.
        self._others = others
        self.resent = 0
        self._ledger = ledger
        plan = [kind for kind in KINDS for _ in range(round(rows * _SHARES[kind] / _SIZES[kind]))]
        chance.shuffle(plan)
        self._plan: Iterator[tuple[str, str]] = iter([(kind, chance.choice(list(TABLES))) for kind in plan])
        self.requests = len(plan)
        self._taking = threading.Lock()
        self._up = threading.Event()
        self.problems: list[BaseException] = []
        self._threads = [
            threading.Thread(target=self._run, args=(f"{name}{number}", random.Random(chance.random())))
            for number in range(threads)
        ]
        self._reader = threading.Thread(target=self._read)
        self._over = threading.Event()
        self._ended = threading.Event()
        self._has_reader = reads
        self.reads = 0

    def start(self) -> None:
        """Begin; the service runs."""
        self._up.set()
        for thread in (*self._threads, *([self._reader] if self._has_reader else [])):
            thread.start()

    def down(self) -> None:
        """The service is about to go away: what fails waits for `up`."""
        self._up.clear()

    def up(self) -> None:
        """The service is back."""
        self._up.set()

    def end(self) -> None:
        """Send nothing more: the service does not come back."""
        with self._taking:
            self._plan = iter(())
        self._ended.set()
        self._up.set()

    @property
    def is_over(self) -> bool:
        """Whether the whole plan is done, or a thread has failed."""
        return bool(self.problems) or not any(thread.is_alive() for thread in self._threads)

    def join(self) -> None:
        """Wait for the end; the first problem of a thread is raised."""
        for thread in self._threads:
            thread.join()
        self._over.set()
        if self._has_reader:
            self._reader.join()
        for problem in self.problems:
            raise problem

    def _run(self, name: str, chance: random.Random) -> None:
        connections, number = Connections(self._server), 0
        others = [Connections(server) for server in self._others]
        try:
            while not self.problems:
                with self._taking:
                    step = next(self._plan, None)
                if step is None:
                    return
                kind, table = step
                is_sent = False
                while not is_sent and not self.problems and not self._ended.is_set():
                    # Rows of an append table that nobody answered for are followed by others.
                    rows = _rows(name, table, number, _SIZES[kind], chance)
                    number += len(rows)
                    if table == EVENTS and others and chance.random() < 0.5:
                        is_sent = self._send_keyed([connections, *others], kind, rows, f"{name}-{number}")
                    else:
                        is_sent = self._send(connections, table, kind, rows)
        except BaseException as problem:
            self.problems.append(problem)
        finally:
            for one in (connections, *others):
                one.close()

    def _send_keyed(self, ways: Sequence[Connections], kind: str, rows: Sequence[Row], key: str) -> bool:
        """Send rows of an append table under a key, through one node after the other until one acknowledges them."""
        self._ledger.sending(EVENTS, rows)
        for connections in itertools.cycle(ways):
            if self.problems or self._ended.is_set():
                return False
            try:
                send(connections, EVENTS, kind, rows, key)
            except RefusedError:
                self._ledger.refused += 1
            except UnansweredError:
                self._ledger.unanswered += 1
                self.resent += 1
            else:
                self._ledger.acknowledge(EVENTS, rows)
                return True
            self._ended.wait(0.1)
        return False

    def _send(self, connections: Connections, table: str, kind: str, rows: Sequence[Row]) -> bool:
        """Send rows, if need be more than once; whether they were acknowledged."""
        self._ledger.sending(table, rows)
        while not self.problems:
            try:
                send(connections, table, kind, rows)
            except RefusedError:
                self._ledger.refused += 1
                if self._ended.wait(0.2):
                    return False
                continue
            except UnansweredError:
                self._ledger.unanswered += 1
                assert self._up.wait(PATIENCE_SECONDS)
                if table == EVENTS or self._ended.is_set():
                    return False
                continue
            self._ledger.acknowledge(table, rows)
            return True
        return False

    def _read(self) -> None:
        """Count rows over and over: what was acknowledged before is there, no row is there twice, and counts only rise."""
        connections, before = Connections(self._server), dict.fromkeys(TABLES, 0)
        try:
            while not self._over.wait(0.05) and not self._ended.is_set() and not self.problems:
                with self._ledger.changed:
                    durable = dict(self._ledger.durable)
                try:
                    found = counted(connections)
                except (UnansweredError, RefusedError):
                    assert self._up.wait(PATIENCE_SECONDS)
                    continue
                self.reads += 1
                for table, (rows, ids) in found.items():
                    assert rows == ids, f"{table}: {rows} rows of {ids} ids"
                    assert rows >= durable[table], f"{table}: {rows} rows, {durable[table]} were acknowledged before"
                    assert rows >= before[table], f"{table}: {before[table]} rows, then {rows}"
                    before[table] = rows
        except BaseException as problem:
            self.problems.append(problem)
            with suppress(RuntimeError), self._ledger.changed:
                self._ledger.changed.notify_all()
        finally:
            connections.close()


def counted(connections: Connections) -> dict[str, tuple[int, int]]:
    """The rows and the ids of all tables, each as one query finds them, which a cluster can spread over its nodes."""
    found = {}
    for table in TABLES:
        sql = f"SELECT count(*) AS n, count(DISTINCT id) AS d FROM {table}"
        answer = json.loads(connections.post("/v1/query", json.dumps({"sql": sql}).encode()))
        if answer.get("warnings"):
            raise RefusedError(answer["warnings"])
        (row,) = json.loads(answer["result_json"])
        found[table] = (row["n"], row["d"])
    return found


def _rows(name: str, table: str, first: int, count: int, chance: random.Random) -> list[Row]:
    if table == EVENTS:
        return [Row(f"{name}-{number}", number) for number in range(first, first + count)]
    places = chance.sample(range(_KEYS_OF_A_THREAD), count)
    return [Row(f"{name}-{place}", first + step) for step, place in enumerate(places)]
