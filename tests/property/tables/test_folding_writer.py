"""A writer of a folding table against the row-by-row model: what it reads is what the table has after the flush.

Random engines, rows and deletes, put one by one, in lists and beside commits of others; crashes, compactions, small memtables.
"""

from __future__ import annotations

import copy
import tempfile
from pathlib import Path
from typing import Any

import pytest

import lakelet
from tests.property.engine_tables import KEY, EngineTable, Versions
from tests.tiers.examples import FIRST_SEED, examples
from tests.unit.lsm.engine.row_model import Row
from tests.unit.realtime.written_table import WrittenTable, kill

STEPS = 10


@pytest.mark.parametrize("engine", ["aggregation", "partial-update"])
def test_a_writer_reads_what_its_flush_makes(engine: str) -> None:
    for seed in range(FIRST_SEED, FIRST_SEED + examples(8)):
        given = EngineTable(seed, engine)
        if "rbm32" in given.functions.values():
            continue
        with tempfile.TemporaryDirectory() as folder:
            run = _Run(given, Path(folder))
            try:
                for _ in range(STEPS):
                    run.step()
                    run.check()
                run.writer.close()
                run.flushed()
                assert _texts(run.table.scan().to_arrow().to_pylist()) == _texts(run.model.rows())
            except Exception as error:
                error.add_note(f"seed {seed}: {given.options} {given.columns}\n" + "\n".join(run.log))
                raise
            finally:
                kill(run.writer)


class _Run:
    """`model` has what is committed, `memory` what was put since."""

    def __init__(self, given: EngineTable, folder: Path) -> None:
        self.given, self.model = given, Versions(given)
        options = {**given.options, "bucket": "2", "write-only": "true"}
        self.written = WrittenTable(folder, columns=given.columns, key=(KEY,), options=options)
        self.table, self.writer = self.written.table, self.written.writer()
        self.memory: list[list[Row]] = [[]]
        self.log: list[str] = []
        rules = given.rules
        self.removing = [name for sequence, _ in rules.groups for name in sequence if set(sequence) & rules.removing]
        self.carried = {KEY, given.sequence, *(name for sequence, _ in rules.groups for name in sequence)}

    def shown(self) -> list[Row]:
        model = copy.deepcopy(self.model)
        for rows in self.memory:
            model.write(rows)
        return model.rows()

    def flushed(self) -> None:
        for rows in self.memory:
            self.model.write(rows)
        self.memory = [[]]

    def put(self, rows: list[Row]) -> None:
        """What follows a deletion is in another memtable."""
        deleted = {row[KEY] for row in self.memory[-1] if row["_kind"] == "-D"}
        if not deleted.isdisjoint(row[KEY] for row in rows):
            self.memory.append([])
        self.memory[-1] += rows

    def step(self) -> None:
        source = self.given.random
        action = source.choice(["put", "put", "many", "many", "delete", "flush", "others", "compact", "crash"])
        rows = [row | {"_kind": "+I"} for row in self.given.rows()]
        self.log += [action, *(map(str, rows) if action in ("put", "many", "others") else ())]
        plain = [{name: value for name, value in row.items() if name != "_kind"} for row in rows]
        if action == "put":
            self.writer.put(plain[0])
            self.put(rows[:1])
        elif action == "many":
            self.writer.put_many(plain)
            self.put(rows)
        elif action == "delete":
            self._delete(source.randrange(6))
        elif action == "crash":
            kill(self.writer)
            self.writer = self.written.writer()
            self.flushed()
        else:
            self.writer.flush()
            self.flushed()
            if action == "others":
                self.table.write(plain)
                self.model.write(rows)
            elif action == "compact":
                self.table.compact(True)
                self.model.compact()

    def _delete(self, number: int) -> None:
        """Where rows can be removed."""
        if not (self.given.rules.removes or self.removing):
            return
        row = next((row for row in self.shown() if row[KEY] == number), None)
        if row is not None and self.removing and all(row[name] is None for name in self.removing):
            return
        try:
            assert self.writer.delete({KEY: number}) == (row is not None)
        except lakelet.InvalidError as error:
            # Aggregated members of a group that cannot be taken back.
            if "takes values back" not in str(error):
                raise
            return
        if row is not None:
            self.log.append(str(row))
            self.memory[-1].append(
                {name: value if name in self.carried else None for name, value in row.items()} | {"_kind": "-D"}
            )

    def check(self) -> None:
        wanted = self.shown()
        rows = {row[KEY]: row for row in wanted}
        assert _texts(self.writer.scan().to_arrow().to_pylist()) == _texts(wanted)
        found: list[Any] = self.writer.get_many([{KEY: number} for number in range(7)])
        assert _texts(row for row in found if row) == _texts(wanted)
        assert [row is None for row in found] == [number not in rows for number in range(7)]
        number = self.given.random.randrange(6)
        one = self.writer.get({KEY: number})
        assert _texts([one] if one else []) == _texts([rows[number]] if number in rows else [])
        ranged = self.writer.scan(start={KEY: 2}, end={KEY: 5}).to_arrow().to_pylist()
        assert [row[KEY] for row in ranged] == [key for key in sorted(rows) if 2 <= key < 5]
        name = self.given.random.choice(list(self.given.types))
        missing = self.writer.scan(columns=[KEY], where=f"{name} IS NULL").to_arrow().to_pylist()
        assert sorted(row[KEY] for row in missing) == [key for key in sorted(rows) if rows[key][name] is None]


def _texts(found: Any) -> list[str]:
    return sorted(repr(sorted(row.items())) for row in found)
