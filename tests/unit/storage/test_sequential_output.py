"""A `with` block around an output file closes or aborts it."""

from __future__ import annotations

import pytest

from lakelet.storage.sequential_output import SequentialOutput


class Noted(SequentialOutput):
    def __init__(self) -> None:
        self.ends: list[str] = []

    def close(self) -> None:
        self.ends.append("close")

    def abort(self) -> None:
        self.ends.append("abort")


def test_left_by_an_exception_it_aborts() -> None:
    output = Noted()
    with output as entered:
        assert entered is output
    with pytest.raises(KeyError), output:
        raise KeyError
    assert output.ends == ["close", "abort"]


def test_it_is_written_front_to_back() -> None:
    assert (Noted().readable(), Noted().writable(), Noted().seekable()) == (False, True, False)
