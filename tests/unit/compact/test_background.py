"""Compaction in a thread: its result, its errors, its end."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from lakelet import ConflictError, InvalidError, UnavailableError
from lakelet.compact.background import BackgroundCompaction
from lakelet.model.snapshot import CommitKind
from tests.unit.compact.keyed_tables import keyed_table, rows, values

_PATIENCE = 300


def test_once() -> None:
    table = keyed_table({"bucket": "1", "write-only": "true"})
    for number in range(3):
        table.write(rows([1, number], f"{number}/"))
    expected = values(table)
    made = table.compact_in_background(full=True).result(_PATIENCE)
    assert made is not None
    assert made.commit_kind is CommitKind.COMPACT
    assert values(table) == expected
    with table.compact_in_background(full=True) as again:
        pass
    assert again.done
    assert again.result() is None


def test_errors_reach_the_result() -> None:
    def fail(stop: threading.Event) -> None:
        raise ConflictError("no luck")

    compaction = BackgroundCompaction(fail)
    with pytest.raises(ConflictError, match="no luck"):
        compaction.result(_PATIENCE)
    assert compaction.done
    with pytest.raises(ConflictError, match="no luck"), BackgroundCompaction(fail, every=1):
        pass


def test_an_error_of_the_block_comes_first() -> None:
    def until_stopped(stop: threading.Event) -> None:
        assert stop.wait(_PATIENCE)
        raise ConflictError("stopped")

    with pytest.raises(KeyError), BackgroundCompaction(until_stopped) as compaction:
        raise KeyError
    assert compaction.done


def test_it_repeats_until_it_is_cancelled() -> None:
    runs: list[int] = []
    waits: list[float] = []
    third = threading.Event()

    def run(stop: threading.Event) -> None:
        runs.append(len(runs))
        if len(runs) == 3:
            third.set()

    def wait(stop: threading.Event, seconds: float) -> bool:
        waits.append(seconds)
        # Time flies until the third run; then it is up to the cancel.
        return stop.wait(_PATIENCE if len(runs) >= 3 else 0)

    with BackgroundCompaction(run, every=30, wait=wait) as compaction:
        assert third.wait(_PATIENCE)
        assert not compaction.done
    assert compaction.done
    assert (runs, waits) == ([0, 1, 2], [30, 30, 30])
    assert compaction.result() is None


def test_cancel_stops_a_run() -> None:
    started = threading.Event()

    def run(stop: threading.Event) -> None:
        started.set()
        assert stop.wait(_PATIENCE)

    compaction = BackgroundCompaction(run)
    assert started.wait(_PATIENCE)
    with pytest.raises(UnavailableError, match="not done after 0"):
        compaction.result(0)
    compaction.cancel()
    assert compaction.result(_PATIENCE) is None


def test_a_repeated_one_keeps_its_last_snapshot() -> None:
    table = keyed_table({"bucket": "1", "write-only": "true"})
    table.write(rows([1], "x"))
    table.write(rows([1], "y"))
    twice = threading.Event()
    made: list[Any] = []

    def run(stop: threading.Event) -> Any:
        made.append(table.compact(full=True, cancel=stop))
        if len(made) == 2:
            twice.set()
        return made[-1]

    with BackgroundCompaction(
        run, every=1, wait=lambda stop, _: stop.wait(_PATIENCE if len(made) >= 2 else 0)
    ) as compaction:
        assert twice.wait(_PATIENCE)
    assert made[0] is not None
    assert made[1] is None
    assert compaction.result() == made[0]


@pytest.mark.parametrize("every", [0, -1, True, "1", float("nan")])
def test_times_that_are_none(every: Any) -> None:
    with pytest.raises(InvalidError, match="seconds above 0"):
        keyed_table({"bucket": "1"}).compact_in_background(every=every)
