"""The harnesses themselves: each implementation reads what it wrote, and a refusal is an error here."""

import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.conformance.java.client import ColumnType, JavaPaimon
from tests.conformance.java.values import rows_of
from tests.conformance.line_process import HarnessError, LineProcess
from tests.conformance.pypaimon.client import PyPaimon

COLUMNS: list[tuple[str, ColumnType]] = [
    ("id", "BIGINT NOT NULL"),
    ("price", "DECIMAL(10, 2)"),
    ("at", "TIMESTAMP(6)"),
    ("day", "DATE"),
    ("tags", {"type": "ARRAY", "element": "STRING"}),
    ("spot", {"type": "ROW", "fields": [{"name": "x", "type": "INT"}, {"name": "y", "type": "FLOAT"}]}),
    ("dt", "STRING"),
]

ARROW = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        ("price", pa.decimal128(10, 2)),
        ("at", pa.timestamp("us")),
        ("day", pa.date32()),
        ("tags", pa.list_(pa.string())),
        ("spot", pa.struct([("x", pa.int32()), ("y", pa.float32())])),
        ("dt", pa.string()),
    ]
)


def rows(*ids: int, dt: str = "2024-01-01") -> pa.Table:
    """One row per id; every odd one is NULL wherever it may be."""
    values = [
        {"id": id_, "dt": dt}
        if id_ % 2
        else {
            "id": id_,
            "price": Decimal("12.30") + id_,
            "at": datetime.datetime(2024, 1, 2, 3, 4, 5, 678901),
            "day": datetime.date(2024, 2, 29),
            "tags": ["a", None],
            "spot": {"x": id_, "y": 1.1},
            "dt": dt,
        }
        for id_ in ids
    ]
    return pa.Table.from_pylist(values, ARROW)


def sorted_ids(table: pa.Table) -> list[int]:
    return sorted(table.column("id").to_pylist())


def test_java_reads_what_java_wrote(java_paimon: JavaPaimon, tmp_path: Path) -> None:
    java_paimon.create(tmp_path, "db.t", COLUMNS, partitioned_by=["dt"], comment="orders")
    java_paimon.write(tmp_path, "db.t", rows_of(rows(1, 2)))
    java_paimon.write(tmp_path, "db.t", rows_of(rows(3, dt="2024-01-02")))

    assert sorted(java_paimon.read(tmp_path, "db.t"), key=lambda row: row["id"]) == rows_of(
        pa.concat_tables([rows(1, 2), rows(3, dt="2024-01-02")])
    )
    assert java_paimon.read(tmp_path, "db.t", columns=["id"], filters=["id > 2"]) == [{"id": 3}]
    assert len(java_paimon.read(tmp_path, "db.t", snapshot=1)) == 2
    assert [snapshot["id"] for snapshot in java_paimon.snapshots(tmp_path, "db.t")] == [1, 2]
    assert java_paimon.schema(tmp_path, "db.t")["comment"] == "orders"


def test_arrow_values_are_spelled_as_java_spells_them(java_paimon: JavaPaimon, tmp_path: Path) -> None:
    moment = datetime.datetime(1969, 12, 31, 23, 59, 58, 7000)
    columns: list[tuple[str, ColumnType, pa.DataType, Any]] = [
        ("yes", "BOOLEAN", pa.bool_(), True),
        ("tiny", "TINYINT", pa.int8(), -128),
        ("float", "FLOAT", pa.float32(), 3.4028235e38),
        ("nan", "DOUBLE", pa.float64(), float("nan")),
        ("far", "FLOAT", pa.float32(), float("-inf")),
        ("wide", "DECIMAL(38, 18)", pa.decimal128(38, 18), Decimal("-1.5")),
        ("bytes", "BINARY(3)", pa.binary(3), b"\x00\xff\x10"),
        ("more", "VARBINARY(9)", pa.binary(), b""),
        ("time", "TIME(3)", pa.time32("ms"), datetime.time(23, 59, 59, 999000)),
        ("s", "TIMESTAMP(0)", pa.timestamp("s"), moment.replace(microsecond=0)),
        ("ms", "TIMESTAMP(3)", pa.timestamp("ms"), moment),
        ("ns", "TIMESTAMP(9)", pa.timestamp("ns"), 1_700_000_000_123_456_789),
        ("zoned", "TIMESTAMP(6) WITH LOCAL TIME ZONE", pa.timestamp("us", "UTC"), moment),
        ("map", {"type": "MAP", "key": "INT", "value": "STRING"}, pa.map_(pa.int32(), pa.string()), [(1, None)]),
        ("times", {"type": "ARRAY", "element": "TIMESTAMP(3)"}, pa.list_(pa.timestamp("ms")), [moment, None]),
    ]
    table = pa.table({name: pa.array([value, None], type_) for name, _, type_, value in columns})
    java_paimon.create(tmp_path, "db.t", [(name, spec) for name, spec, _, _ in columns])
    java_paimon.write(tmp_path, "db.t", rows_of(table))

    assert java_paimon.read(tmp_path, "db.t") == rows_of(table)
    first = rows_of(table)[0]
    assert (first["ns"], first["zoned"]) == ("2023-11-14 22:13:20.123456789", "1969-12-31 23:59:58.007000Z")
    assert (first["float"], first["bytes"], first["time"]) == (3.4028235e38, "00ff10", "23:59:59.999")


def test_java_overwrites_a_static_partition(java_paimon: JavaPaimon, tmp_path: Path) -> None:
    java_paimon.create(tmp_path, "db.t", [("id", "INT"), ("dt", "STRING")], partitioned_by=["dt"])
    java_paimon.write(tmp_path, "db.t", [{"id": 1, "dt": "a"}, {"id": 2, "dt": "b"}])

    java_paimon.write(tmp_path, "db.t", [], overwrite={"dt": "a"})
    assert java_paimon.read(tmp_path, "db.t") == [{"id": 2, "dt": "b"}]

    java_paimon.write(tmp_path, "db.t", [{"id": 3, "dt": "b"}], overwrite=True)
    assert java_paimon.read(tmp_path, "db.t") == [{"id": 3, "dt": "b"}]


def test_java_alters_nested_columns(java_paimon: JavaPaimon, tmp_path: Path) -> None:
    spot = {"type": "ROW", "fields": [{"name": "x", "type": "INT"}, {"name": "y", "type": "INT"}]}
    java_paimon.create(tmp_path, "db.t", [("id", "INT"), ("spot", spot)])
    java_paimon.write(tmp_path, "db.t", [{"id": 1, "spot": {"x": 2, "y": 3}}])

    java_paimon.alter(
        tmp_path,
        "db.t",
        {"op": "rename", "name": ["spot", "x"], "to": "east"},
        {"op": "drop", "name": ["spot", "y"]},
        {"op": "add", "name": ["spot", "up"], "type": "DOUBLE"},
        {"op": "type", "name": "id", "type": "BIGINT"},
        {"op": "add", "name": "note", "type": "STRING", "comment": "free text", "first": True},
        {"op": "comment", "comment": "places"},
        {"op": "option", "key": "snapshot.num-retained.min", "value": "3"},
    )

    assert java_paimon.read(tmp_path, "db.t") == [{"note": None, "id": 1, "spot": {"east": 2, "up": None}}]
    schema = java_paimon.schema(tmp_path, "db.t")
    assert schema["comment"] == "places"
    assert schema["options"]["snapshot.num-retained.min"] == "3"
    assert [field["name"] for field in schema["fields"]] == ["note", "id", "spot"]
    assert schema["fields"][0]["description"] == "free text"
    assert schema["fields"][1]["type"] == "BIGINT"


def test_java_tags_branches_and_rolls_back(java_paimon: JavaPaimon, tmp_path: Path) -> None:
    java_paimon.create(tmp_path, "db.t", [("id", "INT")])
    for id_ in (1, 2, 3):
        java_paimon.write(tmp_path, "db.t", [{"id": id_}])
    java_paimon.tag(tmp_path, "db.t", "two", 2)
    java_paimon.branch(tmp_path, "db.t", "dev", "two")
    java_paimon.write(tmp_path, "db.t", [{"id": 9}], branch="dev")

    def ids(**travel: Any) -> list[int]:
        return sorted(row["id"] for row in java_paimon.read(tmp_path, "db.t", **travel))

    assert ids(tag="two") == [1, 2]
    assert ids(branch="dev") == [1, 2, 9]
    assert java_paimon.branches(tmp_path, "db.t") == ["dev"]

    java_paimon.rollback(tmp_path, "db.t", 2)
    assert ids() == [1, 2]
    java_paimon.fast_forward(tmp_path, "db.t", "dev")
    assert ids() == [1, 2, 9]

    java_paimon.delete_branch(tmp_path, "db.t", "dev")
    java_paimon.delete_tag(tmp_path, "db.t", "two")
    assert java_paimon.branches(tmp_path, "db.t") == []
    assert java_paimon.tags(tmp_path, "db.t") == []


def test_java_says_why_it_refuses(java_paimon: JavaPaimon, tmp_path: Path) -> None:
    java_paimon.create(tmp_path, "db.t", [("id", "INT NOT NULL")])
    with pytest.raises(HarnessError, match=r"(?i)null"):
        java_paimon.write(tmp_path, "db.t", [{"id": None}])
    java_paimon.drop(tmp_path, "db.t")
    with pytest.raises(HarnessError, match="TableNotExist"):
        java_paimon.read(tmp_path, "db.t")


@pytest.mark.parametrize("write_native", [False, True], ids=["python-writes", "native-writes"])
@pytest.mark.parametrize("read_native", [False, True], ids=["python-reads", "native-reads"])
def test_pypaimon_reads_what_pypaimon_wrote(
    pypaimon: PyPaimon, tmp_path: Path, write_native: bool, read_native: bool
) -> None:
    pypaimon.create(tmp_path, "db.t", COLUMNS, partitioned_by=["dt"])
    pypaimon.write(tmp_path, "db.t", rows(1, 2), native=write_native)
    pypaimon.write(tmp_path, "db.t", rows(3, 4, dt="2024-01-02"), native=write_native)

    found = pypaimon.read(tmp_path, "db.t", native=read_native).sort_by("id")
    expected = pa.concat_tables([rows(1, 2), rows(3, 4, dt="2024-01-02")])
    assert found.to_pylist() == expected.to_pylist()

    def ids(**arguments: Any) -> list[int]:
        return sorted_ids(pypaimon.read(tmp_path, "db.t", native=read_native, **arguments))

    assert ids(snapshot=1) == [1, 2]
    assert ids(filters=[("dt", "equal", "2024-01-02")], columns=["id"]) == [3, 4]
    assert ids(filters=[("price", "greaterThan", "14.30"), ("day", "equal", "2024-02-29")]) == [4]
    assert ids(filters=[("id", "greaterThan", 99)]) == []
    assert [snapshot["id"] for snapshot in pypaimon.snapshots(tmp_path, "db.t")] == [1, 2]


@pytest.mark.parametrize("native", [False, True], ids=["python", "native"])
def test_pypaimon_tags_and_overwrites(pypaimon: PyPaimon, tmp_path: Path, native: bool) -> None:
    pypaimon.create(tmp_path, "db.t", COLUMNS, partitioned_by=["dt"])
    pypaimon.write(tmp_path, "db.t", pa.concat_tables([rows(1), rows(2, dt="2024-01-02")]), native=native)
    pypaimon.tag(tmp_path, "db.t", "before")
    pypaimon.write(tmp_path, "db.t", rows(5), native=native, overwrite={"dt": "2024-01-01"})

    assert sorted_ids(pypaimon.read(tmp_path, "db.t", native=native)) == [2, 5]
    assert sorted_ids(pypaimon.read(tmp_path, "db.t", native=native, tag="before")) == [1, 2]
    pypaimon.delete_tag(tmp_path, "db.t", "before")
    assert pypaimon.tags(tmp_path, "db.t") == []
    with pytest.raises(HarnessError):
        pypaimon.read(tmp_path, "db.none", native=native)


def test_a_dead_process_shows_its_last_words() -> None:
    process = LineProcess("the shell", ["sh", "-c", "read line; echo out of cheese >&2; exit 3"])
    with pytest.raises(HarnessError, match=r"(?s)status 3.*out of cheese"):
        process.ask({"command": "hello"})
    process.close()
