"""Idempotency keys: a request that is repeated is written once and answered as before, after crashes and restarts, too."""

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from lakelet.errors import UnavailableError
from lakelet.service.access.access import Access
from lakelet.service.access.caller import ADMIN, EVERY_TABLE, Caller
from lakelet.service.ingest.request_keys import request_key, unit_key
from lakelet.service.values import BatchRequest, Record, RequestKey, WriteRequest
from tests.unit.realtime.written_table import kill
from tests.unit.service.served_lake import ANYBODY, MORNING, ServedLake

RECORD = {"table": "t", "id": "a", "timestamp": MORNING, "payload": {"x": 1}}


def send(served: ServedLake, key: str | None, path: str = "/v1/data", body: Any = RECORD) -> httpx.Response:
    headers = {} if key is None else {"Idempotency-Key": key}
    return served.request("POST", path, content=json.dumps(body), headers=headers)


def batch(*ids: str) -> list[dict[str, Any]]:
    return [{"id": id, "timestamp": MORNING, "payload": {"x": 1}} for id in ids]


def count(served: ServedLake, id: str = "a") -> int:
    return len(served.records("t", id))


def crash(served: ServedLake) -> None:
    """End the service with its rows in the logs, as if it was killed."""
    for opened in served.service.tables.all():
        if opened.writer is not None:
            kill(opened.writer)


@pytest.mark.parametrize("between", ["nothing", "flush", "restart", "crash", "flush and crash"])
def test_a_request_that_is_repeated_is_written_once(tmp_path: Path, between: str) -> None:
    with ServedLake(tmp_path) as served:
        served.create("t")
        first = send(served, "k1")
        assert first.json() == {"success": True, "message": "1 record written", "written": 1}
        if "flush" in between:
            served.flush("t")
        if "crash" in between:
            crash(served)
        if between in ("nothing", "flush"):
            again = send(served, "k1")
    if between not in ("nothing", "flush"):
        with ServedLake(tmp_path) as served:
            again = send(served, "k1")
            assert count(served) == 1
    assert (again.status_code, again.json()) == (200, {**first.json(), "repeated": True})
    with ServedLake(tmp_path) as served:
        assert count(served) == 1
        # Without a key, and under another one, it is another request.
        assert send(served, None).json() == first.json()
        assert send(served, "k2").json() == first.json()
        assert count(served) == 3


@pytest.mark.parametrize("kind", ["json", "ndjson", "partial", "nothing", "all refused"])
def test_a_batch_is_answered_as_the_first_time(tmp_path: Path, kind: str) -> None:
    path, headers = "/v1/data/batch?table=t", {"Idempotency-Key": "k", "content-type": "application/json"}
    records: list[Any] = batch(*(f"k{number}" for number in range(50)))
    if kind in ("partial", "all refused"):
        path += "&partial=true"
        records = [{"id": ""}, *(records if kind == "partial" else [])]
    if kind == "nothing":
        records = []
    content = json.dumps(records)
    if kind == "ndjson":
        headers["content-type"] = "application/x-ndjson"
        content = "\n".join(map(json.dumps, records))
    with ServedLake(tmp_path) as served:
        served.create("t")
        send(served, None, body={**RECORD, "payload": {"x": 1}})
        first = served.request("POST", path, content=content, headers=headers)
        assert first.status_code == 200, first.text
        crash(served)
    with ServedLake(tmp_path) as served:
        again = served.request("POST", path, content=content, headers=headers)
        assert again.json() == {**first.json(), "repeated": True}
        written = first.json()["written"]
        assert served.rows("SELECT count(*) AS n FROM t") == [{"n": 1 + written}]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/data", {**RECORD, "payload": {"x": 2}}),
        ("/v1/data/batch?table=t", batch("a")),
        ("/v1/data/batch?table=t&partial=true", batch("a")),
    ],
)
def test_another_request_under_a_used_key_is_a_problem(tmp_path: Path, path: str, body: Any) -> None:
    with ServedLake(tmp_path) as served:
        served.create("t")
        served.create("other")
        send(served, "k")
        for _ in range(2):
            answer = send(served, "k", path, body)
            assert (answer.status_code, answer.json()["code"]) == (409, "already-exists")
            assert "'k' was used for another request" in answer.json()["detail"]
            served.flush("t")
        assert count(served) == 1
        # Another table has keys of its own.
        assert send(served, "k", body={**RECORD, "table": "other"}).json()["written"] == 1


@pytest.mark.parametrize("key", ["", "a b", "x" * 256, "\x7f", "ä"])
def test_a_key_that_is_none_is_a_problem(tmp_path: Path, key: str) -> None:
    with ServedLake(tmp_path) as served:
        served.create("t")
        for path, body in (("/v1/data", RECORD), ("/v1/data/batch?table=t", batch("a"))):
            headers = {"Idempotency-Key": key.encode("latin-1")}
            answer = served.request("POST", path, content=json.dumps(body), headers=headers)
            assert (answer.status_code, answer.json()["code"]) == (400, "invalid")
        assert served.records("t") == []


def test_the_longest_key_and_one_that_was_refused_before_are_taken(tmp_path: Path) -> None:
    with ServedLake(tmp_path) as served:
        served.create("t")
        key = "~" * 255
        assert send(served, key, body={**RECORD, "timestamp": "no"}).status_code == 400
        assert send(served, key).json().get("repeated") is None
        assert send(served, key).json()["repeated"] is True
        assert count(served) == 1


def test_an_archived_table_still_answers_for_what_it_took(tmp_path: Path) -> None:
    with ServedLake(tmp_path) as served:
        served.create("t")
        send(served, "k")
        served.request("PATCH", "/v1/tables/t", json={"status": "archived"})
        assert send(served, "k").json()["repeated"] is True
        assert send(served, "other").status_code == 400


def test_a_deletion_takes_no_key(tmp_path: Path) -> None:
    with ServedLake(tmp_path) as served:
        served.create("t")
        send(served, "k")
        answer = served.request("DELETE", "/v1/data/t/a", headers={"Idempotency-Key": "d"})
        assert (answer.status_code, answer.json()["code"]) == (400, "invalid")
        assert count(served) == 1


class _Keys:
    def caller_of(self, key: str) -> Caller | None:
        return Caller(key, {EVERY_TABLE: ADMIN})


def test_each_api_key_has_keys_of_its_own(tmp_path: Path) -> None:
    with ServedLake(tmp_path, access=Access(_Keys())) as served:
        served.headers = {"authorization": "Bearer one"}
        served.create("t")
        assert send(served, "k").json().get("repeated") is None
        served.headers = {"authorization": "Bearer other"}
        assert send(served, "k").json().get("repeated") is None
        assert send(served, "k").json()["repeated"] is True
        assert count(served) == 2


def test_requests_at_the_same_time_under_one_key_are_written_once(tmp_path: Path) -> None:
    with ServedLake(tmp_path) as served:
        served.create("t")
        key, other = RequestKey("k", b"1" * 16), RequestKey("k", b"2" * 16)
        record = Record("a", 0, {"x": 1})
        service = served.service

        async def writes() -> list[Any]:
            singles = [service.write(WriteRequest("t", record, key), ANYBODY) for _ in range(20)]
            batches = [service.write_batch(BatchRequest("t", [record], False, other), ANYBODY) for _ in range(3)]
            return await asyncio.gather(*singles, *batches, return_exceptions=True)

        outcomes = served.run(writes())
        assert [one.written for one in outcomes[:20]] == [1] * 20
        assert [one.repeated for one in outcomes[:20]].count(False) == 1
        assert [type(one).__name__ for one in outcomes[20:]] == ["AlreadyExistsError"] * 3
        assert count(served) == 1


def test_a_twin_of_a_request_that_was_given_up_or_failed_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ServedLake(tmp_path) as served:
        served.create("t")
        request = WriteRequest("t", Record("a", 0, {"x": 1}), RequestKey("k", b"1" * 16))
        ingest = served.service.ingest.lane("t").ingest
        put = ingest._put
        calls: list[int] = []

        def fails_first(*given: Any) -> None:
            calls.append(1)
            if len(calls) == 1:
                raise UnavailableError("the disk is full")
            put(*given)

        monkeypatch.setattr(ingest, "_put", fails_first)

        async def writes() -> list[Any]:
            first = asyncio.ensure_future(served.service.write(request, ANYBODY))
            second = asyncio.ensure_future(served.service.write(request, ANYBODY))
            third = asyncio.ensure_future(served.service.write(request, ANYBODY))
            await asyncio.sleep(0)
            second.cancel()
            return await asyncio.gather(first, second, third, return_exceptions=True)

        first, second, third = served.run(writes())
        assert isinstance(first, UnavailableError)
        assert isinstance(second, asyncio.CancelledError)
        assert (third.written, third.repeated) == (1, False)
        assert count(served) == 1


def test_names_differ_where_callers_and_keys_do() -> None:
    pairs = [("a", "b"), ("ab", "c"), ("a", "bc"), ("", "abc")]
    names = {found.name for caller, key in pairs if (found := unit_key(caller, RequestKey(key, b""))) is not None}
    assert len(names) == len(pairs)
    assert unit_key("a", None) is None
    assert request_key("k", b"a", b"bc") != request_key("k", b"ab", b"c")
