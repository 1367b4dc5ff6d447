"""Plans of an Iceberg table of 1,000 manifests, hot and after a new snapshot, against pyiceberg."""

from __future__ import annotations

from functools import partial

from benchmarks.benchmark import Result, Scale, faster
from benchmarks.rounds import Contender, Measured, best_of, run_task

MANIFESTS = 1_000
FILES_PER_MANIFEST = 10
_KINDS = {"all": "all files", "id": "a condition on ids", "day": "one partition"}
_TARGETS = {"hot": 20, "after_commit": 10}
# After a commit both have to read the metadata file and the list of manifests, by the same library, and pyiceberg's plan of one
# partition does nothing else.
_FOR_INFORMATION = ("after_commit", "day")


def measure_iceberg_plan(scale: Scale) -> list[Result]:
    """Plans of an Iceberg table of 1,000 manifests with 10 files each, hot and after a new snapshot, against pyiceberg."""
    count = scale.of(MANIFESTS)
    folder = str(scale.folder / "table")
    run_task(
        "metadata/plan_layouts.py",
        "iceberg_table",
        {"folder": folder, "days": count, "files_per_day": FILES_PER_MANIFEST, "commits": count, "order": "by_day"},
    )

    def measure(task: str, kind: str, planner: str, _: int) -> Measured:
        # What takes a millisecond is repeated more often, for the least of many is no accident.
        repeats = 40 if (task, planner) == ("hot", "lakelet") else 5
        arguments = {"planner": planner, "kind": kind, "days": count, "repeats": repeats}
        return run_task("iceberg/plan_tasks.py", task, {"folder": folder, **arguments})

    results = []
    for task, least in _TARGETS.items():
        for kind, shown in _KINDS.items():
            found = best_of(
                scale.rounds,
                Contender("lakelet", partial(measure, task, kind, "lakelet")),
                Contender("pyiceberg", partial(measure, task, kind, "pyiceberg"), 2),
            )
            state = "hot" if task == "hot" else "after one new snapshot"
            name = f"Iceberg plan of {count:,} manifests, {shown}, {state}, pyiceberg"
            target = None if (task, kind) == _FOR_INFORMATION else least
            results.append(faster(name, found["lakelet"], found["pyiceberg"], target))
    return results
