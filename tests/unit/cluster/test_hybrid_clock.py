"""Numbers for the order of writes follow the fastest clock of all nodes, and no more."""

from __future__ import annotations

from lakelet.cluster.hybrid_clock import HybridClock
from tests.unit.moving_clock import MovingClock

_RTT_MS = 40


def _ask(one: HybridClock, other: HybridClock, clocks: tuple[MovingClock, MovingClock]) -> None:
    """Ask a node for its time; half of the way there and half of it back."""
    asked = one.now_ms()
    for _ in range(2):
        now, ahead = other.now_ms(), other.ahead_ms
        for clock in clocks:
            clock.move(minutes=_RTT_MS / 2 / 60_000)
    one.follow(now, ahead, asked)


def test_numbers_are_beyond_those_that_the_fastest_clock_gives_later() -> None:
    clocks = MovingClock(), MovingClock()
    clocks[1].move(hours=1)
    one, two = (HybridClock(clock) for clock in clocks)
    _ask(one, two, clocks)
    for clock in clocks:
        clock.move(minutes=5)
    # Nobody has heard of it.
    last = two.take(1000) + 999
    assert one.take() > last


def test_nodes_do_not_drive_each_other_on() -> None:
    clocks = MovingClock(), MovingClock(), MovingClock()
    clocks[1].move(hours=1)
    nodes = [HybridClock(clock) for clock in clocks]
    for _ in range(200):
        for one in nodes:
            for other in nodes:
                if other is not one:
                    _ask(one, other, clocks)
    assert 3_600_000 <= nodes[0].ahead_ms <= 3_600_000 + 2 * _RTT_MS
    assert nodes[1].ahead_ms <= 2 * _RTT_MS


def test_what_a_clock_that_has_left_was_ahead_is_passed_on() -> None:
    clocks = MovingClock(), MovingClock(), MovingClock()
    clocks[1].move(hours=1)
    one, two, three = (HybridClock(clock) for clock in clocks)
    _ask(one, two, clocks)
    _ask(three, one, clocks)
    assert three.ahead_ms >= 3_600_000 - _RTT_MS
    three.follow(0, 0, three.now_ms())
    assert three.ahead_ms >= 3_600_000 - _RTT_MS
