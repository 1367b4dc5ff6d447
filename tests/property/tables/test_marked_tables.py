"""Append tables with deletion vectors, changed at random: they hold the rows of a dict, and changes lead from state to state."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest

from lakelet import Lake, Table
from lakelet.storage.memory import MemoryStore

LAYOUTS = {
    "plain": {},
    "64 bits": {"deletion-vectors.bitmap64": "true"},
    "buckets": {"bucket": "3", "bucket-key": "id"},
}


@dataclass
class Marked:
    """A table and the rows that it ought to have."""

    lake: Lake
    table: Table
    rng: random.Random
    rows: dict[int, int] = field(default_factory=dict)
    following: int = 0

    def step(self) -> None:
        low, high = sorted(self.rng.randrange(self.following + 1) for _ in range(2))
        third = self.rng.randrange(3)
        step = self.rng.randrange(6) if self.rows else 0
        if step == 0:
            self.write()
        elif step == 1:
            self.table.delete(where=f"id >= {low} AND id < {high} AND id % 3 = {third}")
            self.rows = {key: v for key, v in self.rows.items() if not (low <= key < high and key % 3 == third)}
        elif step == 2:
            self.lake.sql(f"DELETE FROM t WHERE id = {low} OR v = {high * 10}")
            self.rows = {key: v for key, v in self.rows.items() if key != low and v != high * 10}
        elif step == 3:
            self.lake.sql(f"UPDATE t SET v = v + 1 WHERE id >= {low} AND id % 2 = 0")
            self.rows = {key: v + (key >= low and key % 2 == 0) for key, v in self.rows.items()}
        elif step == 4:
            self.lake.sql(
                f"MERGE INTO t USING (SELECT range AS id FROM range({low}, {high + 2})) AS s ON t.id = s.id "
                "WHEN MATCHED AND s.id % 4 = 0 THEN DELETE WHEN MATCHED AND s.id % 4 = 1 THEN UPDATE SET v = 0 "
                "WHEN NOT MATCHED THEN INSERT (id, p, v) VALUES (s.id, 'a', -s.id)"
            )
            before = self.rows
            self.rows = {key: v for key, v in before.items() if not (low <= key < high + 2 and key % 4 < 2)}
            for key in range(low, high + 2):
                if key not in before:
                    self.rows[key] = -key
                elif key % 4 == 1:
                    self.rows[key] = 0
            self.following = max(self.following, high + 2)
        else:
            self.table.compact(full=self.rng.random() < 0.5)

    def write(self) -> None:
        new = {key: key * 10 for key in range(self.following, self.following + self.rng.randint(1, 12))}
        self.following += len(new)
        self.table.write([{"id": key, "p": "ab"[key % 2], "v": v} for key, v in new.items()])
        self.rows = {**self.rows, **new}


@pytest.mark.parametrize(
    "seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.deep) for seed in range(2, 30))], ids=str
)
@pytest.mark.parametrize("layout", list(LAYOUTS))
def test_random_changes_give_the_rows_of_a_dict(seed: int, layout: str) -> None:
    lake = Lake(MemoryStore())
    lake.create_database("d")
    lake.sql("USE d")
    options = {
        **LAYOUTS[layout],
        "deletion-vectors.enabled": "true",
        "deletion-vector.index-file.target-size": "80 b",
        "write-only": str(seed % 4 < 2).lower(),
    }
    table = lake.create_table(
        "d.t",
        [("id", "BIGINT"), ("p", "STRING"), ("v", "BIGINT")],
        partitioned_by=["p"] if seed % 2 else [],
        options=options,
    )
    marked = Marked(lake, table, random.Random(seed))
    versions: list[tuple[int, dict[int, int]]] = []
    for _ in range(15):
        marked.step()
        snapshot = table.latest_snapshot()
        assert snapshot is not None
        versions.append((snapshot.id, marked.rows))
        assert {row["id"]: row["v"] for row in table.scan().to_arrow().to_pylist()} == marked.rows
        assert table.scan().count() == len(marked.rows)
    assert table.check().damages == ()
    number, rows = versions[marked.rng.randrange(8)]
    rows = dict(rows)
    changed = table.changes(number, versions[-1][0]).to_pylist()
    for row in changed:
        if row["_row_kind"] in ("-D", "-U"):
            assert rows.pop(row["id"]) == row["v"]
        else:
            assert row["id"] not in rows
            rows[row["id"]] = row["v"]
    assert rows == versions[-1][1]
