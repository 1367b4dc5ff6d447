"""Processes over one warehouse find what the others have created, and let go what they have dropped."""

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import lakelet
from lakelet.clock import SystemClock
from lakelet.errors import CorruptionError
from lakelet.service.tables import served_table, table_search
from lakelet.service.tables.registry import TableRegistry
from lakelet.service.tables.table_search import TableSearch
from tests.unit.service.served_lake import MORNING, ServedLake

BODY = {"table": "t", "id": "z", "timestamp": MORNING, "payload": {"a": 2}}


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """Known tables are looked at by every request."""
    monkeypatch.setattr(served_table, "_LOOK_SECONDS", 0.0)


@pytest.fixture
def one(tmp_path: Path) -> Iterator[ServedLake]:
    with ServedLake(tmp_path, logs="one") as served:
        yield served


@pytest.fixture
def two(tmp_path: Path, one: ServedLake) -> Iterator[ServedLake]:
    with ServedLake(tmp_path, logs="two") as served:
        yield served


def statuses(served: ServedLake) -> list[int]:
    """What requests for the table are answered with."""
    answers = [
        served.request("GET", "/v1/tables/t"),
        served.request("GET", "/v1/data/t/a"),
        served.request("POST", "/v1/query", json={"sql": "SELECT id FROM t"}),
        served.request("POST", "/v1/data", json=BODY),
        served.request("POST", "/v1/data/batch?table=t", json=[]),
        served.request("PATCH", "/v1/tables/t", json={"config": {"buffer_size": 7}}),
        served.request("DELETE", "/v1/data/t/z"),
    ]
    assert not any(str(served.settings.warehouse) in answer.text for answer in answers)
    return [answer.status_code for answer in answers]


@pytest.mark.parametrize("first", [0, 2, 3, 4])
def test_a_table_that_another_process_creates_is_found_by_any_request(
    one: ServedLake, two: ServedLake, first: int
) -> None:
    assert set(statuses(two)) == {404}
    one.create("t")
    one.write("t", {"a": 1})
    one.flush("t")
    if first == 2:
        assert (
            two.request("POST", "/v1/query", json={"sql": "SELECT id FROM t"}).json()["result_json"] == '[{"id":"a"}]'
        )
    elif first == 3:
        assert two.request("POST", "/v1/data", json=BODY).status_code == 200
    elif first == 4:
        assert [each["name"] for each in two.request("GET", "/v1/tables").json()["tables"]] == ["t"]
    assert two.payloads("t") == [{"a": 1}]
    assert set(statuses(two)) == {200}


def test_an_attached_table_is_found_a_foreign_one_is_not(one: ServedLake, two: ServedLake) -> None:
    columns = [("id", "STRING NOT NULL"), ("timestamp", "TIMESTAMP(6) WITH LOCAL TIME ZONE"), ("a", "BIGINT")]
    one.lake.create_database("shop")
    one.lake.create_table("shop.sales", columns)
    one.lake.create_table("default.t", columns)
    assert set(statuses(two)) == {404}
    one.create("sales", properties={"attach": "shop.sales"})
    two.write("sales", {"a": 1})
    assert set(statuses(two)) == {404}
    one.create("t", properties={"attach": "default.t"})
    assert set(statuses(two)) == {200}


@pytest.mark.parametrize("buffered", [True, False])
@pytest.mark.parametrize("how", ["cascade", "drop", "detach", "python"])
def test_a_table_that_another_process_drops_takes_no_rows(
    one: ServedLake, two: ServedLake, how: str, *, buffered: bool
) -> None:
    two.create("t")
    two.write("t", {"a": 1})
    if not buffered:
        two.flush("t")
    if how == "drop":
        assert one.request("GET", "/v1/tables/t").status_code == 200
        assert one.request("DELETE", "/v1/tables/t").status_code == 200
    elif how == "cascade":
        assert one.request("DELETE", "/v1/tables/t?cascade=true").status_code == 200
    elif how == "detach":
        table = one.lake.table("default.t")
        stored = [name for name in table.options if name.startswith("service.")]
        table.alter(lambda schema: table.with_options(schema, dict.fromkeys(stored)))
    else:
        one.lake.drop_table("default.t")
    assert set(statuses(two)) == {404}
    assert two.request("GET", "/v1/tables").json()["total"] == 0
    if how in ("drop", "detach"):
        # What was acknowledged is in the table that is left.
        assert two.rows("SELECT count(*) AS n FROM default.t") == [{"n": 1}]


@pytest.mark.parametrize("buffered", [True, False])
def test_a_table_that_another_process_creates_again_is_another_one(
    one: ServedLake, two: ServedLake, *, buffered: bool
) -> None:
    two.create("t")
    two.write("t", {"old": "x"})
    if not buffered:
        two.flush("t")
    one.request("DELETE", "/v1/tables/t?cascade=true")
    one.create("t", properties={"primary_key": "id"})
    assert two.records("t") == []
    two.write("t", {"new": 1})
    two.write("t", {"new": 2})
    assert two.payloads("t") == [{"new": 2}]
    assert [each["record_count"] for each in two.request("GET", "/v1/tables").json()["tables"]] == [1]


def test_a_table_is_listed_without_one_that_vanishes(one: ServedLake, two: ServedLake) -> None:
    for name in ("t", "u"):
        two.create(name)
    one.lake.drop_table("default.t")
    assert [each["name"] for each in two.request("GET", "/v1/tables").json()["tables"]] == ["u"]
    assert two.request("GET", "/v1/stats").json()["tables"] == 1


def test_unknown_names_have_few_looks_at_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_search, "_AT_ONCE", 0.001)
    monkeypatch.setattr(table_search, "_SHARE", 0.0)
    looks: list[str] = []
    found = TableRegistry._load_one
    monkeypatch.setattr(
        TableRegistry, "_load_one", lambda self, name, **more: (looks.append(name), found(self, name, **more))
    )
    with ServedLake(tmp_path) as served:
        for number in range(300):
            assert served.request("GET", f"/v1/tables/t{number}").status_code == 404
        for name in ("", "1t", "t.u", "../t", "t" * 65, "ü"):
            assert served.request("POST", "/v1/data", json={**BODY, "table": name}).status_code == 404
    assert 0 < len(looks) < 100


def test_a_store_that_is_slow_or_damaged_holds_up_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_search, "_PATIENCE_SECONDS", 0.01)
    lake = lakelet.connect(str(tmp_path))
    tables = TableRegistry(lake, tmp_path / "wal", SystemClock())
    answers, looks = threading.Event(), []

    def find(name: str) -> bool:
        looks.append(name)
        assert answers.wait(300)
        raise CorruptionError("damaged")

    async def leave(_: str) -> None:
        raise AssertionError

    async def ask() -> None:
        monkeypatch.setattr(tables, "find_by_name", find)
        with ThreadPoolExecutor(2) as threads:
            search = TableSearch(tables, threads, SystemClock(), leave)
            await asyncio.gather(*(search.know("t") for _ in range(20)))
            # The look goes on, and those who come later do not wait for it.
            monkeypatch.setattr(table_search, "_PATIENCE_SECONDS", 0.0)
            await asyncio.gather(*(search.know("t") for _ in range(20)))
            assert looks == ["t"]
            answers.set()

    asyncio.run(ask())
