"""A client that sends a request for the first time is believed, unless the request may be late."""

from __future__ import annotations

import pytest

from lakelet.service.peers import claims_of_others
from lakelet.service.peers.claims_of_others import ClaimsOfOthers
from tests.unit.moving_clock import MovingClock

_ONE, _TWO = ("events", b"1"), ("events", b"2")


def test_nobody_is_believed_before_late_requests_have_come() -> None:
    clock = MovingClock()
    claims = ClaimsOfOthers(clock)
    assert not claims.is_first(_ONE)
    clock.move(minutes=5)
    assert claims.is_first(_ONE)


def test_what_others_asked_about_was_sent_before() -> None:
    clock = MovingClock()
    claims = ClaimsOfOthers(clock)
    clock.move(minutes=5)
    claims.note(_ONE)
    assert (claims.is_first(_ONE), claims.is_first(_TWO)) == (False, True)
    clock.move(minutes=59)
    assert not claims.is_first(_ONE)
    clock.move(minutes=1)
    assert claims.is_first(_ONE)


def test_where_too_much_was_asked_nobody_is_believed_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims_of_others, "_MOST_KEPT", 1)
    clock = MovingClock()
    claims = ClaimsOfOthers(clock)
    clock.move(minutes=5)
    claims.note(_ONE)
    claims.note(_ONE)
    assert claims.is_first(_TWO)
    claims.note(_TWO)
    assert not claims.is_first(("events", b"3"))
    clock.move(minutes=5)
    assert claims.is_first(("events", b"3"))
