"""A plan that continues an earlier one is the plan of all files, split for split."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import lakelet
from lakelet.catalog.lake import Lake
from lakelet.scan import plan as plan_module
from lakelet.scan.continued_plan import ContinuedPlan
from lakelet.table import Table

COLUMNS = [("p", "INT NOT NULL"), ("k", "INT NOT NULL"), ("v", "INT")]
# Splits of two or three small files each, so that they are cut in every way.
SMALL = {"source.split.target-size": "10 kb", "source.split.open-file-cost": "4 kb"}
KINDS: dict[str, tuple[list[str], list[str], dict[str, str]]] = {
    "append": ([], [], {}),
    "append, partitions": (["p"], [], {}),
    "append, buckets": (["p"], [], {"bucket": "3", "bucket-key": "k"}),
    "keyed": (["p"], ["p", "k"], {"bucket": "2"}),
    "keyed, no partitions": ([], ["k"], {"bucket": "4"}),
    "keyed, any bucket": (["p"], ["p", "k"], {"bucket": "-1"}),
    "first row": ([], ["k"], {"bucket": "2", "merge-engine": "first-row"}),
    "vectors": ([], ["k"], {"bucket": "2", "deletion-vectors.enabled": "true"}),
}
CONDITIONS = [None, "p = 1", "p >= 2", "k < 20", "v > 5", "p = 2 AND v < 9", "k = 7"]


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return lakelet.connect(tmp_path / "warehouse")


def make(lake: Lake, kind: str) -> Table:
    lake.create_database("d")
    partitions, key, options = KINDS[kind]
    return lake.create_table(
        "d.t",
        COLUMNS,
        partitioned_by=partitions,
        primary_key=key,
        options={**SMALL, **options, "write-only": "true", "manifest.merge-min-count": "12"},
    )


def change(table: Table, rng: random.Random) -> None:
    """One change: most only add files."""
    rows = [{"p": rng.randrange(4), "k": rng.randrange(40), "v": rng.randrange(12)} for _ in range(rng.randrange(1, 6))]
    choice = rng.choice(["write"] * 9 + ["compact", "rollback", "delete"])
    if choice == "compact":
        table.compact(full=True)
    elif choice == "rollback" and len(table.snapshots()) > 2:
        table.rollback(table.snapshots()[-2].id)
    elif choice == "delete" and table.schema.primary_keys and table.options.get("merge-engine") != "first-row":
        table.delete([rows[0]])
    else:
        table.write(rows)


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.deep), pytest.param(2, marks=pytest.mark.deep)])
@pytest.mark.parametrize("kind", KINDS)
def test_it_is_the_plan_of_all_files(lake: Lake, kind: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(f"{kind} {seed}")
    continued: list[int] = []

    class Counted(ContinuedPlan):
        def splits(self, pack):  # type: ignore[no-untyped-def]
            continued.append(self.added.num_rows)
            return super().splits(pack)

    monkeypatch.setattr(plan_module, "ContinuedPlan", Counted)
    table = make(lake, kind)
    for step in range(16):
        change(table, rng)
        for where in rng.sample(CONDITIONS, 3):
            plans = [table.scan(where=where, cache=cache).plan() for cache in (True, False)]
            assert plans[0] == plans[1], (step, where)
    assert continued, "no plan was continued"


def test_rows_of_another_process_are_seen(lake: Lake, tmp_path: Path) -> None:
    table, other = make(lake, "keyed"), lakelet.connect(tmp_path / "warehouse")
    table.write([{"p": 1, "k": number, "v": 0} for number in range(5)])
    for step in range(1, 6):
        assert table.scan(where="p = 1").to_arrow().num_rows == 5
        other.table("d.t").write([{"p": 1, "k": 2, "v": step}, {"p": 2, "k": step, "v": step}])
        assert table.scan(where="k = 2 AND p = 1").to_arrow().column("v").to_pylist() == [step]
        assert table.scan().to_arrow().num_rows == 5 + step
