"""Rows that are encoded without Arrow have the bytes that they have by way of it."""

import random
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

import lakelet
from lakelet.realtime.nested_row import NestedRows
from lakelet.realtime.row_encoder import RowEncoder

_COLUMNS = [
    ("id", "STRING NOT NULL"),
    ("at", "TIMESTAMP(6) WITH LOCAL TIME ZONE"),
    (
        "payload",
        "ROW<n BIGINT, d DOUBLE, s STRING, b BOOLEAN, l ARRAY<BIGINT>, r ROW<x ARRAY<ROW<y STRING>>, z BYTES>, t ARRAY<STRING>>",
    ),
    ("rest", "STRING"),
    ("dt", "DATE"),
]
_FIELDS = ("n", "d", "s", "b", "l", "r", "t")
_BIG = 1 << 30


def rows(count: int, seed: int) -> list[dict[str, Any]]:
    chance = random.Random(seed)

    def maybe(value: Any) -> Any:
        return None if chance.random() < 0.2 else value

    def text() -> str:
        return "".join(chance.choice("aé名😀\n'\0") for _ in range(chance.choice([0, 1, 6, 7, 8, 30])))

    def payload() -> Any:
        nested = {
            "x": maybe([maybe({"y": maybe(text())}) for _ in range(chance.randrange(3))]),
            "z": maybe(chance.randbytes(chance.randrange(12))),
        }
        values = (
            chance.choice([0, -1, 2**63 - 1, -(2**63)]),
            chance.choice([0.0, -0.0, 1.5, 1e300, float("inf")]),
            text(),
            chance.random() < 0.5,
            [maybe(chance.randrange(-5, 5)) for _ in range(chance.randrange(4))],
            nested,
            [text() for _ in range(chance.randrange(3))],
        )
        return {name: maybe(value) for name, value in zip(_FIELDS, values, strict=True)}

    return [
        {
            "id": text() + "x",
            "at": maybe(
                datetime(1, 1, 1, tzinfo=UTC) + timedelta(microseconds=chance.randrange(315_000_000_000_000_000))
            ),
            "payload": maybe(payload()),
            "rest": maybe(text()),
            "dt": maybe(date(1, 1, 1) + timedelta(days=chance.randrange(3_650_000))),
        }
        for _ in range(count)
    ]


@pytest.mark.parametrize("primary_key", [[], ["id"]])
@pytest.mark.parametrize("seed", range(5))
def test_the_bytes_are_those_of_columns(tmp_path: Path, primary_key: list[str], seed: int) -> None:
    lake = lakelet.connect(str(tmp_path))
    lake.create_database("d")
    table = lake.create_table(
        "d.t", _COLUMNS, primary_key=primary_key, partitioned_by=[] if primary_key else ["dt"], options={"bucket": "2"}
        if primary_key else {"bucket": "2", "bucket-key": "id"},
    )  # fmt: skip
    encoder = RowEncoder(table.home, table.schema, _BIG)
    nested = NestedRows.of(table.schema, _BIG)
    assert nested is not None
    given = rows(60, seed)
    (batch,) = encoder.batches(given)
    assert nested.encode(given) == encoder.encode(batch)


@pytest.mark.parametrize(
    "change",
    [
        {"id": None},
        {"id": 7},
        {"at": datetime(2026, 1, 1)},
        {"at": datetime(2026, 1, 1, tzinfo=timezone(timedelta(hours=1)))},
        {"at": date(2026, 1, 1)},
        {"dt": datetime(2026, 1, 1, tzinfo=UTC)},
        {"payload": {"n": 1}},
        {"payload": {**dict.fromkeys(_FIELDS), "more": 1}},
        {"payload": {**dict.fromkeys(_FIELDS), "n": True}},
        {"payload": {**dict.fromkeys(_FIELDS), "n": 2**63}},
        {"payload": {**dict.fromkeys(_FIELDS), "d": float("nan")}},
        {"payload": {**dict.fromkeys(_FIELDS), "d": 1}},
        {"payload": {**dict.fromkeys(_FIELDS), "l": (1,)}},
        {"payload": {**dict.fromkeys(_FIELDS), "s": "\ud800"}},
        {"more": 1},
    ],
)
def test_what_needs_a_cast_is_left_to_columns(tmp_path: Path, change: dict[str, Any]) -> None:
    lake = lakelet.connect(str(tmp_path))
    lake.create_database("d")
    schema = lake.create_table("d.t", _COLUMNS, partitioned_by=["dt"]).schema
    nested = NestedRows.of(schema, _BIG)
    assert nested is not None
    (good,) = rows(1, 1)
    assert nested.encode([good]) is not None
    assert nested.encode([good, {**good, **change}]) is None
    assert NestedRows.of(schema, 10).encode([good]) is None  # type: ignore[union-attr]


def test_other_types_and_partitions_are_left_to_columns(tmp_path: Path) -> None:
    lake = lakelet.connect(str(tmp_path))
    lake.create_database("d")
    for place, (columns, partitions) in enumerate(
        (
            ([("id", "STRING"), ("m", "MAP<STRING, INT>")], []),
            ([("id", "DECIMAL(10, 2)")], []),
            ([("id", "STRING"), ("v", "VARCHAR(3)")], []),
            ([("id", "STRING"), ("v", "TIMESTAMP(9) WITH LOCAL TIME ZONE")], []),
            ([("id", "STRING"), ("v", "INT")], ["id"]),
        )
    ):
        schema = lake.create_table(f"d.t{place}", columns, partitioned_by=partitions).schema
        assert NestedRows.of(schema, _BIG) is None
