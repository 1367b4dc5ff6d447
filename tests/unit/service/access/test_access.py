"""Who may do what: keys, rights by table, and requests from elsewhere where no keys are asked for."""

import json
import stat
from pathlib import Path

import pytest

from lakelet.errors import CorruptionError, InvalidError, NotFoundError
from lakelet.service.access.access import Access, check_keys_required, is_loopback
from lakelet.service.access.caller import Caller
from lakelet.service.access.key_store import KeyStore, first_admin_key, keys_path
from tests.unit.service.served_lake import MORNING, ServedLake


def bearer(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"}


def test_rights_include_the_lesser_ones() -> None:
    caller = Caller("x", {"orders": "write", "*": "read"})
    assert caller.may("read", "orders")
    assert caller.may("write", "orders")
    assert not caller.may("admin", "orders")
    assert caller.may("read", "users")
    assert not caller.may("write", "users")
    assert not caller.is_admin
    assert Caller("y", {"*": "admin"}).is_admin
    assert not Caller("nobody").may("read", "orders")


def test_a_key_is_kept_hashed_and_revoked_for_a_running_service(tmp_path: Path) -> None:
    path = tmp_path / "keys" / "keys.json"
    running, elsewhere = KeyStore(str(path)), KeyStore(str(path))
    key = elsewhere.create("loader", {"orders": "write"})
    secret = key.split("_", 2)[2]
    assert secret not in path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    found = running.caller_of(key)
    assert found is not None
    assert found.may("write", "orders")
    for wrong in ("", "lk", "lk_", key[:-1], key + "x", key.replace("lk_", "xx_"), "lk_00000000_" + secret):
        assert running.caller_of(wrong) is None
    (listed,) = running.list()
    elsewhere.revoke(listed.id)
    assert running.caller_of(key) is None
    with pytest.raises(NotFoundError):
        elsewhere.revoke("unknown")


def test_keys_that_make_no_sense_are_refused(tmp_path: Path) -> None:
    store = KeyStore(str(tmp_path / "keys.json"))
    for name, rights in (("", {"*": "read"}), ("x", {}), ("x", {"*": "all"}), ("x", {"no table": "read"})):
        with pytest.raises(InvalidError):
            store.create(name, rights)
    assert store.list() == []
    (tmp_path / "keys.json").write_text("{}")
    with pytest.raises(CorruptionError):
        store.list()


def test_the_first_start_makes_one_admin_key(tmp_path: Path) -> None:
    store = KeyStore(keys_path(None, str(tmp_path)))
    made = first_admin_key(store)
    assert made is not None
    assert first_admin_key(store) is None
    caller = store.caller_of(made)
    assert caller is not None
    assert caller.is_admin
    with pytest.raises(InvalidError):
        keys_path(None, "s3://bucket")


def test_every_operation_asks_for_its_right(tmp_path: Path) -> None:
    store = KeyStore(str(tmp_path / "keys.json"))
    admin = store.create("admin", {"*": "admin"})
    writer = store.create("writer", {"mine": "write"})
    reader = store.create("reader", {"mine": "read"})
    record = {"table": "mine", "id": "a", "timestamp": MORNING, "payload": {"x": 1}}
    with ServedLake(tmp_path, access=Access(store)) as served:
        assert served.request("GET", "/v1/tables").status_code == 401
        assert served.request("GET", "/v1/tables", headers=bearer("lk_x_y")).headers["www-authenticate"]
        assert served.request("GET", "/metrics").status_code == 401
        for name in ("mine", "other"):
            made = served.request("POST", "/v1/tables", json={"table_name": name}, headers=bearer(admin))
            assert made.status_code == 201
        assert served.request("POST", "/v1/data", json=record, headers=bearer(writer)).status_code == 200
        for key, method, path, body in (
            (reader, "POST", "/v1/data", record),
            (reader, "POST", "/v1/data/batch?table=mine", [record]),
            (reader, "DELETE", "/v1/data/mine/a", None),
            (writer, "POST", "/v1/data", {**record, "table": "other"}),
            (writer, "GET", "/v1/data/other/a", None),
            (writer, "GET", "/v1/tables/other", None),
            (writer, "DELETE", "/v1/tables/mine", None),
            (writer, "PATCH", "/v1/tables/mine", {}),
            (writer, "POST", "/v1/tables", {"table_name": "third"}),
        ):
            answer = served.request(method, path, json=body, headers=bearer(key))
            assert (answer.status_code, answer.json()["code"]) == (403, "permission-denied"), (method, path)
        listed = served.request("GET", "/v1/tables", headers=bearer(reader)).json()
        assert [one["name"] for one in listed["tables"]] == ["mine"]
        allowed = served.request("POST", "/v1/query", json={"sql": "SELECT id FROM mine"}, headers=bearer(reader))
        assert json.loads(allowed.json()["result_json"]) == [{"id": "a"}]
        hidden = served.request("POST", "/v1/query", json={"sql": "SELECT id FROM other"}, headers=bearer(reader))
        assert hidden.status_code == 404
        assert served.request("GET", "/v1/health/live").status_code == 200
        assert served.request("GET", "/v1/health").json()["details"] == {}


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "localhost:8080"}, 200),
        ({"host": "127.0.0.1:8080"}, 200),
        ({"host": "[::1]:8080"}, 200),
        ({"host": "evil.example"}, 403),
        ({"host": "127.0.0.1.evil.example"}, 403),
        ({"host": "localhost", "origin": "http://localhost:3000"}, 200),
        ({"host": "localhost", "origin": "https://evil.example"}, 403),
        ({"host": "localhost", "origin": "null"}, 403),
    ],
)
def test_without_keys_requests_come_from_this_machine(tmp_path: Path, headers: dict[str, str], status: int) -> None:
    with ServedLake(tmp_path) as served:
        assert served.request("GET", "/v1/tables", headers=headers).status_code == status


def test_keys_are_off_on_a_loopback_address_only() -> None:
    assert is_loopback("127.0.0.2")
    assert not is_loopback("0.0.0.0")
    assert not check_keys_required("127.0.0.1", require_keys=None)
    assert check_keys_required("127.0.0.1", require_keys=True)
    assert check_keys_required("0.0.0.0", require_keys=None)
    with pytest.raises(InvalidError):
        check_keys_required("0.0.0.0", require_keys=False)
