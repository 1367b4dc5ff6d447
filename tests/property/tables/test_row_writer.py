"""A writer against a dict: puts, deletes, reads, flushes, commits of others, crashes and reopening, in any order."""

import shutil
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.unit.realtime.written_table import WrittenTable, kill, sorted_rows

KEYS = st.integers(0, 6)
TEXTS = st.sampled_from([None, "", "a", "bb" * 20, "\x00é"])
SMALL = {"memtable.size": "400 b", "memtable.flush-threshold": "0.5"}
MODES: dict[str, dict[str, str]] = {
    "fixed": {"bucket": "2"},
    "dynamic": {"dynamic-bucket.target-row-num": "2"},
    "vectors": {"bucket": "2", "deletion-vectors.enabled": "true"},
}


class WriterMachine(RuleBasedStateMachine):
    """What is read through the writer is the dict, always; what the table has is the dict after a flush."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.model: dict[int, tuple[int, str | None, float | None]] = {}

    @initialize(mode=st.sampled_from(sorted(MODES)), small=st.booleans())
    def begin(self, mode: str, small: bool) -> None:
        self.written = WrittenTable(self.folder, options=MODES[mode])
        self.options = SMALL if small else {}
        self.writer = self.written.writer(self.options)

    @rule(key=KEYS, text=TEXTS)
    def put(self, key: int, text: str | None) -> None:
        self.writer.put({"id": key, "v": text, "x": None})
        self.model[key] = (key, text, None)

    @rule(keys=st.lists(KEYS, max_size=5), text=TEXTS, as_arrow=st.booleans())
    def put_many(self, keys: list[int], text: str | None, as_arrow: bool) -> None:
        rows = [{"id": key, "v": text, "x": place / 4} for place, key in enumerate(keys)]
        schema = pa.schema([("id", pa.int64()), ("v", pa.string()), ("x", pa.float64())])
        self.writer.put_many(pa.Table.from_pylist(rows, schema) if as_arrow else rows)
        self.model.update({key: (key, text, place / 4) for place, key in enumerate(keys)})

    @rule(key=KEYS, text=TEXTS)
    def put_if_absent(self, key: int, text: str | None) -> None:
        assert self.writer.put_if_absent({"id": key, "v": text, "x": 0.5}) == (key not in self.model)
        self.model.setdefault(key, (key, text, 0.5))

    @rule(key=KEYS)
    def delete(self, key: int) -> None:
        assert self.writer.delete({"id": key}) == (key in self.model)
        self.model.pop(key, None)

    @rule(key=KEYS)
    def get(self, key: int) -> None:
        found = self.writer.get({"id": key})
        expected: Any = self.model.get(key)
        assert found == (None if expected is None else dict(zip(("id", "v", "x"), expected, strict=True)))

    @rule(keys=st.lists(KEYS, max_size=9))
    def get_many(self, keys: list[int]) -> None:
        found = self.writer.get_many([{"id": key} for key in keys])
        assert [None if one is None else tuple(one.values()) for one in found] == [self.model.get(key) for key in keys]

    @rule(least=KEYS, beyond=KEYS, limit=st.none() | st.integers(0, 3))
    def range(self, least: int, beyond: int, limit: int | None) -> None:
        found = self.writer.scan(start={"id": least}, end={"id": beyond}, limit=limit).to_arrow().to_pylist()
        expected = [row for key, row in sorted(self.model.items()) if least <= key < beyond]
        assert [tuple(row.values()) for row in found] == expected[:limit]

    @rule(least=KEYS)
    def scan(self, least: int) -> None:
        found = sorted_rows(self.writer.scan(where=f"id >= {least}").to_arrow())
        assert found == sorted((row for key, row in self.model.items() if key >= least), key=repr)

    @rule()
    def flush(self) -> None:
        self.writer.flush()
        assert self.written.rows() == sorted(self.model.values(), key=repr)

    @rule(key=KEYS)
    def another_commits(self, key: int) -> None:
        """Only after a flush is it known which of two commits is the later."""
        self.writer.flush()
        self.written.table.write([{"id": key, "v": "theirs", "x": 1.0}])
        self.model[key] = (key, "theirs", 1.0)

    @rule()
    def compact(self) -> None:
        self.written.table.compact(full=True)

    @rule(torn=st.booleans())
    def crash(self, torn: bool) -> None:
        kill(self.writer)
        if torn:
            newest = max(self.written.log_folder().glob("wal-*.log"), key=lambda path: int(path.stem[4:]))
            newest.write_bytes(newest.read_bytes() + b"\x00\x00\x01\x00\x01torn")
        self.writer = self.written.writer(self.options)

    @rule()
    def reopen(self) -> None:
        self.writer.close()
        assert self.written.rows() == sorted(self.model.values(), key=repr)
        self.writer = self.written.writer(self.options)

    @precondition(lambda self: hasattr(self, "writer"))
    @invariant()
    def nothing_fails(self) -> None:
        assert self.writer.status().failed_flushes == 0

    def teardown(self) -> None:
        if hasattr(self, "writer"):
            self.writer.close()
            assert self.written.rows() == sorted(self.model.values(), key=repr)
        shutil.rmtree(self.folder)


WriterMachine.TestCase.settings = settings(max_examples=12, stateful_step_count=20, deadline=None)
test_a_writer_is_a_dict = WriterMachine.TestCase
