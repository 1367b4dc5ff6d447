"""The clients and `lakelet remote` against a service that is a process of its own, in another zone."""

import asyncio
import io
import json
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakelet.cli import main
from lakelet.client import AsyncClient, Client, Record, RepeatPolicy
from lakelet.errors import (
    AlreadyExistsError,
    CommitUnknownError,
    InvalidError,
    LakeletError,
    NotFoundError,
    PermissionDeniedError,
    TooLargeError,
    UnauthenticatedError,
    UnavailableError,
)
from lakelet.service.access.key_store import KeyStore, keys_path
from tests.services.server import free_ports
from tests.services.serving import Served, ids_in, serving

MORNING = datetime(2026, 1, 31, 10, 0, 0, 1, UTC)
ODD_IDS = ["/", "a/b", "..", "../t", ".", "a//b", "%2F", "%", "*", ":", "a\nb", "a\n", "\n", " ", "a b", "ü☃𝄞", "?id=x",
           "#", "a&id=b", "+", "'", "\"", "\\", "\x00", "\u2028", "x" * 1024]  # fmt: skip


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("served"), zone="America/St_Johns") as running:
        yield running


def rpc_address(served: Served) -> str:
    return "grpc://" + next(line for line in served.told if line.startswith("gRPC on ")).removeprefix("gRPC on ")


@pytest.fixture(params=["http", "grpc"])
def address(served: Served, request: pytest.FixtureRequest) -> str:
    """The address of a service without tables."""
    with Client(served.address) as client:
        for one in client.list_tables():
            client.drop_table(one.name, cascade=True)
    return served.address if request.param == "http" else rpc_address(served)


@pytest.fixture
def client(address: str) -> Iterator[Client]:
    with Client(address) as opened:
        yield opened


@dataclass
class Shown:
    """What a command printed, and how it ended."""

    returncode: int
    stdout: str
    stderr: str


class Remote(Protocol):
    def __call__(self, *arguments: str, stdin: str = "", key: str = "", served: Served | None = None) -> Shown: ...


@pytest.fixture
def remote(served: Served, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Remote:
    """`lakelet remote …` in this process: starting one takes longer than most commands."""
    default = served

    def run(*arguments: str, stdin: str = "", key: str = "", served: Served | None = None) -> Shown:
        monkeypatch.setenv("LAKELET_URL", (served or default).address)
        monkeypatch.setenv("LAKELET_API_KEY", key)
        monkeypatch.setenv("COLUMNS", "200")
        monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
        capsys.readouterr()
        code = main(["remote", *arguments])
        return Shown(code, *capsys.readouterr())

    return run


def printed(finished: Shown) -> Any:
    assert finished.returncode == 0, finished.stderr
    return [json.loads(line) for line in finished.stdout.splitlines()]


def test_tables(client: Client) -> None:
    made = client.create_table("life", buffer_size=10, retention_days=3)
    assert (made.name, made.status, made.config["buffer_size"], made.config["retention_days"]) == (
        *("life", "active"),
        *(10, 3),
    )
    assert made.created_at is not None
    with pytest.raises(AlreadyExistsError):
        client.create_table("life")
    assert client.create_table("life", if_not_exists=True).created_at == made.created_at
    assert [one.name for one in client.list_tables("li*")] == ["life"]
    assert client.list_tables("none*") == []
    assert client.alter_table("life", retention_days=9, status="archived").config["retention_days"] == 9
    with pytest.raises((InvalidError, PermissionDeniedError), match="archived"):
        client.write("life", "a", MORNING, {})
    client.alter_table("life", status="active")
    client.write("life", "a", MORNING, {"x": 1})
    found = client.describe_table("life")
    assert (found.status, found.stats["record_count"]) == ("active", 1)
    client.drop_table("life", cascade=True)
    with pytest.raises(NotFoundError):
        client.describe_table("life")
    with pytest.raises(NotFoundError):
        client.drop_table("life")
    assert client.drop_table("life", if_exists=True) == 0


@pytest.mark.parametrize("properties", [{}, {"primary_key": "id"}])
def test_odd_ids_by_every_way(client: Client, properties: dict[str, str]) -> None:
    """Written one by one, as JSON and as Arrow; read by id and by query; deleting one leaves all others."""
    table = f"odd{len(properties)}"
    client.create_table(table, properties=properties)
    rows = [{"id": id, "timestamp": MORNING, "payload": {"place": place}} for place, id in enumerate(ODD_IDS)]
    third = len(rows) // 3
    for row in rows[:third]:
        assert client.write(table, row["id"], row["timestamp"], row["payload"]).written == 1
    assert client.write_many(table, rows[third : 2 * third], batch_rows=4).written == third
    frame = pa.table(
        {
            "id": ODD_IDS[2 * third :],
            "timestamp": pa.array([MORNING] * len(ODD_IDS[2 * third :]), pa.timestamp("us", "UTC")),
            "place": list(range(2 * third, len(ODD_IDS))),
        }
    )
    assert client.write_many(table, frame).written == frame.num_rows
    for place, id in enumerate(ODD_IDS):
        assert client.get(table, id) == [Record(id, MORNING, {"place": place})]
        assert client.query(f"SELECT payload.place FROM {table} WHERE id = $id", {"id": id}).rows() == [
            {"place": place}
        ]
    assert {row["id"] for row in client.query(f"SELECT id FROM {table}").rows()} == set(ODD_IDS)
    left = set(ODD_IDS)
    for id in ODD_IDS[::5]:
        assert client.delete(table, id) == 1
        left.discard(id)
        assert client.get(table, id) == []
        assert {row["id"] for row in client.query(f"SELECT id FROM {table}").rows()} == left


def test_frames_and_rows_are_the_same_rows(client: Client) -> None:
    client.create_table("frames")
    plain = pa.table(
        {
            "id": ["a", "b"],
            "timestamp": pa.array([MORNING, MORNING], pa.timestamp("us", "UTC")),
            "n": pa.array([2**60 + 1, None], pa.int64()),
            "text": ["ü", None],
        }
    )
    frames = [plain, plain.to_pandas(types_mapper={pa.int64(): pd.Int64Dtype()}.get), pl.DataFrame(plain)]
    rows = [
        {"id": "a", "timestamp": MORNING, "payload": {"n": 2**60 + 1, "text": "ü"}},
        {"id": "b", "timestamp": MORNING, "payload": {}},
    ]
    for given in (*frames, rows, iter(rows)):
        assert client.write_many("frames", given).written == 2
    found = client.query("SELECT id, timestamp, payload.n, payload.text FROM frames ORDER BY id")
    assert len(found) == 10
    expected = {"timestamp": MORNING, "n": 2**60 + 1, "text": "ü"}
    assert found.rows()[:5] == [{"id": "a", **expected}] * 5
    assert found.rows()[5:] == [{"id": "b", "timestamp": MORNING, "n": None, "text": None}] * 5
    assert found.to_pandas()["n"].tolist()[:5] == [2**60 + 1] * 5
    assert found.to_polars()["text"].to_list()[:5] == ["ü"] * 5
    # What was read can be written.
    client.create_table("again")
    client.write_many("again", client.get("frames", "a"))
    client.write_many("again", client.query("SELECT id, timestamp, n, text FROM frames").to_arrow())
    assert client.query("SELECT count(*) AS n, count(payload.n) AS m FROM again").rows() == [{"n": 15, "m": 10}]


def test_errors_are_kinds(client: Client) -> None:
    client.create_table("errors")
    with pytest.raises(NotFoundError, match="nowhere"):
        client.write("nowhere", "a", MORNING, {})
    with pytest.raises(NotFoundError, match="nowhere"):
        client.query("SELECT * FROM nowhere")
    with pytest.raises(InvalidError) as raised:
        client.query("SELECT 1,\n FROM FROM errors")
    assert raised.value.__dict__["line"] == 2
    with pytest.raises(PermissionDeniedError):
        client.query("SELECT * FROM read_csv('/etc/passwd')")
    for id in ("", "x" * 1025):
        with pytest.raises(InvalidError, match="id"):
            client.write("errors", id, MORNING, {})
        with pytest.raises(InvalidError, match="id"):
            client.get("errors", id)
    with pytest.raises(InvalidError, match="timestamp"):
        client.write("errors", "a", "yesterday", {})
    with pytest.raises(TooLargeError):
        client.write("errors", "a", MORNING, {"x": "y" * (33 << 20)})
    done = client.write_many("errors", [{"id": "", "timestamp": MORNING, "payload": {}}], partial=True)
    assert (done.written, done.refused[0].place) == (0, 0)
    assert client.query("SELECT count(*) AS n FROM errors").rows() == [{"n": 0}]
    assert client.health().status == "ok"


def test_both_transports_answer_the_same(served: Served) -> None:
    with Client(served.address) as http, Client(rpc_address(served)) as rpc:
        http.create_table("same", buffer_size=7, properties={"payload.n": "BIGINT"})
        records = [("a", {"n": 2**60 + 1, "deep": {"list": [1, 2.5]}, "ü": None}), ("b", {"n": "no number"})]
        for writer in (http, rpc):
            answers = [writer.write("same", id, MORNING, payload) for id, payload in records]
            assert [one.rest_values for one in answers] == [0, 1]
        assert http.get("same", "a") == rpc.get("same", "a")
        assert len(rpc.get("same", "a")) == 2
        asked = "SELECT id, payload.n, $big::HUGEINT AS big FROM same WHERE payload.n = $n ORDER BY id"
        params = {"n": 2**60 + 1, "big": 2**62 + 3}
        assert http.query(asked, params).to_arrow() == rpc.query(asked, params).to_arrow()
        assert rpc.query(asked, params).rows()[0]["big"] == 2**62 + 3
        described = http.describe_table("same")
        # The messages of olap.v1 have no field for it.
        stats = {name: value for name, value in described.stats.items() if name != "record_count_is_exact"}
        assert replace(described, stats=stats) == rpc.describe_table("same")
        assert http.list_tables("sam*") == rpc.list_tables("sam*")
        altered = rpc.alter_table("same", buffer_size=9, properties={"file.format": "orc"})
        assert altered == http.alter_table("same")
        assert rpc.alter_table("same", properties={"file.format": None}) == http.alter_table("same")
        assert http.health().status == rpc.health().status
        for wrong in ("SELECT 1,\n FROM FROM same", "SELECT nothing FROM same", "SELECT * FROM nowhere"):
            told = []
            for asker in (http, rpc):
                with pytest.raises(LakeletError) as raised:
                    asker.query(wrong)
                found = raised.value
                told.append((type(found), str(found), found.__dict__.get("line"), found.__dict__.get("column")))
            assert told[0] == told[1]
        with pytest.raises(InvalidError, match="message of gRPC"):
            rpc.create_table("wide", buffer_size=2**40)
        http.drop_table("same", cascade=True)


def test_grpc_without_a_service(unused_port: int) -> None:
    once = RepeatPolicy(attempts=2, first_wait_seconds=0.0)
    with Client(f"grpc://127.0.0.1:{unused_port}", repeats=once) as client:
        with pytest.raises(UnavailableError, match="nothing was done"):
            client.write("t", "a", MORNING, {})
        with pytest.raises(InvalidError, match="half of a surrogate"):
            client.write("t", "\ud800", MORNING, {})
    with pytest.raises(InvalidError, match="the client is closed"):
        client.health()
    for wrong in ("grpc://", "grpc://host/path", "grpcx://host", "grpc://user@host"):
        with pytest.raises(InvalidError, match="address"):
            Client(wrong)


@pytest.fixture
def unused_port() -> Iterator[int]:
    """Bound and not listened at."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


def test_an_event_loop(address: str) -> None:
    # A table that is dropped without its files stays in the lake.
    name = f"loop_{address[:4]}"

    async def run() -> None:
        async with AsyncClient(address, connections=4) as client:
            await client.create_table(name, properties={"primary_key": "id"})
            await asyncio.gather(*(client.write(name, f"{n}", MORNING, {"n": n}) for n in range(20)))
            rows = [{"id": f"b{n}", "timestamp": MORNING, "payload": {"n": n}} for n in range(10)]
            answers = [one.written async for one in client.write_batches(name, rows, batch_rows=4)]
            assert answers == [4, 4, 2]
            assert (await client.write_many(name, rows)).written == 10
            found = await client.query(f"SELECT count(*) AS n FROM {name}")
            assert found.rows() == [{"n": 30}]
            assert [one.payload for one in await client.get(name, "7")] == [{"n": 7}]
            assert await client.delete(name, "7") == 1
            assert (await client.describe_table(name)).stats["record_count"] >= 29
            assert (await client.alter_table(name, retention_days=2)).config["retention_days"] == 2
            assert [one.name for one in await client.list_tables(name)] == [name]
            assert (await client.health()).status == "ok"
            with pytest.raises(NotFoundError):
                await client.describe_table("nowhere")
            await client.drop_table(name)

    asyncio.run(run())


def test_keys(remote: Remote, tmp_path: Path) -> None:
    with serving(tmp_path, "--require-keys") as served:
        key = served.told[0].rsplit(" ", 1)[1]
        with Client(served.address) as nobody, pytest.raises(UnauthenticatedError):
            nobody.list_tables()
        with Client(served.address, api_key=key) as first:
            first.create_table("mine")
            first.create_table("other")
        warehouse = str(tmp_path / "warehouse")
        reader_key = KeyStore(keys_path(None, warehouse)).create("reader", {"mine": "read"})
        for address in (served.address, rpc_address(served)):
            with Client(address, api_key=reader_key) as reader:
                assert [one.name for one in reader.list_tables()] == ["mine"]
                with pytest.raises(PermissionDeniedError):
                    reader.write("mine", "a", MORNING, {})
            with Client(address, api_key="lk_x_y") as nobody, pytest.raises(UnauthenticatedError):
                nobody.list_tables()
        assert remote("tables", served=served).returncode == 1
        (found,) = printed(remote("tables", "--json", key=reader_key, served=served))
        assert [row["table"] for row in found["rows"]] == ["mine"]


@pytest.mark.parametrize("transport", ["http", "grpc"])
def test_clients_under_a_kill_write_nothing_twice(tmp_path: Path, transport: str) -> None:
    """A service that is killed and started again at the same port: what is acknowledged is there, nothing is there twice, and
    what is unknown was said to be."""
    acknowledged: set[str] = set()
    unknown: set[str] = set()
    enough, over = threading.Event(), threading.Event()

    def write(client: Client, number: int) -> None:
        count = 0
        while not over.is_set():
            ids = [f"{number}-{count}-{place}" for place in range(1 + 9 * (number % 2))]
            rows = [{"id": id, "timestamp": MORNING, "payload": {"n": count}} for id in ids]
            count += 1
            try:
                client.write_many("t", rows)
                acknowledged.update(ids)
            except CommitUnknownError:
                unknown.update(ids)
            except UnavailableError:
                # Nothing was sent, however often it was tried.
                pass
            if len(acknowledged) > 300:
                enough.set()

    port, rpc_port = map(str, free_ports(2))
    with serving(tmp_path, "--port", port, "--grpc-port", rpc_port) as served:
        address = served.address if transport == "http" else rpc_address(served)
        policy = RepeatPolicy(attempts=1000, first_wait_seconds=0.05, longest_wait_seconds=1.0)
        with Client(address, repeats=policy) as client:
            client.create_table("t", buffer_size=150, flush_interval_seconds=1)
            threads = [threading.Thread(target=write, args=(client, number)) for number in range(4)]
            for thread in threads:
                thread.start()
            assert enough.wait(900)
            served.process.kill()
            served.process.wait()
            before = len(acknowledged)
            with serving(tmp_path, "--port", port, "--grpc-port", rpc_port) as again:
                # The same client goes on by itself.
                while len(acknowledged) < before + 100 and any(thread.is_alive() for thread in threads):
                    client.health()
                over.set()
                for thread in threads:
                    thread.join()
                again.process.send_signal(signal.SIGTERM)
                assert again.process.wait(900) == 0
    found = ids_in(tmp_path)
    assert len(found) == len(set(found))
    assert acknowledged <= set(found) <= acknowledged | unknown


def test_remote_commands(remote: Remote, tmp_path: Path) -> None:
    made = remote("create", "cli", "--property", "primary_key=id", "--json")
    assert printed(made)[0]["status"] == "active"
    lines = "".join(
        json.dumps({"id": id, "timestamp": "2026-01-31T10:00:00Z", "payload": {"n": n}}) + "\n"
        for n, id in enumerate(["a/b", "ü\n", ".."])
    )
    assert printed(remote("write", "cli", "--json", stdin=lines)) == [{"title": "written to cli", "records": 3}]
    rows = [json.loads(line) for line in lines.splitlines()]
    (tmp_path / "rows.json").write_text(json.dumps(rows))
    (tmp_path / "rows.ndjson").write_text(lines)
    flat = pa.table(
        {"id": ["p"], "timestamp": pa.array([MORNING], pa.timestamp("us", "UTC")), "n": pa.array([7], pa.int64())}
    )
    pq.write_table(flat, tmp_path / "rows.parquet")
    with pa.ipc.new_file(tmp_path / "rows.arrow", flat.schema) as file:
        file.write_table(flat)
    with pa.ipc.new_stream(tmp_path / "rows.arrows", flat.schema) as stream:
        stream.write_table(flat)
    for ending, count in (("json", 3), ("ndjson", 3), ("parquet", 1), ("arrow", 1), ("arrows", 1)):
        done = printed(remote("write", "cli", str(tmp_path / f"rows.{ending}"), "--json"))
        assert done[0]["records"] == count
    found = printed(remote("sql", "SELECT id, payload.n, timestamp FROM cli WHERE payload.n = $n", "--json",
                           "--param", "n=7"))  # fmt: skip
    assert found == [{"rows": [{"id": "p", "n": 7, "timestamp": "2026-01-31 10:00:00.000001Z"}]}]
    shown = remote("sql", "SELECT count(*) AS n FROM cli")
    assert "│" in shown.stdout
    assert "4" in shown.stdout
    assert remote("sql", "-", "--output", "csv", stdin="SELECT 1 AS x").stdout == '"x"\n1\n'
    (record,) = printed(remote("get", "cli", "a/b", "--json"))
    assert record["rows"] == [{"id": "a/b", "timestamp": "2026-01-31T10:00:00Z", "payload": {"n": 0}}]
    assert printed(remote("delete", "cli", "..", "--json"))[0]["records"] == 1
    assert printed(remote("health", "--json"))[0]["status"] == "ok"
    refused = printed(remote("write", "cli", "--partial", "--json", stdin=lines + '{"id": "", "timestamp": '
                             '"2026-01-31T10:00:00Z", "payload": {}}'))  # fmt: skip
    assert (refused[0]["records"], refused[0]["refused"], refused[1]["rows"][0]["record"]) == (3, 1, 3)
    assert printed(remote("drop", "cli", "--json"))


@pytest.mark.parametrize(
    ("arguments", "kind", "words"),
    [
        (("sql", "SELECT * FROM nowhere"), "NotFoundError", "nowhere"),
        (("sql", "SELECT 1 FROM FROM t"), "SqlError|InvalidError", "FROM"),
        (("write", "nowhere", "none.ndjson"), "NotFoundError", "none.ndjson"),
        (("write", "nowhere", __file__), "InvalidError", "expected .ndjson"),
        (("tables", "--url", "ftp://x"), "InvalidError", "address"),
    ],
)
def test_errors_of_remote_are_one_line(remote: Remote, arguments: tuple[str, ...], kind: str, words: str) -> None:
    shown = remote(*arguments)
    assert (shown.returncode, shown.stdout) == (1, "")
    assert shown.stderr.split(":")[0] in kind.split("|")
    assert words in shown.stderr
    assert "Traceback" not in shown.stderr
    told = json.loads(remote(*arguments, "--json").stderr)
    assert told["error"] in kind.split("|")
