"""Fixed buckets: every implementation puts a key into the same one."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from tests.conformance.tables import (
    JAVA,
    LAKELET,
    NATIVE,
    PYTHON,
    Rows,
    Warehouse,
    in_order,
    same,
    spell_rows,
    spell_table,
)

BUCKETS = 7

KEYS: dict[str, tuple[list[tuple[str, str]], list[tuple[Any, ...]]]] = {
    "bigint": ([("k", "BIGINT")], [(value,) for value in (*range(40), -1, -(2**63), 2**63 - 1)]),
    "int": ([("k", "INT")], [(value,) for value in (*range(-20, 20), -(2**31), 2**31 - 1)]),
    "small": (
        [("k", "TINYINT"), ("l", "SMALLINT"), ("m", "BOOLEAN")],
        [(n - 128, n * 17 - 2000, n % 2 == 0) for n in range(60)],
    ),
    "string": (
        [("k", "STRING")],
        [(text,) for text in ("", "a", "1234567", "12345678", "数据", *(f"key-{n}" * (n % 5) for n in range(40)))],
    ),
    "floats": (
        [("k", "FLOAT"), ("l", "DOUBLE")],
        [(float("nan"), -0.0), (-0.0, float("nan")), (0.0, 0.0), *((n / 8, -n / 3) for n in range(40))],
    ),
    "decimals": (
        [("k", "DECIMAL(9, 2)"), ("l", "DECIMAL(18, 4)"), ("m", "DECIMAL(38, 10)")],
        [(Decimal(n) / 4 - 3, Decimal(n) * 1000, Decimal(n) ** 5 - Decimal("0.5")) for n in range(40)],
    ),
    "moments": (
        [
            ("k", "TIMESTAMP(3)"),
            ("l", "TIMESTAMP(6)"),
            ("m", "DATE"),
            ("n", "TIME(3)"),
            ("o", "TIMESTAMP(6) WITH LOCAL TIME ZONE"),
        ],
        [
            (
                datetime.datetime(1969, 12, 31, 23, 0, 0, n * 1000),
                datetime.datetime(2024, 1, 1, 0, 0, 0, n * 1001),
                datetime.date(1970, 1, 1) + datetime.timedelta(days=n - 20),
                datetime.time(n % 24, 0, 0, n * 1000),
                datetime.datetime(1960, 1, 1, 0, 0, 0, n * 999),
            )
            for n in range(40)
        ],
    ),
    "binary": ([("k", "BYTES"), ("l", "BINARY(9)")], [(bytes(range(n)), bytes([n] * 9)) for n in range(40)]),
    "nulls": (
        [("k", "BIGINT"), ("l", "STRING"), ("m", "DECIMAL(38, 2)"), ("n", "TIMESTAMP(6)")],
        [(None, None, None, None), (1, None, None, None), (None, "x", None, None)],
    ),
    "second-first": ([("k", "STRING"), ("l", "INT")], [(f"text number {n}", n) for n in range(40)]),
}


def bucket_rows(warehouse: Warehouse, name: str) -> dict[int, Rows]:
    """The rows of each bucket, spelled."""
    scan = warehouse.table(name).scan()
    found: dict[int, Rows] = {}
    for split in scan.plan().splits:
        rows = pa.Table.from_batches(scan.read(split))
        found.setdefault(split.bucket, []).extend(spell_table(rows, scan.schema.fields))
        assert all(f"/bucket-{split.bucket}/" in path for path in split.paths)
    return {bucket: in_order(rows) for bucket, rows in found.items()}


@pytest.mark.parametrize("name", list(KEYS))
def test_keys_go_to_the_same_buckets(warehouse: Warehouse, name: str) -> None:
    columns, keys = KEYS[name]
    # The bucket key need not be in the order of the columns.
    names = [column for column, _ in columns]
    order = list(reversed(names)) if name == "second-first" else names
    options = {"bucket": str(BUCKETS), "bucket-key": ",".join(order)}
    rows: Rows = [{"id": number, **dict(zip(names, key, strict=True))} for number, key in enumerate(keys)]
    for writer in (JAVA, LAKELET):
        warehouse.create(writer, writer, [("id", "INT"), *columns], options=options)
        warehouse.write(writer, writer, rows)
    chosen = bucket_rows(warehouse, JAVA)
    assert len(chosen) > 1
    assert bucket_rows(warehouse, LAKELET) == chosen
    expected = spell_rows(rows, warehouse.table(JAVA).schema.fields)
    for table in (JAVA, LAKELET):
        same(warehouse.agree(table), expected, f"all of {table}'s")


@pytest.mark.parametrize("partitioned_by", [[], ["p"]], ids=["plain", "partitioned"])
def test_all_write_the_same_buckets(warehouse: Warehouse, partitioned_by: list[str]) -> None:
    columns = [("id", "INT"), ("k", "BIGINT"), ("p", "STRING"), ("s", "STRING")]
    options = {"bucket": str(BUCKETS), "bucket-key": "k,s"}
    warehouse.create(LAKELET, "t", columns, partitioned_by=partitioned_by, options=options)
    # pypaimon cannot write to a NULL partition that has files when buckets are fixed.
    rows: Rows = [
        {"id": n, "k": n * 31 - 200, "p": ["a", "", "b c"][n % 3], "s": f"some text {n % 5}"} for n in range(60)
    ]
    chosen: dict[int, Rows] | None = None
    writers = (LAKELET, JAVA, PYTHON, NATIVE)
    for number, writer in enumerate(writers):
        warehouse.write(writer, "t", rows)
        found = bucket_rows(warehouse, "t")
        if chosen is None:
            chosen = found
        # Every row stands in its bucket once per writer so far.
        assert found == {bucket: in_order(list(in_bucket) * (number + 1)) for bucket, in_bucket in chosen.items()}, (
            writer
        )
    expected = spell_rows(rows * len(writers), warehouse.table("t").schema.fields)
    same(warehouse.agree("t"), expected, "all")


def test_bucket_key_chooses_the_same_rows(warehouse: Warehouse) -> None:
    """Java looks only into the bucket of the key, so a row in the wrong one would be lost."""
    warehouse.create(LAKELET, "t", [("id", "INT"), ("k", "STRING")], options={"bucket": "16", "bucket-key": "k"})
    rows: Rows = [{"id": n, "k": f"{n:03}-" + "数" * (n % 9)} for n in range(80)]
    warehouse.write(LAKELET, "t", rows[:40])
    warehouse.write(JAVA, "t", rows[40:])
    for row in rows[::7]:
        where = "k = '{}'".format(row["k"])
        assert warehouse.filtered(JAVA, "t", [f"k = {row['k']}"]) == [row]
        assert warehouse.filtered(LAKELET, "t", where) == [row]
        assert warehouse.filtered(PYTHON, "t", [("k", "equal", row["k"])]) == [row]


def test_rows_stay_in_their_bucket_when_others_are_deleted(warehouse: Warehouse) -> None:
    warehouse.create(JAVA, "t", [("id", "INT"), ("k", "INT")], options={"bucket": "4", "bucket-key": "k"})
    rows: Rows = [{"id": n, "k": n} for n in range(40)]
    warehouse.write(JAVA, "t", rows)
    before = bucket_rows(warehouse, "t")
    warehouse.table("t").delete(where="id % 3 = 0")
    after = {bucket: [row for row in kept if row["id"] % 3] for bucket, kept in before.items()}
    assert bucket_rows(warehouse, "t") == after
    same(warehouse.agree("t"), [row for row in rows if row["id"] % 3], "all")
