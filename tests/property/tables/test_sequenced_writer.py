"""A writer of a table with `sequence.field` against a dict of records: what it reads is what the table has after the flush."""

import math
import shutil
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from tests.unit.realtime.written_table import WrittenTable, kill, sorted_rows

KEYS = st.integers(0, 2)
SEQUENCES = st.sampled_from([None, -0.0, 0.0, 7.0])
TEXTS = st.sampled_from([None, "", "a", "bb" * 20])
SMALL = {"memtable.size": "400 b", "memtable.flush-threshold": "0.5"}
# No compaction but by the rule below: one onto the top level forgets deletions.
MODES: dict[str, dict[str, str]] = {
    "fixed": {"bucket": "2", "write-only": "true"},
    "dynamic": {"dynamic-bucket.target-row-num": "2", "write-only": "true"},
    "sst": {"bucket": "1", "write-only": "true", "file.format": "sst"},
    "vectors": {"bucket": "2", "deletion-vectors.enabled": "true"},
}
Row = tuple[int, str | None, float | None]


class SequencedMachine(RuleBasedStateMachine):
    """`model` has the record of each key: the row, None where it is deleted, and its sequence."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.model: dict[int, tuple[Row | None, float | None]] = {}

    @initialize(mode=st.sampled_from(sorted(MODES)), small=st.booleans(), descending=st.booleans())
    def begin(self, mode: str, small: bool, descending: bool) -> None:
        order = {"sequence.field": "x", "sequence.field.sort-order": "descending" if descending else "ascending"}
        self.written = WrittenTable(self.folder, options=MODES[mode] | order)
        # There the deletions of a memtable are forgotten at its flush, so that flushes are those of the rules alone.
        self.forgets = mode == "vectors"
        self.options = SMALL if small and not self.forgets else {}
        self.descending = descending
        self.writer = self.written.writer(self.options)

    def rank(self, sequence: float | None) -> tuple[float, ...]:
        if sequence is None:
            return ()
        # The negative zero is the lesser one.
        sign = math.copysign(1.0, sequence)
        return (-sequence, -sign) if self.descending else (sequence, sign)

    def apply(self, row: Row) -> None:
        held = self.model.get(row[0])
        if held is None or self.rank(row[2]) >= self.rank(held[1]):
            self.model[row[0]] = (row, row[2])

    def shown(self) -> dict[int, Row]:
        return {key: row for key, (row, _) in self.model.items() if row is not None}

    def forget(self) -> None:
        self.model = {key: record for key, record in self.model.items() if record[0] is not None}

    def flushed(self) -> None:
        if self.forgets:
            self.forget()
        assert self.written.rows() == sorted(self.shown().values(), key=repr)

    @rule(key=KEYS, text=TEXTS, sequence=SEQUENCES)
    def put(self, key: int, text: str | None, sequence: float | None) -> None:
        self.writer.put({"id": key, "v": text, "x": sequence})
        self.apply((key, text, sequence))

    @rule(rows=st.lists(st.tuples(KEYS, TEXTS, SEQUENCES), max_size=6))
    def put_many(self, rows: list[Row]) -> None:
        self.writer.put_many([dict(zip(("id", "v", "x"), row, strict=True)) for row in rows])
        for row in rows:
            self.apply(row)

    @rule(key=KEYS, text=TEXTS, sequence=SEQUENCES)
    def put_if_absent(self, key: int, text: str | None, sequence: float | None) -> None:
        absent = key not in self.shown()
        assert self.writer.put_if_absent({"id": key, "v": text, "x": sequence}) == absent
        if absent:
            self.apply((key, text, sequence))

    @rule(key=KEYS)
    def delete(self, key: int) -> None:
        row = self.shown().get(key)
        assert self.writer.delete({"id": key}) == (row is not None)
        if row is not None:
            self.model[key] = (None, row[2])

    @rule(key=KEYS)
    def get(self, key: int) -> None:
        found, expected = self.writer.get({"id": key}), self.shown().get(key)
        assert repr(found) == repr(None if expected is None else dict(zip(("id", "v", "x"), expected, strict=True)))

    @rule(keys=st.lists(KEYS, max_size=7))
    def get_many(self, keys: list[int]) -> None:
        found: list[Any] = self.writer.get_many([{"id": key} for key in keys])
        rows = self.shown()
        assert [None if one is None else tuple(one.values()) for one in found] == [rows.get(key) for key in keys]

    @rule(least=KEYS, beyond=KEYS)
    def range(self, least: int, beyond: int) -> None:
        found = self.writer.scan(start={"id": least}, end={"id": beyond}).to_arrow().to_pylist()
        expected = [row for key, row in sorted(self.shown().items()) if least <= key < beyond]
        assert [tuple(row.values()) for row in found] == expected

    @rule(where=st.sampled_from([None, "v = 'a'", "x > 0", "id >= 2"]))
    def scan(self, where: str | None) -> None:
        found = sorted_rows(self.writer.scan(where=where).to_arrow())
        tests: dict[str | None, Any] = {
            None: lambda row: True,
            "v = 'a'": lambda row: row[1] == "a",
            "x > 0": lambda row: row[2] is not None and row[2] > 0,
            "id >= 2": lambda row: row[0] >= 2,
        }
        assert found == sorted(filter(tests[where], self.shown().values()), key=repr)

    @rule()
    def flush(self) -> None:
        self.writer.flush()
        self.flushed()

    @rule(key=KEYS, sequence=SEQUENCES)
    def another_commits(self, key: int, sequence: float | None) -> None:
        """Only after a flush is it known which of two commits is the later."""
        self.writer.flush()
        self.flushed()
        self.written.table.write([{"id": key, "v": "theirs", "x": sequence}])
        self.apply((key, "theirs", sequence))

    @rule()
    def compact(self) -> None:
        self.writer.flush()
        self.flushed()
        self.written.table.compact(full=True)
        self.forget()

    @rule()
    def crash(self) -> None:
        kill(self.writer)
        self.writer = self.written.writer(self.options)
        self.flushed()

    @rule()
    def reopen(self) -> None:
        self.writer.close()
        self.flushed()
        self.writer = self.written.writer(self.options)

    def teardown(self) -> None:
        if hasattr(self, "writer"):
            self.writer.close()
            self.flushed()
        shutil.rmtree(self.folder)


SequencedMachine.TestCase.settings = settings(max_examples=16, stateful_step_count=25, deadline=None)
test_sequences_decide = SequencedMachine.TestCase
