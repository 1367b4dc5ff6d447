"""Recorded processor seconds per test function, from which slices are filled and the work is spread.

The table is keyed by the file's stem and the function's name, so that a file that moves keeps its costs. It is a guide, never a
judge: a test that is not in it counts as what tests of its folder usually cost. Its seconds are those of one machine, since what
a run takes is decided by them: new costs are multiplied by what makes the functions that were known before cost what they did.

    python -m tests.tiers.cost_table LINES...    puts the costs in files of `--costs` into the table; others stay
"""

import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path, PurePath
from statistics import median

TABLE = Path(__file__).with_name("costs.json")
UNKNOWN_SECONDS = 0.01
# Functions that tell how fast a machine is cost this much at least, and are this many at least.
TELLING_SECONDS = 0.05
TELLING_FUNCTIONS = 30
USUAL_SECONDS = {
    "tests/conformance/": 1.0,
    "tests/crash/": 1.0,
    "tests/e2e/": 0.7,
    "tests/iceberg/": 0.3,
    "tests/integration/storage/": 0.1,
    "tests/integration/": 10.0,
    "tests/property/": 0.5,
    "tests/spark/": 1.5,
    "tests/sql/": 0.6,
}


@cache
def recorded_costs() -> Mapping[str, float]:
    """Processor seconds per case of every function that costs more than an unknown one."""
    table: dict[str, float] = json.loads(TABLE.read_text(encoding="utf-8"))
    return table


def cost_key(nodeid: str) -> str:
    """`tests/unit/lsm/test_winners.py::TestX::test_y[a-1]` gives `test_winners::test_y`."""
    path, *names = nodeid.partition("[")[0].split("::")
    return f"{PurePath(path).stem}::{names[-1] if names else ''}"


def seconds_of(nodeid: str) -> float:
    known = recorded_costs().get(cost_key(nodeid))
    if known is not None:
        return known
    return next((usual for folder, usual in USUAL_SECONDS.items() if nodeid.startswith(folder)), UNKNOWN_SECONDS)


def medians(lines: Iterable[str]) -> dict[str, float]:
    """The table of measured lines: the median over the cases of a function, the first of which may load and compile for all."""
    measured = defaultdict(list)
    for line in lines:
        case = json.loads(line)
        measured[cost_key(case["test"])].append(case["setup"] + case["call"] + case["teardown"])
    return {key: round(median(costs), 4) for key, costs in measured.items()}


def rescaled(table: Mapping[str, float], measured: Mapping[str, float]) -> dict[str, float]:
    """The measured costs in seconds of the table's machine; as they are where too few functions tell how fast it was."""
    ratios = [table[key] / cost for key, cost in measured.items() if cost >= TELLING_SECONDS and key in table]
    factor = median(ratios) if len(ratios) >= TELLING_FUNCTIONS else 1.0
    return {key: cost * factor for key, cost in measured.items()}


def updated(table: Mapping[str, float], measured: Mapping[str, float]) -> dict[str, float]:
    """The table with new costs in it; functions as cheap as unknown ones are left out."""
    rounded = {key: round(cost, 2) for key, cost in {**table, **measured}.items()}
    return {key: cost for key, cost in sorted(rounded.items()) if cost > UNKNOWN_SECONDS}


def main(names: list[str]) -> None:
    measured = medians(line for name in names for line in Path(name).read_text(encoding="utf-8").splitlines())
    table = recorded_costs()
    TABLE.write_text(json.dumps(updated(table, rescaled(table, measured)), indent=0) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
