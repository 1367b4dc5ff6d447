"""The metadata cache: hot look-ups against cold ones, and a process that starts with a persisted cache against one without."""

from __future__ import annotations

from benchmarks.benchmark import Result, Scale, faster
from benchmarks.metadata.file_layout import Layout
from benchmarks.rounds import Contender, best_of, run_task

_TASKS = "metadata/cache_lookup_tasks.py"


def measure_cache_lookups(scale: Scale) -> list[Result]:
    """1,000 tables, 10,000 look-ups; and the first plan of a table with 100,000 files."""
    return [*_look_ups(scale), *_restart(scale)]


def _look_ups(scale: Scale) -> list[Result]:
    tables = scale.of(1_000)
    folder = str(scale.folder / "tables")
    run_task(_TASKS, "make_tables", {"folder": folder, "tables": tables})
    results = []
    for staleness, least in (("strict", None), ("manual", 10)):
        arguments = {"folder": folder, "tables": tables, "queries": 10 * tables, "staleness": staleness}
        runs = [run_task(_TASKS, "look_up", arguments) for _ in range(scale.rounds)]
        assert all(run["hit_ratio"] > 0.8 for run in runs)
        cold = min((run["cold"] for run in runs), key=lambda one: float(one["seconds"]))
        hot = min((run["hot"] for run in runs), key=lambda one: float(one["seconds"]))
        results.append(faster(f"hot look-up of {tables:,} tables ({staleness}), cold", hot, cold, least))
    return results


def _restart(scale: Scale) -> list[Result]:
    layout = Layout(days=scale.of(1_000), files_per_day=100, commits=100, order="mixed")
    folder, persisted = str(scale.folder / "files"), str(scale.folder / "persisted")
    shape = {"days": layout.days, "files_per_day": layout.files_per_day, "order": "mixed", "commits": layout.commits}
    run_task("metadata/plan_layouts.py", "lakelet_table", {"folder": folder, **shape})
    run_task(_TASKS, "first_plan", {"folder": folder, "persisted": persisted, "where": None})
    found = best_of(
        scale.rounds,
        *(
            Contender(
                name,
                lambda _, given=given: run_task(
                    _TASKS, "first_plan", {"folder": folder, "persisted": given, "where": None}
                ),
            )
            for name, given in (("persisted", persisted), ("cold", None))
        ),
    )
    assert found["persisted"]["files"] == found["cold"]["files"] == layout.files
    name = f"first plan of {layout.files:,} files with a persisted cache, without"
    return [faster(name, found["persisted"], found["cold"], None)]
