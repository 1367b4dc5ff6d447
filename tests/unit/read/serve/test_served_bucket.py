"""Single keys in the files of a bucket: which row wins, and files that are dropped or made anew while they are read."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lakelet
from lakelet import Lake, Table
from lakelet.format.sst.sst_reader import SstReader
from lakelet.read.lookup.block_cache import BLOCKS
from lakelet.read.serve.lookup_folder import lookup_folder
from lakelet.read.serve.served_bucket import ServedBucket
from lakelet.storage.memory import MemoryStore
from tests.crash.warehouse import SteppingClock

_ROWS = st.dictionaries(st.sampled_from([b"a", b"b", b"c"]), st.tuples(st.integers(0, 5), st.booleans(), st.booleans()))


class _File:
    """A file by its rows: sequence number, whether it is a retract, whether a deletion vector deletes it."""

    def __init__(self, rows: dict[bytes, tuple[int, bool, bool]]) -> None:
        self.rows = rows
        self.low, self.high = min(rows), max(rows)
        self.max_sequence = max(sequence for sequence, _, _ in rows.values())
        self.has_vector = any(is_gone for _, _, is_gone in rows.values())
        self.is_plain = False
        self.asked: list[bytes] = []

    def find(self, key: bytes) -> tuple[Any, Any] | None:
        self.asked.append(key)
        row = self.rows.get(key)
        return None if row is None else ((row[0], row[1], 0, ()), SimpleNamespace(is_gone=row[2]))


@given(st.lists(_ROWS.filter(bool), max_size=5), st.sampled_from([b"a", b"b", b"c"]), st.booleans())
def test_rule_05_the_row_with_the_greatest_sequence_number_wins(
    contents: list[dict[bytes, tuple[int, bool, bool]]], key: bytes, ignores: bool
) -> None:
    """Whatever the order of the files: the sequence numbers of rows decide, and of equal ones the later file."""
    files = sorted(map(_File, contents), key=lambda file: file.max_sequence)
    bucket = ServedBucket(Any, files, lambda hit: hit[2].is_gone)  # type: ignore[arg-type]
    candidates = [
        (file, file.rows[key])
        for file in files
        if key in file.rows and not file.rows[key][2] and not (ignores and file.rows[key][1])
    ]
    newest = max(enumerate(candidates), key=lambda pair: (pair[1][1][0], pair[0]), default=None)
    found = bucket.newest(key, ignores)
    assert (found and found[0]) is (newest and newest[1][0])
    oldest = min(enumerate(candidates), key=lambda pair: (pair[1][1][0], -pair[0]), default=None)
    first = bucket.oldest(key, ignores)
    assert (first and first[0]) is (oldest and oldest[1][0])
    assert [hit[0] for hit in bucket.every(key, ignores)] == [file for file, _ in candidates]


def test_files_that_are_too_old_are_not_asked() -> None:
    old, new = _File({b"a": (1, False, False)}), _File({b"a": (7, False, False)})
    assert ServedBucket(Any, [old, new], lambda _: False).newest(b"a", False) is not None  # type: ignore[arg-type, list-item]
    assert (old.asked, new.asked) == ([], [b"a"])


COLUMNS = [
    ("id", "BIGINT NOT NULL"),
    ("t", "TINYINT"),
    ("s", "SMALLINT"),
    ("i", "INT"),
    ("b", "BOOLEAN"),
    ("f", "FLOAT"),
    ("d", "DOUBLE"),
    ("text", "STRING"),
    ("bytes", "BYTES"),
    ("day", "DATE"),
    ("at", "TIMESTAMP(6)"),
    ("money", "DECIMAL(10, 2)"),
    ("wide", "DECIMAL(30, 2)"),
    ("list", "ARRAY<INT>"),
    ("map", "MAP<STRING, INT>"),
    ("row", "ROW<x INT, y STRING>"),
]


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    BLOCKS.clear()
    lake = lakelet.connect(str(tmp_path / "warehouse"))
    lake.create_database("d")
    return lake


def table_of(lake: Lake, count: int, **options: str) -> Table:
    chosen = {"bucket": "1", **options}
    table = lake.create_table("d.t", [("id", "BIGINT NOT NULL"), ("v", "INT")], primary_key=["id"], options=chosen)
    table.write([{"id": number, "v": number} for number in range(count)])
    return table


@pytest.mark.parametrize("delta", ["true", "false"])
def test_values_of_every_type(lake: Lake, delta: str) -> None:
    """What single keys give is what Arrow gives, with and without differences, and NULLs, whatever was asked before."""
    options = {"bucket": "1", "sst.delta-encoding": delta}
    table = lake.create_table("d.t", COLUMNS, primary_key=["id"], options=options)
    table.write(
        pa.table(
            {
                "id": pa.array([-(2**63), -1, 0, 2**63 - 1]),
                "t": pa.array([-128, 127, -1, None], pa.int8()),
                "s": pa.array([-32768, None, 32767, -1], pa.int16()),
                "i": pa.array([None, -(2**31), 2**31 - 1, -1], pa.int32()),
                "b": pa.array([True, False, None, True]),
                "f": pa.array([-0.0, float("inf"), 1e-40, None], pa.float32()),
                "d": pa.array([float("nan"), -1.5, None, 5e-324]),
                "text": pa.array(["", "größer\x00", "x" * 5000, None]),
                "bytes": pa.array([b"\xff\x00", None, b"", b"b"]),
                "day": pa.array([-1, 0, 20000, None], pa.int32()).cast(pa.date32()),
                "at": pa.array([-1, 0, None, 10**15]).cast(pa.timestamp("us")),
                "money": pa.array(["-1.50", "0.00", None, "99999999.99"]).cast(pa.decimal128(10, 2)),
                "wide": pa.array(["-1.50", None, "1" * 28 + ".01", "0.00"]).cast(pa.decimal128(30, 2)),
                "list": pa.array([[1, None], [], None, [3]], pa.list_(pa.int32())),
                "map": pa.array([[("a", 1)], [], None, [("b", None)]], pa.map_(pa.string(), pa.int32())),
                "row": pa.array([{"x": 1, "y": None}, None, {"x": None, "y": "z"}, {"x": 2, "y": ""}]),
            }
        )
    )
    expected = {row["id"]: row for row in table.scan().to_arrow().to_pylist()}
    with table.lookup() as lookup:
        for _ in range(2):
            for number, row in expected.items():
                found = lookup.get({"id": number})
                assert repr(found) == repr(row)
                assert found is not None
                if found["list"] is not None:
                    found["list"].append(7)
                found["text"] = "changed"
        names = ["row", "i", "list"]
        assert repr(lookup.get({"id": 0}, columns=names)) == repr({name: expected[0][name] for name in names})


def test_a_file_that_is_dropped_under_an_open_handle(lake: Lake, tmp_path: Path) -> None:
    table = table_of(lake, 500)
    with table.lookup() as lookup:
        assert lookup.get({"id": 3}) == {"id": 3, "v": 3}
        (path,) = tmp_path.glob("cache/lakelet/lookup/*/*.sst")
        folder = lookup_folder(str(tmp_path / "cache" / "lakelet" / "lookup"))
        folder.sweep(1e12)
        assert not path.exists()
        assert [lookup.get({"id": number}) for number in (3, 4, 499, 500)] == [
            *({"id": number, "v": number} for number in (3, 4, 499)),
            None,
        ]
        (again,) = tmp_path.glob("cache/lakelet/lookup/*/*.sst")
        assert again != path


def test_a_file_is_in_use_as_long_as_keys_are_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys in blocks that are in memory count, and drop the files that nobody uses."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    clock = SteppingClock()
    lake = Lake(MemoryStore("used"), clock=clock)
    lake.create_database("d")
    table = table_of(lake, 20)
    other = lake.create_table("d.u", [("id", "INT NOT NULL")], primary_key=["id"], options={"bucket": "1"})
    other.write([{"id": 1}])
    with table.lookup() as lookup, other.lookup() as unused:
        assert unused.get({"id": 1}) == {"id": 1}
        for _ in range(3):
            assert lookup.get({"id": 3}) == {"id": 3, "v": 3}
            clock.sleep(1500)
        before = {path.name for path in tmp_path.glob("cache/lakelet/lookup/*/*.sst")}
        assert lookup.get({"id": 3}) == {"id": 3, "v": 3}
        after = {path.name for path in tmp_path.glob("cache/lakelet/lookup/*/*.sst")}
        assert (len(before), len(after), after < before) == (2, 1, True)


def test_blocks_in_use_stay_in_a_small_cache(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """A block that is asked for between others is not displaced by them; rows are right while blocks are dropped."""
    table = table_of(lake, 20_000, **{"lookup.cache-max-memory-size": "400 kb"})
    with table.lookup() as lookup:
        lookup.get({"id": 0})
        loads: list[int] = []
        rows = SstReader.rows
        monkeypatch.setattr(SstReader, "rows", lambda self, *at: (loads.append(at[0]), rows(self, *at))[1])
        for number in range(1, 20_000, 13):
            assert lookup.get({"id": number}) == {"id": number, "v": number}
            assert lookup.get({"id": 0}) == {"id": 0, "v": 0}
        assert BLOCKS.weight <= 400 << 10
        assert loads.count(0) <= len(loads) // 64 + 1


def test_threads_and_a_fork_while_files_are_dropped(lake: Lake, tmp_path: Path) -> None:
    table = table_of(lake, 3000)
    wrong: list[object] = []
    folder = lookup_folder(str(tmp_path / "cache" / "lakelet" / "lookup"))
    with table.lookup() as lookup:

        def read(seed: int) -> None:
            try:
                for number in range(seed, 3000, 5):
                    if lookup.get({"id": number}) != {"id": number, "v": number}:
                        wrong.append(number)
                    if number % 100 == seed:
                        folder.sweep(1e12)
                        BLOCKS.clear()
            except BaseException as error:
                wrong.append(error)

        threads = [threading.Thread(target=read, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert wrong == []
        assert lookup.get({"id": 7}) == {"id": 7, "v": 7}
        child = os.fork()
        if child == 0:
            own = [lookup.get({"id": number}) for number in (7, 8)]
            files = list(tmp_path.glob(f"cache/lakelet/lookup/{os.getpid()}-*/*.sst"))
            os._exit(0 if own == [{"id": 7, "v": 7}, {"id": 8, "v": 8}] and files else 1)
        assert os.waitpid(child, 0)[1] == 0
