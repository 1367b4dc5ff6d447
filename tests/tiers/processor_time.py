"""Record the processor time of every test, its child processes included.

`pytest -p tests.tiers.processor_time --costs=FILE` appends one JSON line a test. Processor time, unlike the time on the wall,
stays about the same while other programs share the machine. Linux only: the children are read from /proc.
"""

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

TICKS = os.sysconf("SC_CLK_TCK")
PHASES = ("setup", "call", "teardown")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--costs", metavar="FILE", type=Path, help="append the processor seconds of each test to FILE")


def pytest_configure(config: pytest.Config) -> None:
    target = config.getoption("--costs")
    if target is not None:
        config.pluginmanager.register(CostRecorder(target), "lakelet-costs")


class CostRecorder:
    """Measures the phases of each test; the set-up of a shared fixture is charged to the test that asks first."""

    def __init__(self, target: Path) -> None:
        self._target = target.absolute()
        self._phases: dict[str, tuple[float, float]] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self) -> Iterator[None]:
        yield from self._measured("setup")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self) -> Iterator[None]:
        yield from self._measured("call")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self) -> Iterator[None]:
        yield from self._measured("teardown")

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        if not self._phases:
            # The test ran in a worker, which has told its costs.
            return
        line: dict[str, object] = {"test": nodeid}
        for phase in PHASES:
            processor, wall = self._phases.get(phase, (0.0, 0.0))
            line |= {phase: round(processor, 3), f"{phase}_wall": round(wall, 3)}
        with self._target.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(line) + "\n")
        self._phases.clear()

    def _measured(self, phase: str) -> Iterator[None]:
        processor, wall = processor_seconds(), time.monotonic()
        try:
            return (yield)
        finally:
            self._phases[phase] = (processor_seconds() - processor, time.monotonic() - wall)


def processor_seconds() -> float:
    """Processor time so far of this process, of its children that have ended, and of those that run."""
    ended = os.times()
    own = time.process_time() + ended.children_user + ended.children_system
    return own + sum(map(_seconds_of, _descendants(os.getpid())))


def _descendants(process: int) -> Iterator[int]:
    for thread in Path(f"/proc/{process}/task").glob("*/children"):
        try:
            children = [int(word) for word in thread.read_text().split()]
        except OSError:  # The thread has ended meanwhile.
            continue
        for child in children:
            yield child
            yield from _descendants(child)


def _seconds_of(process: int) -> float:
    """User and system time of a process and of the children it has waited for."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(int(ticks) for ticks in fields[11:15]) / TICKS
