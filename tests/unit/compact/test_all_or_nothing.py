"""Work in threads that succeeds as a whole or not at all."""

from __future__ import annotations

import threading

import pytest

from lakelet.compact.all_or_nothing import run_all_or_nothing


def test_results_come_in_the_order_of_the_tasks() -> None:
    first = threading.Event()

    def do(number: int) -> int:
        if number == 0:
            assert first.wait(300)
        elif number == 1:
            first.set()
        return number * 10

    assert run_all_or_nothing([0, 1, 2], do, threads=2, undo=pytest.fail) == [0, 10, 20]
    assert run_all_or_nothing([], do, threads=2, undo=pytest.fail) == []


def test_what_is_done_is_undone_when_one_fails() -> None:
    undone: list[int] = []

    def do(number: int) -> int:
        if number == 2:
            raise KeyError(number)
        return number

    with pytest.raises(KeyError):
        run_all_or_nothing([0, 1, 2, 3], do, threads=1, undo=undone.extend)
    # The task after the one that failed may have been done before anybody knew.
    assert undone[:2] == [0, 1]
    assert set(undone) <= {0, 1, 3}
