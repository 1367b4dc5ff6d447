"""Run rounds of measurements: every contender once per round, each time in a fresh process; the best round is reported.

Contenders take turns, so that other load of the machine affects all of them alike. Beside the time on the clock each
reports the processor time it spent itself, which other load disturbs far less: where the two disagree about a ratio,
the machine was busy.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
REPOSITORY = HERE.parent
PYPAIMON = Path(os.environ.get("LAKELET_BENCH_PYPAIMON", str(REPOSITORY / ".venv-pypaimon" / "bin" / "python")))
_TIMEOUT_SECONDS = 3600
_PYTHON_PATH = os.pathsep.join([str(REPOSITORY / "src"), str(REPOSITORY)])

Measured = dict[str, Any]


class ContenderError(RuntimeError):
    """A contender's process failed; the message is what it wrote."""


def run_task(
    script: str,
    task: str,
    arguments: Mapping[str, Any],
    python: str | Path = sys.executable,
    more_environment: Mapping[str, str] | None = None,
) -> Measured:
    """One task in one process: what it printed, and how long the whole process took."""
    begin = time.perf_counter()
    done = subprocess.run(
        [str(python), str(HERE / script), task, json.dumps(arguments)],
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_SECONDS,
        check=False,
        env={"PYTHONPATH": _PYTHON_PATH, **os.environ, **(more_environment or {})},
    )
    took = time.perf_counter() - begin
    if done.returncode:
        raise ContenderError(f"{script} {task} failed:\n{done.stderr[-2000:]}")
    measured: Measured = json.loads(done.stdout.splitlines()[-1])
    return {**measured, "process_seconds": took}


@dataclass(frozen=True)
class Contender:
    """A name in the results and the call that measures it once; `rounds` limits how often a slow one runs."""

    name: str
    measure: Callable[[int], Measured]
    rounds: int | None = None


def best_of(rounds: int, *contenders: Contender) -> dict[str, Measured]:
    """The minimum of each number over the rounds, for every contender."""
    found: dict[str, list[Measured]] = {contender.name: [] for contender in contenders}
    for number in range(rounds):
        for contender in contenders:
            if number < (contender.rounds or rounds):
                found[contender.name].append(contender.measure(number))
    return {name: _least(runs) for name, runs in found.items()}


def _least(runs: list[Measured]) -> Measured:
    times = [key for key in runs[0] if key.endswith("seconds")]
    best = dict(min(runs, key=lambda run: float(run["seconds"])))
    return {**best, **{key: min(run[key] for run in runs) for key in times}, "rounds": len(runs)}
