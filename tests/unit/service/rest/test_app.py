"""The HTTP edge: the paths and fields of the service to the letter, and a problem document for every error."""

import gzip
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import zstandard

from lakelet.errors import CommitUnknownError, InternalError, UnavailableError
from lakelet.service.query.query_engine import QueryEngine, QueryRequest
from lakelet.service.tables import served_table
from tests.unit.realtime.small_disk import SmallDisk
from tests.unit.service.served_lake import MORNING, ServedLake

RECORD = {"id": "a", "timestamp": MORNING, "payload": {"x": 1}}
SEED = {
    "table": "users",
    "id": "user-123",
    "timestamp": "2023-10-27T10:00:00Z",
    "payload": {"name": "张三", "age": 25, "city": "北京"},
}


def query(served: ServedLake, sql: str, **more: Any) -> Any:
    answer = served.request("POST", "/v1/query", json={"sql": sql, **more})
    assert answer.status_code == 200, answer.text
    return json.loads(answer.json()["result_json"])


def test_the_examples_of_the_specification_run_verbatim(tmp_path: Path) -> None:
    with ServedLake(tmp_path) as served:
        config = {"buffer_size": 2000, "flush_interval_seconds": 60, "backup_enabled": True}
        served.create("users", **config)
        served.create("orders")
        answer = served.request("POST", "/v1/data", json=SEED)
        assert (answer.status_code, answer.json()["success"]) == (200, True)
        served.write("orders", {"user_id": "user-123"}, id="o1")
        count = "SELECT COUNT(*) FROM users WHERE id = 'user-123' AND timestamp >= '2023-10-01' AND payload.age > 20"
        assert query(served, count) == [{"count_star()": 1}]
        join = (
            "SELECT u.payload.name, COUNT(o.id) as order_count FROM users u LEFT JOIN orders o "
            "ON u.id = o.payload.user_id GROUP BY u.payload.name"
        )
        assert query(served, join) == [{"name": "张三", "order_count": 1}]
        bare = "SELECT u.name, COUNT(o.id) FROM users u LEFT JOIN orders o ON u.id = o.user_id GROUP BY u.name"
        assert [row["name"] for row in query(served, bare)] == ["张三"]
        described = served.request("GET", "/v1/tables/users").json()
        assert set(described["table_info"]) == {"name", "config", "created_at", "last_write", "status"}
        assert {key: described["table_info"]["config"][key] for key in config} == config
        assert served.request("DELETE", "/v1/tables/users?cascade=true").json()["success"] is True


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff",
        b'{"table":"t"}',
        b'{"table":"t","id":"a","timestamp":"2026-01-31T10:00:00Z","payload":[]}',
        b'{"table":"t","id":"a","timestamp":"2026-01-31T10:00:00Z","payload":null}',
        b'{"table":"t","id":"","timestamp":"2026-01-31T10:00:00Z","payload":{}}',
        b'{"table":"t","id":7,"timestamp":"2026-01-31T10:00:00Z","payload":{}}',
        b'{"table":"t","id":"a","timestamp":"2026-01-31T10:00:00Z","payload":{},"more":1}',
        b'{"table":"t","id":"a","timestamp":"2026-01-31","payload":{}}',
        b'{"table":"t","id":"a","timestamp":"2026-01-31T10:00:00","payload":{}}',
        b'{"table":"t","id":"a","timestamp":"2026-02-31T10:00:00Z","payload":{}}',
        b'{"table":"t","id":"a","timestamp":"2026-01-31T10:00:00.0000001Z","payload":{}}',
        b'{"table":"t","id":"a","timestamp":1769853600,"payload":{}}',
        b'{"table":"t","id":"\\ud800","timestamp":"2026-01-31T10:00:00Z","payload":{}}',
        b'{"table":"t","id":"a","timestamp":"2026-01-31T10:00:00Z","payload":{"x":NaN}}',
        b'{"table":"t","id":"a","timestamp":"2026-01-31T10:00:00Z","payload":{"x":1e999}}',
        b'{"table":"t","id":"a","timestamp":"2026-01-31T10:00:00Z","payload":{"x":' + b"[" * 100_000 + b"}}",
        json.dumps({"table": "t", "id": "é" * 513, "timestamp": MORNING, "payload": {}}).encode(),
    ],
)
def test_a_record_that_is_none_is_a_problem_and_nothing_is_written(tmp_path: Path, body: bytes) -> None:
    with ServedLake(tmp_path) as served:
        served.create("t")
        answer = served.request("POST", "/v1/data", content=body)
        assert answer.status_code == 400
        assert answer.headers["content-type"] == "application/problem+json"
        problem = answer.json()
        assert (problem["status"], problem["code"], problem["type"]) == (400, "invalid", "urn:lakelet:error:invalid")
        assert problem["request_id"] == answer.headers["x-request-id"]
        assert "Traceback" not in answer.text
        assert served.service.tables.open("t").buffered_records == 0


@pytest.mark.parametrize("id", ["a/b", "..", "a:b%2F*", "line\nend", "名", "x" * 1024, "'; DROP TABLE t", " "])
def test_ids_survive_as_they_are(tmp_path: Path, id: str) -> None:
    with ServedLake(tmp_path) as served:
        served.create("t")
        served.write("t", {"x": 1}, id=id)
        served.write("t", {"x": 2}, id="other")
        assert served.records("t", id) == [{"id": id, "timestamp": MORNING, "payload": {"x": 1}}]
        served.flush("t")
        assert served.records("t", id) == [{"id": id, "timestamp": MORNING, "payload": {"x": 1}}]


@pytest.mark.parametrize("properties", [{}, {"primary_key": "id"}, {"primary_key": "id, timestamp"}])
def test_an_id_is_deleted_whether_its_rows_are_committed_or_buffered(
    tmp_path: Path, properties: dict[str, str]
) -> None:
    with ServedLake(tmp_path) as served:
        served.create("t", properties=properties)
        served.write("t", {"x": 1}, id="a", timestamp="2026-01-01T00:00:00Z")
        served.write("t", {"x": 1}, id="b")
        served.flush("t")
        served.write("t", {"x": 2}, id="a")
        expected = 1 if properties.get("primary_key") == "id" else 2
        assert len(served.records("t", "a")) == expected
        assert served.request("DELETE", "/v1/data/t/a").json()["deleted"] == expected
        assert served.records("t", "a") == []
        assert served.request("DELETE", "/v1/data/t/a").json()["deleted"] == 0
        served.flush("t")
        assert served.rows("SELECT id FROM t") == [{"id": "b"}]


def test_a_primary_key_makes_a_write_an_upsert(tmp_path: Path) -> None:
    with ServedLake(tmp_path) as served:
        served.create("t", properties={"primary_key": "id"}, retention_days=36500)
        served.write("t", {"x": 1})
        served.flush("t")
        served.write("t", {"x": 2}, timestamp="2026-02-01T00:00:00Z")
        assert served.payloads("t") == [{"x": 2}]
        assert query(served, "SELECT count(*) AS n, max(payload.x) AS x FROM t") == [{"n": 1, "x": 2}]


def bodies(records: list[dict[str, Any]]) -> dict[str, tuple[bytes, dict[str, str]]]:
    lines = b"\n".join(json.dumps(record).encode() for record in records) + b"\n"
    array = json.dumps(records).encode()
    rows = pa.Table.from_pylist(records, pa.schema([("id", pa.string()), ("timestamp", pa.string()), *_payload()]))
    moments = pa.compute.cast(rows["timestamp"], pa.timestamp("us", "UTC"))
    rows = rows.set_column(1, "timestamp", moments)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    ndjson = {"content-type": "application/x-ndjson"}
    return {
        "json": (array, {"content-type": "application/json; charset=utf-8"}),
        "ndjson": (lines, ndjson),
        "gzip": (gzip.compress(lines, mtime=0), {**ndjson, "content-encoding": "gzip"}),
        "zstd": (zstandard.compress(lines), {**ndjson, "content-encoding": "zstd"}),
        "arrow": (sink.getvalue().to_pybytes(), {"content-type": "application/vnd.apache.arrow.stream"}),
    }


def _payload() -> list[tuple[str, pa.DataType]]:
    return [("payload", pa.struct([("n", pa.int64()), ("s", pa.string()), ("l", pa.list_(pa.float64()))]))]


@pytest.mark.parametrize("kind", ["json", "ndjson", "gzip", "zstd", "arrow"])
def test_a_batch_is_the_same_rows_however_it_comes(tmp_path: Path, kind: str) -> None:
    records = [
        {
            "id": f"k{n}",
            "timestamp": f"2026-01-{n + 1:02}T10:00:00.5Z",
            "payload": {"n": 2**60 + n, "s": "é", "l": [0.5]},
        }
        for n in range(5)
    ]
    with ServedLake(tmp_path) as served:
        served.create("t")
        for _ in range(2):
            # The second time the columns are known.
            body, headers = bodies(records)[kind]
            answer = served.request("POST", "/v1/data/batch?table=t", content=body, headers=headers)
            assert (answer.status_code, answer.json()) == (
                200,
                {"success": True, "message": "5 records written", "written": 5},
            )
        assert served.payloads("t", "k3") == [records[3]["payload"]] * 2
        served.flush("t")
        found = served.rows("SELECT id, dt, payload.n AS n FROM t WHERE id = 'k3'")
        assert [(row["id"], str(row["dt"]), row["n"]) for row in found] == [("k3", "2026-01-04", 2**60 + 3)] * 2


def test_a_batch_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    wrong = {**RECORD, "timestamp": "never"}
    with ServedLake(tmp_path) as served:
        served.create("t")
        answer = served.request("POST", "/v1/data/batch?table=t", json=[RECORD, wrong, RECORD])
        assert answer.status_code == 400
        assert "record 1" in answer.json()["detail"]
        assert served.records("t") == []
        answer = served.request("POST", "/v1/data/batch?table=t&partial=true", json=[RECORD, wrong, 7, RECORD])
        assert answer.status_code == 200
        assert (answer.json()["written"], [one["place"] for one in answer.json()["refused"]]) == (2, [1, 2])
        assert len(served.records("t")) == 2
        empty = served.request("POST", "/v1/data/batch?table=t", json=[])
        assert (empty.status_code, empty.json()["written"]) == (200, 0)


@pytest.mark.parametrize(
    ("path", "content", "headers", "status"),
    [
        ("/v1/data/batch", b"[]", {}, 400),
        ("/v1/data/batch?table=nowhere", b"[]", {}, 404),
        ("/v1/data/batch?table=t", b"{}", {}, 400),
        ("/v1/data/batch?table=t", b"[]", {"content-type": "text/csv"}, 400),
        ("/v1/data/batch?table=t", b"[]", {"content-encoding": "br"}, 400),
        ("/v1/data/batch?table=t", b"no gzip", {"content-encoding": "gzip"}, 400),
        (
            "/v1/data/batch?table=t",
            gzip.compress(b"[" + b" " * 100_000 + b"]", mtime=0),
            {"content-encoding": "gzip"},
            413,
        ),
        ("/v1/data/batch?table=t", gzip.compress(b"[]", mtime=0)[:-4], {"content-encoding": "gzip"}, 400),
        ("/v1/data/batch?table=t", b"no arrow", {"content-type": "application/vnd.apache.arrow.stream"}, 400),
        ("/v1/data/batch?table=t&partial=maybe", b"[]", {}, 400),
        ("/v1/data", b" " * 3000, {}, 413),
        ("/v1/query", b'{"sql":"SELECT 1; SELECT 2"}', {}, 400),
        ("/v1/query", b'{"sql":"SELECT * FROM nowhere"}', {}, 404),
        ("/v1/query", b'{"sql":"SELEC 1"}', {}, 400),
        ("/nowhere", b"", {}, 404),
    ],
)
def test_bad_requests_are_problems(
    tmp_path: Path, path: str, content: bytes, headers: dict[str, str], status: int
) -> None:
    with ServedLake(tmp_path, most_body_bytes=2048) as served:
        served.create("t")
        answer = served.request("POST", path, content=content, headers=headers)
        assert answer.status_code == status, answer.text
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json()["status"] == status


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (UnavailableError("a secret of ours"), 503),
        (CommitUnknownError("a secret of ours"), 500),
        (InternalError("a secret of ours"), 500),
        (ZeroDivisionError("a secret of ours"), 500),
    ],
)
def test_no_defect_reaches_a_client(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, status: int
) -> None:
    with ServedLake(tmp_path) as served:
        served.create("t")

        def fail(*_: object) -> None:
            raise error

        monkeypatch.setattr(served.service.ingest.lane("t").ingest, "_put", fail)
        monkeypatch.setattr(type(served.service), "health", fail)
        for answer in (
            served.request("POST", "/v1/data", json={"table": "t", **RECORD}),
            served.request("GET", "/v1/health/ready"),
        ):
            assert answer.status_code == status
            assert "secret" not in answer.text
        monkeypatch.undo()


def test_arrow_answers_and_parameters(tmp_path: Path) -> None:
    with ServedLake(tmp_path) as served:
        served.create("t")
        served.write("t", {"x": 1})
        accept = {"accept": "application/vnd.apache.arrow.stream"}
        body = {"sql": "SELECT id, payload.x AS x FROM t WHERE payload.x = $x", "params": {"x": 1}}
        answer = served.request("POST", "/v1/query", json=body, headers=accept)
        assert answer.headers["content-type"] == "application/vnd.apache.arrow.stream"
        assert pa.ipc.open_stream(answer.content).read_all().to_pylist() == [{"id": "a", "x": 1}]
        wrong = served.request("POST", "/v1/query", json={"sql": "SELECT nothing FROM t"}, headers=accept)
        assert wrong.status_code == 400


@pytest.mark.parametrize("warnings", [[], ['node "two" is gone', "é"]])
def test_large_answers_are_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, warnings: list[str]) -> None:
    start = QueryEngine.run

    def warned(engine: QueryEngine, request: QueryRequest, *more: Any) -> Any:
        request.warnings.extend(warnings)
        return start(engine, request, *more)

    monkeypatch.setattr(QueryEngine, "run", warned)
    body = {"sql": "SELECT range AS n, 'é\"\n😀' AS t FROM range(3000)"}
    with ServedLake(tmp_path) as served:
        small = served.request("POST", "/v1/query", json=body)
        monkeypatch.setattr("lakelet.service.query.json_text._MEMORY_BYTES", 100)
        large = served.request("POST", "/v1/query", json=body)
        assert large.content == small.content
        assert [one.headers["content-length"] for one in (large, small)] == [str(len(small.content))] * 2
        assert large.headers.get_list("lakelet-warning") == small.headers.get_list("lakelet-warning")
        assert len(json.loads(large.json()["result_json"])) == 3000
        assert large.json().get("warnings", []) == warnings


def test_a_large_answer_that_fails_in_the_middle_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lakelet.service.query.json_text._MEMORY_BYTES", 100)
    with ServedLake(tmp_path, query_rows=500_000) as served:
        answer = served.request("POST", "/v1/query", json={"sql": "SELECT range AS n FROM range(500001)"})
        assert (answer.status_code, "more than 500000 rows" in answer.json()["detail"]) == (400, True)


def test_health_says_that_flushes_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ServedLake(tmp_path) as served:
        served.create("t")
        served.write("t", {"x": 1})
        assert served.request("GET", "/v1/health/ready").status_code == 200
        writer = served.service.tables.open("t").writer
        assert writer is not None

        def fail(*_: object, **__: object) -> None:
            raise UnavailableError("the store is down")

        with monkeypatch.context() as broken:
            broken.setattr("lakelet.realtime.flush_worker.flush_memtable", fail)
            with pytest.raises(UnavailableError):
                writer.flush()
            answer = served.request("GET", "/v1/health/ready")
            assert (answer.status_code, answer.json()["status"]) == (503, "degraded")
            assert served.request("GET", "/v1/health/live").status_code == 200
            # Rows are taken, and safe in the log.
            served.write("t", {"x": 2}, id="b")
        writer.flush()
        assert served.request("GET", "/v1/health/ready").status_code == 200
        assert served.rows("SELECT count(*) AS n FROM t") == [{"n": 2}]


def test_full_memtables_refuse_a_record_and_say_when_to_come_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise UnavailableError("the store is down")

    monkeypatch.setitem(served_table._WRITER_OPTIONS, "memtable.wait-timeout", "20 ms")
    with ServedLake(tmp_path) as served:
        served.create("T", properties={"memtable.size": "300 b", "memtable.flush-threshold": "0.1"})
        served.write("T", {"x": 0}, id="first")
        served.flush("T")
        with monkeypatch.context() as broken:
            broken.setattr("lakelet.realtime.flush_worker.flush_memtable", fail)
            taken, refused = [], None
            while refused is None:
                body = {**RECORD, "table": "T", "id": f"i{len(taken)}"}
                answer = served.request("POST", "/v1/data", json=body)
                refused = answer if answer.status_code != 200 else None
                taken += [body["id"]] if refused is None else []
            assert taken
            assert (refused.status_code, refused.json()["code"]) == (503, "unavailable")
            assert int(refused.headers["retry-after"]) >= 1
        while served.request("GET", "/v1/health").json()["details"]["buffered_records"] != "0":
            with suppress(UnavailableError):
                served.flush("T")
        assert sorted(row["id"] for row in served.rows("SELECT id FROM `T`")) == ["first", *taken]


def test_a_full_disk_refuses_rows_until_a_flush_frees_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ServedLake(tmp_path) as served:
        served.create("T")
        served.write("T", {"text": "x"}, id="first")
        with monkeypatch.context() as patch:
            disk = SmallDisk(tmp_path / "wal", 200_000, patch)
            taken = ["first"]
            while True:
                body = {"table": "T", "id": f"i{len(taken)}", "timestamp": MORNING, "payload": {"text": "x" * 20_000}}
                answer = served.request("POST", "/v1/data", json=body)
                if answer.status_code != 200:
                    break
                taken.append(body["id"])
            assert (answer.status_code, answer.json()["code"]) == (503, "unavailable")
            health = served.request("GET", "/v1/health").json()
            assert health["status"] == "degraded"
            assert "No space left" in health["details"]["rows.T"]
            # Another table, or whatever else is on the disk, has taken the rest.
            (tmp_path / "wal" / "other").write_bytes(bytes(disk.size - disk.used))
            served.flush("T")
            taken.append(served.write("T", {"text": "y"}, id="last") and "last")
            served.flush("T")
        assert served.request("GET", "/v1/health").json()["status"] == "ok"
        assert sorted(row["id"] for row in served.rows("SELECT id FROM `T`")) == sorted(taken)


def test_metrics_are_the_text_that_prometheus_reads(tmp_path: Path) -> None:
    with ServedLake(tmp_path) as served:
        served.create("t")
        for _ in range(3):
            served.write("t", {"x": 1})
        served.request("GET", "/v1/data/t/secret-id")
        text = served.request("GET", "/metrics").text
        lines = text.splitlines()
        assert "lakelet_records_written_total 3" in lines
        assert 'lakelet_requests_total{transport="rest",route="/v1/data",method="POST",status="200"} 3' in lines
        assert 'lakelet_buffered_records{table="t"} 3' in lines
        assert "secret-id" not in text
        for line in lines:
            assert line.startswith("# ") or len(line.rsplit(" ", 1)) == 2
            if not line.startswith("#"):
                float(line.rsplit(" ", 1)[1])


def test_metrics_say_how_far_changelogs_are_behind(tmp_path: Path) -> None:
    with ServedLake(tmp_path) as served:
        served.create("plain")
        served.lake.create_database("shop")
        columns = [("id", "STRING NOT NULL"), ("timestamp", "TIMESTAMP(6) WITH LOCAL TIME ZONE"), ("v", "BIGINT")]
        options = {"changelog-producer": "lookup", "bucket": "1"}
        table = served.lake.create_table("shop.t", columns, primary_key=["id"], options=options)
        served.create("t", properties={"attach": "shop.t"})
        table.set_options({"write-only": "true"})
        table.write([{"id": name, "timestamp": None, "v": 1} for name in "ab"])
        lines = served.request("GET", "/metrics").text.splitlines()
        assert 'lakelet_changelog_waiting_rows{table="t"} 2' in lines
        assert not any("plain" in line for line in lines if line.startswith("lakelet_changelog"))
        (age,) = [line for line in lines if line.startswith('lakelet_changelog_lag_seconds{table="t"}')]
        assert float(age.rsplit(" ", 1)[1]) >= 0
        table.compact()
        lines = served.request("GET", "/metrics").text.splitlines()
        assert 'lakelet_changelog_waiting_rows{table="t"} 0' in lines
        assert 'lakelet_changelog_lag_seconds{table="t"} 0.0' in lines


def test_a_request_keeps_its_own_id(tmp_path: Path) -> None:
    with ServedLake(tmp_path) as served:
        given = served.request("GET", "/v1/tables", headers={"x-request-id": "mine-7"})
        assert given.headers["x-request-id"] == "mine-7"
        made = served.request("GET", "/v1/tables", headers={"x-request-id": "no\tid"})
        assert made.headers["x-request-id"] != "no\tid"


def test_a_service_that_cannot_answer_now_says_when_and_whether_it_did_anything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ServedLake(tmp_path) as served:
        served.create("t")
        record = {"table": "t", **RECORD}

        def failed(*_: object) -> None:
            raise UnavailableError("the log could not be synced")

        monkeypatch.setattr(served.service.ingest.lane("t").ingest, "_put", failed)
        unknown = served.request("POST", "/v1/data", json=record)
        monkeypatch.undo()
        monkeypatch.setattr(served.service, "_stopping", True)
        refused = served.request("POST", "/v1/data", json=record)
        monkeypatch.undo()
    for answer, nothing_done in ((unknown, None), (refused, True)):
        assert (answer.status_code, answer.json()["code"]) == (503, "unavailable")
        assert answer.headers["retry-after"] == "1"
        assert answer.json().get("nothing_done") is nothing_done


@pytest.mark.parametrize(
    ("properties", "is_exact"), [({}, True), ({"primary_key": "id"}, False), ({"primary_key": "id, timestamp"}, False)]
)
def test_statistics_say_whether_the_count_is_exact(tmp_path: Path, properties: dict[str, str], is_exact: bool) -> None:
    with ServedLake(tmp_path) as served:
        served.create("t", properties=properties)
        for _ in range(2):
            served.write("t", {"x": 1})
            served.flush("t")
        served.write("t", {"x": 1})
        stats = served.request("GET", "/v1/tables/t").json()["stats"]
        assert stats["record_count_is_exact"] is is_exact
        (counted,) = query(served, "SELECT count(*) AS n FROM t")
        assert (stats["record_count"], counted["n"]) == (3, 3 if is_exact else 1)
