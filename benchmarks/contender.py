"""Run a contender: a script in a process of its own that does one task and prints its measurements.

A contender's script is a set of functions; `serve(tasks)` runs the one named on the command line with the JSON arguments
behind it and prints one line of JSON: what the function returned, and the process's peak memory.

    python peers/arrow_tasks.py write '{"rows": 1000000, "folder": "/data"}'     →  {"seconds": 1.02, "peak_bytes": 412000000}
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

Task = Callable[..., dict[str, Any]]


class Timer:
    """What a block took: seconds on the clock, and of processor over all threads without the system's part, which other
    load disturbs less."""

    def __init__(self) -> None:
        self.taken: dict[str, float] = {}


@contextmanager
def timed() -> Iterator[Timer]:
    """Times a block."""
    timer = Timer()
    begin, processor = time.perf_counter(), _user_seconds()
    yield timer
    timer.taken = {"seconds": time.perf_counter() - begin, "user_seconds": _user_seconds() - processor}


@contextmanager
def timed_finely() -> Iterator[Timer]:
    """Times a block of milliseconds: of the processor with the system's part, which alone is counted to the microsecond."""
    timer = Timer()
    begin, processor = time.perf_counter(), time.process_time()
    yield timer
    timer.taken = {"seconds": time.perf_counter() - begin, "user_seconds": time.process_time() - processor}


def repeated(action: Callable[[int], object], repeats: int) -> dict[str, float]:
    """The least that calls took after one that is not counted; `repeats` 0 counts the only call.

    The first call of a process loads code, compiled loops and footers; each call gets its number.
    """
    taken = []
    for number in range(repeats + 1):
        with timed() as timer:
            action(number)
        taken.append(timer.taken)
    counted = taken[1:] or taken
    return {
        **{key: min(one[key] for one in counted) for key in counted[0]},
        "first_seconds": taken[0]["seconds"],
    }


def _user_seconds() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_utime


def peak_bytes() -> int:
    """The most memory this process has had resident."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    line = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024


def serve(*tasks: Task) -> None:
    """Runs the task that the command line names."""
    by_name = {task.__name__: task for task in tasks}
    name, arguments = sys.argv[1], json.loads(sys.argv[2])
    result = by_name[name](**arguments)
    print(json.dumps({**result, "peak_bytes": peak_bytes()}), flush=True)
    # The measurements are printed; some libraries abort when their threads are still there as the interpreter goes down.
    os._exit(0)
