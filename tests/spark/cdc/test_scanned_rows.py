"""The compiled scanner and expressions give the same rows and the same poison, whatever events hold."""

import json
import os
import random
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import lakelet
from lakelet.format.compiled.compile_cache import has_numba
from lakelet.spark.cdc.arguments import settings_of
from lakelet.spark.cdc.batch import planned_batch
from lakelet.spark.cdc.rows.kept_rows import forget_rows, keep_rows
from tests.spark.cdc.cdc_frames import frame, rows, synced
from tests.spark.cdc.sample_events import DECIMAL, canal, debezium, maxwell, text

# JSON as it is written: numbers that a double would change, values of another type than their column's, and texts that look so.
VALUES = (
    *(
        "0",
        "7",
        "-7",
        "-0",
        "127",
        "128",
        "2147483648",
        "9223372036854775807",
        "9223372036854775808",
        "1" * 30,
        "1" * 50,
    ),
    *(
        "12.0",
        "12.50",
        "0.1000",
        "0.00001",
        "-0.0",
        "0.0",
        "1e2",
        "1E-7",
        "0.12345678901234567890123",
        "27062845529266.3769123",
    ),
    *(
        "1e400",
        "true",
        "false",
        "null",
        '""',
        '"null"',
        '"true"',
        '"7"',
        '"+7"',
        '" 7"',
        '"12.50"',
        '"12.505"',
        '"-1e5"',
    ),
    *(
        '"NaN"',
        '"Infinity"',
        '"-0.0"',
        '"1."',
        '".5"',
        '"1d"',
        '"99999999.99"',
        '"100000000.00"',
        '{"a":1.50}',
        "[1,2.50]",
    ),
    *(
        "{}",
        '"{}"',
        '"[1]"',
        '"ä\\"\\\\\\n\\t日本語\\u00e9\\ud83d\\ude00"',
        '"äöüäöüäöüä"',
        '"abcdefghijk"',
        '"\\u0000"',
    ),
    *(
        '"BNI="',
        '"/w=="',
        '"BNI"',
        '"B*I="',
        '"BNJ="',
        '"f/////////8="',
        '"/////////////////////w=="',
        '"AQ=="',
        '"=="',
    ),
    *(
        '"__debezium_unavailable_value"',
        '"X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ=="',
        '"[\\"__debezium_unavailable_value\\"]"',
    ),
    *('"2024-02-29"', '"2023-02-29"', '"0000-00-00"', '"2024-1-1"', '"9999-12-31"', '"2024-02-29 23:59:59"', '"1"'),
    *('"2024-02-29T23:59:59.5Z"', '"2024-02-29T23:59:59.123456+05:30"', '"2024-02-29 23:59:59.1234567"', '"24:00:00"'),
    *(
        '"1969-12-31 23:59:59.999999"',
        '"23:59:59.120"',
        '"23:59:59.1234"',
        "-719162",
        "-719163",
        "86399999",
        "86400000",
    ),
    *("1704067200123456", "-62135596800000", "253402300799999", "253402300800000"),
)
FIELDS: list[dict[str, Any]] = [
    {"field": "id", "type": "int64", "optional": False},
    {"field": "small", "type": "int8"},
    {
        "field": "price",
        "type": "bytes",
        "name": DECIMAL,
        "parameters": {"scale": "2", "connect.decimal.precision": "10"},
    },
    {
        "field": "wide",
        "type": "bytes",
        "name": DECIMAL,
        "parameters": {"scale": "0", "connect.decimal.precision": "30"},
    },
    {"field": "weight", "type": "float64"},
    {"field": "note", "type": "string"},
    {"field": "bytes", "type": "bytes"},
    {"field": "born", "type": "int32", "name": "io.debezium.time.Date"},
    {"field": "ms", "type": "int64", "name": "io.debezium.time.Timestamp"},
    {"field": "us", "type": "int64", "name": "io.debezium.time.MicroTimestamp"},
    {"field": "clock", "type": "int64", "name": "io.debezium.time.MicroTime"},
    {"field": "instant", "type": "string", "name": "io.debezium.time.ZonedTimestamp"},
    {"field": "active", "type": "boolean"},
]
SEED = os.environ.get("LAKELET_SEED", "")
MYSQL = {
    "id": "bigint",
    "small": "tinyint",
    "price": "decimal(10,2)",
    "wide": "decimal(30,4)",
    "huge": "bigint unsigned",
    "weight": "double",
    "note": "varchar(10)",
    "text": "longtext",
    "born": "date",
    "at": "datetime(3)",
    "second": "timestamp",
    "clock": "time(3)",
    "active": "tinyint(1)",
}


def number(chosen: random.Random) -> str:
    """A number of up to forty digits, which may have a fraction, an exponent and zeros at its end."""
    size = chosen.choice([1, 2, 3, 5, 9, 15, 17, 18, 19, 20, 28, 36, 38, 40])
    digits = chosen.choice("123456789") + "".join(chosen.choices("0123456789", k=size - 1))
    point = chosen.randrange(size)
    whole = chosen.choice([digits, digits, digits[: point + 1], f"{digits[0]}00", "0"])
    fraction = chosen.choice(["", "", ".0", ".50", f".{digits[point:]}", f".{digits[point:][:4]}0"])
    exponent = chosen.choice([*[""] * 8, "e3", "E-2"])
    text = chosen.choice(["", "", "-"]) + whole + fraction + exponent
    return text if chosen.random() < 0.5 else f'"{text}"'


def moment(chosen: random.Random) -> str:
    """A day, a time or both, of which some do not exist."""
    day = f"{chosen.randrange(1, 10000):04}-{chosen.randrange(0, 14):02}-{chosen.randrange(0, 33):02}"
    clock = f"{chosen.randrange(0, 25):02}:{chosen.randrange(0, 61):02}:{chosen.randrange(0, 61):02}"
    clock += chosen.choice(["", "", f".{chosen.randrange(1000):03}", f".{chosen.randrange(10**6):06}", ".500", ".1"])
    zone = chosen.choice(["", "", "Z", "+01:00", "-11:30", "+14:00", "+15:00"])
    return f'"{chosen.choice([day, clock, day + chosen.choice(" T") + clock + zone])}"'


def value(chosen: random.Random) -> str:
    """JSON of any value."""
    made = chosen.choice(["listed", "number", "moment"])
    return chosen.choice(VALUES) if made == "listed" else number(chosen) if made == "number" else moment(chosen)


def lines(chosen: random.Random, names: list[str], count: int) -> list[str]:
    """Rows of which each has some odd values, and may lack columns or have others."""
    made = []
    for place in range(count):
        row = {"id": f"{place % 40}"}
        for name in chosen.sample(names, chosen.randrange(1, 4)):
            row[name] = value(chosen)
        if chosen.random() < 0.1:
            row["other"] = value(chosen)
        made.append("{" + ", ".join(f'"{name}" :{value}' for name, value in row.items()) + "}")
    return made


def events(format: str, chosen: random.Random) -> list[object]:
    """Events with such rows, before and after a change."""
    names = list(MYSQL) if format == "canal" else [one["field"] for one in FIELDS]
    mark, other = "MARK", "OTHER"
    made: list[object] = []
    rows = lines(chosen, names, 700)
    for place, line in enumerate(rows):
        before = line if chosen.random() < 0.7 else chosen.choice(rows)
        letter = chosen.choice("ccuud")
        match format:
            case "canal":
                kind = {"c": "INSERT", "u": "UPDATE", "d": "DELETE"}[letter]
                event: Any = canal(kind, [mark], old=[other], mysqlType=MYSQL, id=place)  # type: ignore[list-item]
            case "maxwell":
                kind = {"c": "insert", "u": "update", "d": "delete"}[letter]
                event = maxwell(kind, mark, old=other, xid=place)  # type: ignore[arg-type]
            case _:
                fields = FIELDS if format == "debezium" else None
                sides = {"c": (None, mark), "u": (other, mark), "d": (other, None)}[letter]
                event = debezium(letter, *sides, fields=fields, lsn=place)  # type: ignore[arg-type]
        made.append(text(event).replace(f'"{mark}"', line).replace(f'"{other}"', before))
    return made


def found(spark: SparkSession, warehouse: str, format: str, given: list[object]) -> tuple[list[str], list[str]]:
    """Rows of a batch in their order, as text, and events that were refused at once."""
    settings = settings_of(warehouse, format=format, table="shop.item", primary_key=["id"])
    with planned_batch(frame(spark, given), settings) as batch:
        [target] = batch.targets
        names = [name for name in target.rows.columns if name not in ("raw", "message_key", "origin")]
        made = [str(line) for line in target.rows.select(*names).orderBy("place").collect()]
        refused = [str(line) for one in batch.refused for line in one.select("reason", "raw").collect()]
    return made, sorted(refused)


@pytest.mark.parametrize("format", ["debezium", "plain debezium", "canal", "maxwell"])
def test_rows_are_those_of_expressions(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format: str
) -> None:
    if not has_numba():
        pytest.skip("no numba")
    chosen = random.Random(f"{format}{SEED}")
    kind, given = format.rsplit(maxsplit=1)[-1], events(format, chosen)
    fields = [one["field"] for one in FIELDS]
    if format == "plain debezium":
        # The types are the table's.
        lake = lakelet.connect(tmp_path)
        lake.create_database("shop")
        lake.create_table(
            "shop.item",
            [
                ("id", "BIGINT NOT NULL"),
                *((name, chosen.choice(kinds)) for name, kinds in zip(fields[1:], PLAIN, strict=True)),
            ],
            primary_key=["id"],
        )
    scanned = found(spark, str(tmp_path), kind, given)
    monkeypatch.setenv("LAKELET_NO_NUMBA", "1")
    expected = found(spark, str(tmp_path), kind, given)
    for one, other in zip(scanned[0], expected[0], strict=False):
        assert one == other
    assert scanned == expected
    assert len(expected[0]) > 100


# Types of a table's columns, of which a test chooses one each; a layout that tells none leaves the spelling to them.
_MOMENTS = ("TIMESTAMP(3)", "TIMESTAMP(6)", "TIMESTAMP(0)", "TIMESTAMP(9)", "TIMESTAMP(6) WITH LOCAL TIME ZONE")
PLAIN = (
    ("TINYINT", "SMALLINT", "INT", "BIGINT"),
    ("DECIMAL(10, 2)", "DECIMAL(18, 3)", "DECIMAL(38, 10)", "DECIMAL(4, 0)"),
    ("DECIMAL(30, 0)", "DECIMAL(19, 1)", "DOUBLE"),
    ("DOUBLE", "FLOAT"),
    ("VARCHAR(10)", "CHAR(10)", "STRING", "VARCHAR(1)"),
    ("BYTES", "BINARY(2)", "VARBINARY(3)"),
    ("DATE", "STRING"),
    _MOMENTS,
    _MOMENTS,
    ("TIME(3)", "TIME(0)", "INT"),
    ("TIMESTAMP(6) WITH LOCAL TIME ZONE", "TIMESTAMP(3) WITH LOCAL TIME ZONE", "TIMESTAMP(0)"),
    ("BOOLEAN", "TINYINT"),
)


def test_plain_events_are_scanned(spark: SparkSession, tmp_path: Path) -> None:
    """A batch without anything odd has no plan of expressions, and computed columns and moved keys are as before."""
    settings = settings_of(str(tmp_path), format="maxwell", table="shop.item", primary_key=["id"])
    given: list[object] = [maxwell("insert", {"id": n, "q": n / 4}, xid=n) for n in range(8)]
    with planned_batch(frame(spark, given), settings, whole=False) as batch:
        [target] = batch.targets
        assert (target.kept.typed, target.good.count()) == (None, 8)
    synced(spark, str(tmp_path), given, format="maxwell", computed={"first": "substring(q, 0, 1)"})
    moved = maxwell("update", {"id": 9, "q": "m"}, old={"id": 1}, xid=99)
    synced(spark, str(tmp_path), [moved], format="maxwell", computed={"first": "substring(q, 0, 1)"})
    assert [(row["id"], row["q"], row["first"]) for row in rows(str(tmp_path))] == [
        ("0", "0", "0"),
        ("2", "0.5", "0"),
        ("3", "0.75", "0"),
        ("4", "1", "1"),
        ("5", "1.25", "1"),
        ("6", "1.5", "1"),
        ("7", "1.75", "1"),
        ("9", "m", "m"),
    ]
    assert json.loads(text(moved))["old"] == {"id": 1}


def test_tasks_read_few_packs_at_once(spark: SparkSession) -> None:
    """As many packs as rows are in a batch for Python otherwise would be gigabytes, whichever job reads them first."""

    def sizes(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pa.RecordBatch.from_pydict({"size": pa.array([batch.num_rows], pa.int64())})

    packs = spark.range(0, 200, 1, 1).selectExpr("CAST(CAST(id AS STRING) AS BINARY) AS events")
    found = []
    for of_packs in (True, False):
        kept = keep_rows(packs.mapInArrow(sizes, "size bigint"), of_packs=of_packs)
        found.append([line["size"] for line in kept.collect()])
        forget_rows(kept)
    assert found == [[64, 64, 64, 8], [200]]
