"""Requests are sent again only where nothing can be done twice."""

from collections.abc import Callable
from typing import Any

import pytest

from lakelet.client import Client, RepeatPolicy
from lakelet.errors import (
    CommitUnknownError,
    InternalError,
    InvalidError,
    LakeletError,
    OverloadedError,
    UnavailableError,
)
from tests.unit.client.scripted_server import CUT, HANG, Answer, problem, scripted
from tests.unit.moving_clock import MovingClock

RECORDS = Answer(document={"records": [], "total": 0})
WRITTEN = Answer(document={"success": True, "written": 1})
DELETED = Answer(document={"success": True, "deleted": 3})
HEALTHY = Answer(document={"status": "ok", "details": {}})
GATEWAY = Answer(502, body=b"<html>bad gateway</html>", headers={"content-type": "text/html"})
BUSY = problem("overloaded", 429, headers={"retry-after": "2"})
DOWN = problem("unavailable", 503)
BACK_SOON = problem("unavailable", 503, nothing_done=True, headers={"retry-after": "1"})
LATER = problem("unavailable", 503, headers={"retry-after": "1"})


class Waits(MovingClock):
    """Notes waits instead of waiting."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.seconds.append(seconds)
        super().sleep(seconds)


class NoJitter:
    def uuid(self) -> str:
        return "u"

    def jitter(self) -> float:
        return 1.0


def client_of(address: str, clock: Any = None, **more: Any) -> Client:
    return Client(address, clock=clock or Waits(), ids=NoJitter(), **more)


def write(client: Client) -> object:
    return client.write("t", "a", "2026-01-31T10:00:00Z", {})


READS: list[tuple[Callable[[Client], object], Answer]] = [
    (lambda client: client.get("t", "a"), RECORDS),
    (lambda client: client.list_tables(), Answer(document={"tables": []})),
    (lambda client: client.health(), HEALTHY),
]
WRITES: list[tuple[Callable[[Client], object], Answer]] = [
    (write, WRITTEN),
    (lambda client: client.write_many("t", [{"id": "a", "timestamp": "2026-01-31T10:00:00Z", "payload": {}}]), WRITTEN),
]
CHANGES: list[tuple[Callable[[Client], object], Answer]] = [
    (lambda client: client.delete("t", "a"), DELETED),
    (lambda client: client.drop_table("t", if_exists=True), Answer(document={"files_deleted": 0})),
]


@pytest.mark.parametrize("fault", [CUT, GATEWAY, DOWN, BACK_SOON, BUSY])
@pytest.mark.parametrize(("call", "answer"), READS)
def test_a_read_is_sent_again(call: Callable[[Client], object], answer: Answer, fault: Answer | str) -> None:
    with scripted(fault, fault, answer) as server, client_of(server.address) as client:
        call(client)
    assert len(server.seen) == 3


@pytest.mark.parametrize("fault", [BUSY, BACK_SOON])
@pytest.mark.parametrize(("call", "answer"), [*WRITES, *CHANGES])
def test_a_change_that_was_refused_is_sent_again(
    call: Callable[[Client], object], answer: Answer, fault: Answer
) -> None:
    with scripted(fault, answer) as server, client_of(server.address) as client:
        call(client)
    assert len(server.seen) == 2
    assert server.seen[0].body == server.seen[1].body


LIMITED = Answer(429, body=b"slow down", headers={"content-type": "text/plain"})


@pytest.mark.parametrize("fault", [CUT, GATEWAY, DOWN, LATER, LIMITED, Answer(length=100, closes=True)])
@pytest.mark.parametrize(("call", "answer"), WRITES)
def test_a_write_is_sent_again_under_its_key(
    call: Callable[[Client], object], answer: Answer, fault: Answer | str
) -> None:
    with scripted(fault, fault, answer) as server, client_of(server.address) as client:
        call(client)
    keys = {seen.headers["idempotency-key"] for seen in server.seen}
    assert (len(server.seen), len(keys)) == (3, 1)
    assert len({seen.body for seen in server.seen}) == 1


@pytest.mark.parametrize(
    "last", [DOWN, BUSY, BACK_SOON, CUT, problem("invalid", 400), problem("permission-denied", 403)]
)
def test_a_write_that_failed_after_an_attempt_without_answer_is_unknown(last: Answer | str) -> None:
    with (
        scripted(CUT, *[last] * 9) as server,
        client_of(server.address, repeats=RepeatPolicy(attempts=3)) as client,
        pytest.raises(CommitUnknownError, match="unknown"),
    ):
        write(client)


def test_a_write_says_that_it_was_not_sent_before_until_it_may_be_written() -> None:
    answers = (BUSY, BACK_SOON, CUT, DOWN, BUSY, WRITTEN, WRITTEN)
    with scripted(*answers) as server, client_of(server.address, repeats=RepeatPolicy(attempts=9)) as client:
        write(client)
        client.write("t", "a", "2026-01-31T10:00:00Z", {}, idempotency_key="mine")
    assert [seen.headers.get("idempotency-first") for seen in server.seen] == ["true"] * 3 + [None] * 4


def test_writes_have_keys_of_their_own_or_those_of_the_caller() -> None:
    rows = [{"id": f"{number}", "timestamp": "2026-01-31T10:00:00Z", "payload": {}} for number in range(3)]
    with scripted(*[WRITTEN] * 9) as server, Client(server.address) as client:
        write(client)
        write(client)
        client.write_many("t", rows, batch_rows=1)
        client.write("t", "a", "2026-01-31T10:00:00Z", {}, idempotency_key="mine")
        client.write_many("t", rows, batch_rows=2, idempotency_key="mine")
        with pytest.raises(InvalidError, match="visible ASCII"):
            client.write("t", "a", "2026-01-31T10:00:00Z", {}, idempotency_key="two words")
    keys = [seen.headers["idempotency-key"] for seen in server.seen]
    assert len(set(keys[:5])) == 5
    assert keys[5:] == ["mine", "mine-0", "mine-1"]


@pytest.mark.parametrize("fault", [CUT, GATEWAY, DOWN, LATER, Answer(length=100, closes=True)])
@pytest.mark.parametrize(("call", "answer"), CHANGES)
def test_a_change_that_may_be_done_is_sent_once(
    call: Callable[[Client], object], answer: Answer, fault: Answer | str
) -> None:
    with (
        scripted(fault, answer) as server,
        client_of(server.address) as client,
        pytest.raises(CommitUnknownError, match="unknown"),
    ):
        call(client)
    assert len(server.seen) == 1


@pytest.mark.parametrize(("call", "kind"), [(write, CommitUnknownError), (Client.health, UnavailableError)])
def test_a_request_that_takes_too_long_is_sent_once(call: Callable[[Client], object], kind: type[LakeletError]) -> None:
    with (
        scripted(HANG) as server,
        client_of(server.address, timeout_seconds=0.2) as client,
        pytest.raises(kind, match=r"no answer within 0\.2 seconds"),
    ):
        call(client)
    # The server may not have read the first by then; a second one would never come to its end.
    assert len(server.seen) <= 1


@pytest.mark.parametrize("answer", [problem("invalid", 400), problem("internal", 500)])
def test_an_error_is_told_at_once(answer: Answer) -> None:
    with (
        scripted(answer) as server,
        client_of(server.address) as client,
        pytest.raises((InvalidError, InternalError), match="found in"),
    ):
        client.health()
    assert len(server.seen) == 1


def test_without_a_service_nothing_is_done(unused_address: str) -> None:
    clock = Waits()
    with client_of(unused_address, clock) as client, pytest.raises(UnavailableError, match="nothing was done"):
        write(client)
    assert clock.seconds == [0.1, 0.2, 0.4, 0.8]


def test_waits_grow_and_retry_after_makes_them_longer() -> None:
    clock = Waits()
    with scripted(BUSY, DOWN, BUSY, HEALTHY) as server, client_of(server.address, clock) as client:
        client.health()
    assert clock.seconds == [2.0, 0.2, 2.0]


def test_retry_after_may_be_a_date() -> None:
    clock = Waits()
    # 1,800,000,000 seconds since 1970, and seven more.
    later = problem("overloaded", 429, headers={"retry-after": "Fri, 15 Jan 2027 08:00:07 GMT"})
    with scripted(later, WRITTEN) as server, client_of(server.address, clock) as client:
        write(client)
    assert 6.9 < clock.seconds[0] <= 7.0


def test_a_wait_beyond_the_longest_is_an_error() -> None:
    clock = Waits()
    busy = problem("overloaded", 429, headers={"retry-after": "3600"})
    with scripted(busy) as server, client_of(server.address, clock) as client, pytest.raises(OverloadedError) as raised:
        write(client)
    assert raised.value.retry_after_seconds == 3600.0
    assert clock.seconds == []


def test_attempts_are_bounded() -> None:
    with (
        scripted(*[DOWN] * 9) as server,
        client_of(server.address, repeats=RepeatPolicy(attempts=3)) as client,
        pytest.raises(UnavailableError),
    ):
        client.health()
    assert len(server.seen) == 3
    with pytest.raises(InvalidError, match="attempts"):
        RepeatPolicy(attempts=0)


@pytest.mark.parametrize("attempt", [1, 2, 50, 5000])
def test_backoff_stays_in_bounds(attempt: int) -> None:
    policy = RepeatPolicy(attempts=10_000, first_wait_seconds=0.1, longest_wait_seconds=3)
    for jitter in (0.0, 0.5, 1.0):
        waited = policy.wait_seconds(attempt, None, jitter)
        assert waited is not None
        assert 0.05 <= waited <= 3


def test_a_proxy_that_limits_rates_is_no_refusal_of_the_service() -> None:
    with scripted(LIMITED, DELETED) as server, client_of(server.address) as client, pytest.raises(OverloadedError):
        client.delete("t", "a")
    assert len(server.seen) == 1
