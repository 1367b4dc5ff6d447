"""Random primary-key tables that Lakelet and Java Paimon write and compact in turn, of every kind of table that compaction makes.

Writes compact by themselves or not, compactions are full or by the policy, whoever does them; deletion vectors (of both kinds),
levels and first rows of the one are read, rewritten and added to by the other. After each turn all readers give the
rows of the model. LAKELET_CASES multiplies the number of tables, and LAKELET_SEED runs the seeds from there on.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, ClassVar
from unittest.mock import patch

import pytest

from lakelet.lsm.universal import UniversalPolicy
from lakelet.model.snapshot import CommitKind
from tests.conformance.keyed.test_keyed_random import KEY_TYPES, KEYS, Run
from tests.conformance.keyed_tables import Model
from tests.conformance.tables import JAVA, LAKELET, NATIVE, PYTHON, Rows, Warehouse
from tests.tiers.examples import FIRST_SEED, examples

CASES = examples(1)
STEPS = 10
ENGINES: dict[str, dict[str, str]] = {
    "merged": {},
    "vectors": {"deletion-vectors.enabled": "true"},
    "vectors64": {"deletion-vectors.enabled": "true", "deletion-vectors.bitmap64": "true"},
    "first-row": {"merge-engine": "first-row"},
}
COMPACTION: dict[str, list[str]] = {
    "num-levels": ["3", "6"],
    "compaction.size-ratio": ["0", "100"],
    "compaction.max-size-amplification-percent": ["10", "10000"],
    "full-compaction.delta-commits": ["3"],
    "compaction.force-rewrite-all-files": ["true"],
    "file.format.per.level": ["0:orc"],
}
# pypaimon reads no 64-bit vectors.
KINDS = [
    (engine, mode)
    for engine in ENGINES
    for mode in ("fixed", "dynamic", "cross", "pypaimon")
    if (engine, mode) != ("vectors64", "pypaimon")
]


class FirstModel(Model):
    """The oldest row of each key."""

    def write(self, rows: Rows, spelled: Rows, kinds: Sequence[str] | None) -> None:
        for plain in spelled:
            self.rows.setdefault(self.key_of(plain), plain)


class CompactingRun(Run):
    """One table, `engine` is one of ENGINES."""

    with_sequence: ClassVar[dict[str, str]] = {}

    def __init__(self, warehouse: Warehouse, seed: int, mode: str, engine: str) -> None:
        self.engine = engine
        self.hides = engine != "merged"
        if self.hides:
            # Java looks keys up while it compacts, and fails on these.
            self.key_types = [text for text in KEY_TYPES if text not in ("BYTES", "BINARY(6)")]
        super().__init__(warehouse, seed * len(ENGINES) + list(ENGINES).index(engine), mode)
        if engine == "first-row":
            self.model = FirstModel(self.model.key, ignore_delete=True)

    def random_options(self) -> dict[str, str]:
        source = self.source
        options = {**super().random_options(), **ENGINES[self.engine]}
        options["num-sorted-run.compaction-trigger"] = str(source.choice([2, 3, 5]))
        if options["file.format"] == "avro" or self.hides:
            # Files of Avro have no positions that vectors could tell.
            options["file.format"] = (
                source.choice(["parquet", "parquet", "orc"]) if self.mode != "pypaimon" else "parquet"
            )
        for name, values in COMPACTION.items():
            if source.random() < 0.25 and (name, self.mode) != ("file.format.per.level", "pypaimon"):
                options[name] = source.choice(values)
        if self.hides:
            options.pop("write-only", None)
        if self.engine == "first-row":
            options.pop("ignore-delete", None)
        return options

    def random_sequence(self) -> list[str]:
        found = super().random_sequence()
        return [] if self.engine == "first-row" else found

    def some_rows(self, *, distinct: bool = False) -> Rows:
        """Without rows that are older than a delete, which some compaction may have dropped or not."""
        rows = super().some_rows(distinct=distinct)
        keys = self.spell_keys(rows)
        return [row for key, row in zip(keys, rows, strict=True) if not self._beaten_by_a_delete(key, row)]

    def _beaten_by_a_delete(self, key: str, row: dict[str, Any]) -> bool:
        known = self.model.versions.get(key)
        if known is None or key in self.model.rows:
            return False
        return self.model._older(self.model._version(row), known)

    def note(self) -> None:
        """Where level 0 is hidden, a write shows with the compaction that follows it."""
        before = max(self.states)
        shown = self.states[before]
        super().note()
        if not self.hides:
            return
        kinds = {snapshot.id: snapshot.commit_kind for snapshot in self.table.snapshots()}
        for id_ in [id_ for id_ in self.states if id_ > before]:
            kind = kinds[id_]
            if kind is CommitKind.APPEND and before > self.changed_at:
                self.states[id_] = shown
            elif kind in (CommitKind.APPEND, CommitKind.OVERWRITE):
                # Rows in columns that have changed since, or those that an overwrite left.
                self.states.pop(id_)
            else:
                shown = self.states[id_]

    # ---------------------------------------------------------------- operations

    def upsert(self) -> None:
        writer = self.writer()
        rows = self.some_rows(distinct=self.engine == "first-row" or (writer == JAVA and self.model.descending))
        if not rows:
            return
        kinds = None
        if writer in (LAKELET, JAVA) and self.engine != "first-row" and self.source.random() < 0.6:
            kinds = [self.source.choice(["+I", "+U", "+I", "-D", "-U"]) for _ in rows]
        self.log.append(f"{writer} writes {len(rows)} {kinds or ''}")
        if writer in (PYTHON, NATIVE) and self.hides:
            self.warehouse.write(writer, self.name, rows, kinds=kinds)
            self.log.append("lakelet compacts, so that they show")
            self.table.compact()
            self.model.write(rows, self.spell(rows), kinds)
            self.note()
        else:
            self.write(writer, rows, kinds)

    def remove(self) -> None:
        if self.engine != "first-row":
            super().remove()

    def compact_all(self) -> None:
        by = self.source.choice(["java", "lakelet", "lakelet", "lakelet, in full"])
        self.log.append(f"{by} compacts {[file.level for _, file in self.table.files()]}")
        if by == "java":
            self.warehouse.java.compact(self.warehouse.folder, self.full_name)
        else:
            self.table.compact(full=by != "lakelet")
        self.note()

    def go(self) -> None:
        operations = [self.upsert] * 5 + [self.compact_all] * 4 + [self.remove, self.overwrite, self.evolve]
        self.upsert()
        for _ in range(STEPS):
            self.source.choice(operations)()
            self.check()
        self.log.append("in the end")
        self.table.compact(full=True)
        self.note()
        self.check()
        assert self.engine == "merged" or 0 not in {file.level for _, file in self.table.files()}
        self.warehouse.java.compact(self.warehouse.folder, self.full_name)
        self.note()
        self.check()
        self.buckets()
        self.check_ordered()
        self.check_get(self.source.sample(self.keys, KEYS // 2))
        bound = self.written * 2 // 3
        self.check_where(f"v >= {bound}", [f"v >= {bound}"], lambda row: row["v"] >= bound)
        self.look_back()


def _older_runs_are_large() -> AbstractContextManager[object]:
    """Small files are all of one size, and would all be merged at once: none joins, so that rows pass through all levels."""
    return patch.object(UniversalPolicy, "_grow", lambda policy, runs, count, now_ms: count)


@pytest.mark.parametrize(("engine", "mode"), KINDS)
@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + CASES))
def test_compactors_take_turns_on_random_tables(warehouse: Warehouse, seed: int, engine: str, mode: str) -> None:
    run = None
    try:
        run = CompactingRun(warehouse, seed, mode, engine)
        with _older_runs_are_large() if run.source.random() < 0.5 else nullcontext():
            run.go()
    except Exception as error:
        log = "\n  ".join(run.log if run else [])
        raise AssertionError(f"{engine}, {mode}, seed {seed}:\n  {log}") from error
