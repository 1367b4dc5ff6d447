"""Every type that a log holds: what was put is, before its flush, after it and after a crash, what `write` stores."""

from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.unit.realtime.written_table import WrittenTable, kill

COLUMNS = [
    ("k", "BIGINT NOT NULL"),
    ("b", "BOOLEAN"),
    ("t", "TINYINT"),
    ("s", "SMALLINT"),
    ("i", "INT"),
    ("f", "FLOAT"),
    ("d", "DOUBLE"),
    ("m", "DECIMAL(10, 2)"),
    ("w", "DECIMAL(38, 10)"),
    ("c", "CHAR(3)"),
    ("v", "VARCHAR(5)"),
    ("x", "STRING"),
    ("y", "BYTES"),
    ("z", "BINARY(2)"),
    ("day", "DATE"),
    ("at", "TIME(3)"),
    ("ts", "TIMESTAMP(6)"),
    ("short", "TIMESTAMP(3)"),
    ("ltz", "TIMESTAMP(6) WITH LOCAL TIME ZONE"),
    ("list", "ARRAY<STRING>"),
    ("map", "MAP<INT, ARRAY<BIGINT>>"),
    ("bag", "MULTISET<STRING>"),
    ("row", "ROW<a INT, b ROW<c ARRAY<DOUBLE>>>"),
]
LEAST: dict[str, Any] = {
    "k": -(2**63),
    "b": False,
    "t": -128,
    "s": -(2**15),
    "i": -(2**31),
    "f": -0.0,
    "d": float("-inf"),
    "m": Decimal("-99999999.99"),
    "w": Decimal("-" + "9" * 28 + "." + "9" * 10),
    "c": "a  ",
    "v": "",
    "x": "\x00é\U0001f600",
    "y": b"",
    "z": b"\x00\xff",
    "day": date(1, 1, 1),
    "at": time(0, 0),
    "ts": datetime(1, 1, 1),
    "short": datetime(1969, 12, 31, 23, 59, 59, 999000),
    "ltz": datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
    "list": [],
    "map": {},
    "bag": {},
    "row": {"a": None, "b": None},
}
GREATEST: dict[str, Any] = {
    "k": 2**63 - 1,
    "b": True,
    "t": 127,
    "s": 2**15 - 1,
    "i": 2**31 - 1,
    "f": 1.5,
    "d": 5e-324,
    "m": Decimal("0.01"),
    "w": Decimal("9" * 28 + "." + "9" * 10),
    "c": "abc",
    "v": "ééééé",
    "x": "long" * 100,
    "y": b"\x00" * 50,
    "z": b"ab",
    "day": date(9999, 12, 31),
    "at": time(23, 59, 59, 999000),
    "ts": datetime(9999, 12, 31, 23, 59, 59, 999999),
    "short": datetime(9999, 12, 31, 23, 59, 59, 999000),
    "ltz": datetime(2026, 11, 18, 5, 0, 0, 1, tzinfo=UTC),
    "list": ["", None, "long" * 20],
    "map": {1: [2, None], -1: []},
    "bag": {"a": 2, "": 1},
    "row": {"a": 1, "b": {"c": [-0.0, 5e-324]}},
}
EMPTY: dict[str, Any] = {name: 0 if name == "k" else None for name, _ in COLUMNS}
ROWS = [LEAST, EMPTY, GREATEST]


def by_key(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: int(row["k"]))


@pytest.mark.parametrize("end", ["flush", "crash"])
@pytest.mark.parametrize("copies", [1, 3])
def test_a_row_is_the_one_that_write_stores(tmp_path: Path, end: str, copies: int) -> None:
    plain = WrittenTable(tmp_path / "plain", columns=COLUMNS, key=("k",))
    plain.table.write(ROWS)
    stored = by_key(plain.table.scan().to_arrow().to_pylist())
    written = WrittenTable(tmp_path / "written", columns=COLUMNS, key=("k",))
    writer = written.writer()
    writer.put_many(ROWS * copies)
    assert by_key(writer.scan().to_arrow().to_pylist()) == stored
    assert [writer.get({"k": row["k"]}) for row in stored] == stored
    if end == "flush":
        writer.close()
    else:
        kill(writer)
        written.writer().close()
    assert by_key(written.table.scan().to_arrow().to_pylist()) == stored
    assert repr(stored[0]["f"]) == "-0.0"
