"""The audit log tells who did what over both edges, and no log ever tells a secret or a payload."""

import asyncio
import hashlib
import json
import logging
import os
import stat
from pathlib import Path
from typing import Any

import grpc
import pytest

from lakelet.errors import InvalidError
from lakelet.protos.message_types import LAKELET, OLAP, message_class
from lakelet.service.access import audit_log
from lakelet.service.access.access import Access
from lakelet.service.access.audit_log import AuditedRequest, AuditLog
from lakelet.service.access.caller import ANYBODY, Caller
from lakelet.service.access.key_store import KeyStore
from lakelet.service.log_lines import JsonLines
from tests.unit.service.grpc.running_service import running
from tests.unit.service.served_lake import MORNING, ServedLake

PAYLOAD = "a-payload-that-nobody-logs"


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def request(action: str, result: str = "ok", caller: Caller = ANYBODY, **more: Any) -> AuditedRequest:
    return AuditedRequest(action, caller, "rest", "127.0.0.1:1", "r-1", result, 0.25, **more)


def bearer(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"}


def test_rest_tells_who_did_what_and_no_log_tells_a_secret(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "")
    audit = AuditLog(str(tmp_path / "audit"))
    store = KeyStore(str(tmp_path / "keys.json"), when_changed=audit.keys_changed)
    assert store.list() == []
    root, reader = store.create("root", {"*": "admin"}), store.create("reader", {"t": "read"})
    revoked = store.create("gone", {"*": "admin"})
    numbers = [key.split("_")[1] for key in (root, reader, revoked)]
    store.revoke(numbers[2])
    record = {"table": "t", "id": "a", "timestamp": MORNING, "payload": {"x": PAYLOAD}}
    sql = f"SELECT count(*) FROM t WHERE payload.x = '{PAYLOAD}'"
    with ServedLake(tmp_path, access=Access(store, audit=audit)) as served:
        for key, method, path, body in (
            (root, "POST", "/v1/tables", {"table_name": "t"}),
            (root, "POST", "/v1/data", record),
            (root, "POST", "/v1/data", {**record, "id": ""}),
            (root, "POST", "/v1/data/batch?table=t", [{name: record[name] for name in ("id", "timestamp", "payload")}]),
            (root, "POST", "/v1/query", {"sql": sql}),
            (root, "POST", "/v1/query", {"sql": "SELEC"}),
            (root, "PATCH", "/v1/tables/t", {"status": "active"}),
            (root, "POST", "/v1/backup/trigger", {"table": "t"}),
            (root, "POST", "/v1/backup/recover", {"table": "t"}),
            (root, "GET", "/v1/tables", None),
            (reader, "POST", "/v1/data", record),
            (reader, "DELETE", "/v1/data/t/a", None),
            (reader, "GET", "/v1/nodes", None),
            (revoked, "GET", "/v1/tables/t", None),
            (root + "x", "GET", "/nowhere", None),
            (root, "DELETE", "/v1/data/t/a", None),
            (root, "DELETE", "/v1/tables/t?cascade=true", None),
        ):
            served.request(method, path, json=body, headers={**bearer(key), "x-request-id": "r-9"})
    audit.close()
    found = lines_of(tmp_path / "audit")
    told = [(one["action"], one.get("table"), one["result"], one["key"]) for one in found if "result" in one]
    first, second, _ = numbers
    assert told == [
        ("create_table", "t", "ok", first),
        ("query", None, "ok", first),
        ("query", None, "invalid", first),
        ("alter_table", "t", "ok", first),
        ("trigger_backup", "t", "invalid", first),
        ("recover", "t", "invalid", first),
        ("write", "t", "permission-denied", second),
        ("delete_rows", "t", "permission-denied", second),
        ("nodes", None, "permission-denied", second),
        ("GET /v1/tables/t", None, "unauthenticated", ""),
        ("GET /nowhere", None, "unauthenticated", ""),
        ("delete_rows", "t", "ok", first),
        ("drop_table", "t", "ok", first),
    ]
    counted = {name: value for name, value in found[-1].items() if name not in ("time", "since", "caller")}
    assert counted == {"action": "writes", "table": "t", "key": first, "requests": 2, "refused": 1}
    (query,) = [one for one in found if one.get("sql_sha256") == hashlib.sha256(sql.encode()).hexdigest()]
    assert (query["edge"], query["request_id"], query["caller"]) == ("rest", "r-9", f"key {first} (root)")
    keys = [(one["action"], one["key"]) for one in found if one["action"].endswith("_key")]
    assert set(keys) >= {("create_key", first), ("create_key", second)}
    formatted = [JsonLines().format(one) for one in caplog.records]
    everything = "\n".join([(tmp_path / "audit").read_text(), *formatted])
    for key in (root, reader, revoked):
        assert key.split("_", 2)[2] not in everything
    assert PAYLOAD not in everything
    assert stat.S_IMODE(os.stat(tmp_path / "audit").st_mode) == 0o600


def test_grpc_tells_the_same(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "")
    audit = AuditLog(str(tmp_path / "audit"), sql="text", writes="each")
    store = KeyStore(str(tmp_path / "keys.json"))
    root, reader = store.create("root", {"*": "admin"}), store.create("reader", {"t": "read"})
    calls = [
        (root, OLAP, "CreateTable", {"table_name": "t"}),
        (root, OLAP, "Write", {"table": "t", "id": "a", "timestamp": MORNING, "payload": {"x": PAYLOAD}}),
        (root, OLAP, "Query", {"sql": "SELECT 1"}),
        (reader, LAKELET, "WriteBatch", {"table": "t"}),
        (root, OLAP, "RecoverData", {"table": "t"}),
        ("lk_x_y", OLAP, "ListTables", {}),
        (root, OLAP, "ListTables", {}),
        (root, OLAP, "DropTable", {"table_name": "t"}),
    ]

    async def run() -> None:
        from google.protobuf import json_format

        async with running(tmp_path, store, audit=audit) as (_, channel):
            for key, service, method, fields in calls:
                package = service.rpartition(".")[0]
                call = channel.unary_unary(
                    f"/{service}/{method}",
                    request_serializer=lambda message: message.SerializeToString(),
                    response_deserializer=message_class(f"{package}.{method}Response").FromString,
                )
                asked = json_format.ParseDict(fields, message_class(f"{package}.{method}Request")())
                try:
                    await call(asked, metadata=(("authorization", f"Bearer {key}"), ("x-request-id", "r-7")))
                except grpc.aio.AioRpcError:
                    continue

    asyncio.run(run())
    audit.close()
    found = lines_of(tmp_path / "audit")
    assert [(one["action"], one.get("table"), one["result"]) for one in found] == [
        ("create_table", "t", "ok"),
        ("write", "t", "ok"),
        ("query", None, "ok"),
        ("write_batch", "t", "permission-denied"),
        ("recover", "t", "invalid"),
        ("list_tables", None, "unauthenticated"),
        ("drop_table", "t", "ok"),
    ]
    assert found[2]["sql"] == "SELECT 1"
    assert {(one["edge"], one["request_id"], one["peer"][:15]) for one in found} == {("grpc", "r-7", "ipv4:127.0.0.1:")}
    everything = (tmp_path / "audit").read_text() + "\n".join(JsonLines().format(one) for one in caplog.records)
    assert root.split("_", 2)[2] not in everything
    assert PAYLOAD not in everything


def test_a_log_that_was_moved_is_opened_again(tmp_path: Path) -> None:
    path = tmp_path / "audit"
    audit = AuditLog(str(path))
    audit.request(request("drop_table", table="one"))
    path.rename(tmp_path / "audit.1")
    audit.request(request("drop_table", table="two"))
    audit.reopen()
    audit.request(request("drop_table", table="three"))
    audit.close()
    assert [one["table"] for one in lines_of(tmp_path / "audit.1")] == ["one", "two"]
    assert [one["table"] for one in lines_of(path)] == ["three"]
    with pytest.raises(InvalidError, match=r"audit_file: .* cannot be written"):
        AuditLog(str(tmp_path / "none" / "audit"))


def test_without_a_file_lines_are_in_the_log_whatever_its_level(caplog: pytest.LogCaptureFixture) -> None:
    logging.getLogger("lakelet").setLevel(logging.ERROR)
    try:
        AuditLog().request(request("query", sql="SELECT 'x'"))
    finally:
        logging.getLogger("lakelet").setLevel(logging.NOTSET)
    (line,) = [json.loads(JsonLines().format(one)) for one in caplog.records]
    assert line["audit"]["action"] == "query"
    assert "SELECT" not in json.dumps(line)


def test_counts_and_names_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_log, "_MOST_COUNTS", 3)
    audit = AuditLog(str(tmp_path / "audit"))
    for number in range(10):
        audit.request(request("write", table=f"t{number}"))
        assert len(audit._counts) <= 3
    audit.close()
    assert len(lines_of(tmp_path / "audit")) == 10
    silent = AuditLog(str(tmp_path / "silent"), writes="none", sql="none")
    silent.request(request("write_batch", table="t"))
    silent.request(request("query", sql="SELECT 1"))
    silent.request(request("write", "permission-denied", table="t"))
    silent.close()
    assert [one["action"] for one in lines_of(tmp_path / "silent")] == ["query", "write"]
    assert "sql" not in (tmp_path / "silent").read_text()


def test_a_full_disk_fails_no_request(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    if not os.path.exists("/dev/full"):
        pytest.skip("/dev/full is not here")
    audit = AuditLog("/dev/full")
    audit.request(request("drop_table"))
    audit.close()
    assert any("the audit log cannot be written" in one.getMessage() for one in caplog.records)
