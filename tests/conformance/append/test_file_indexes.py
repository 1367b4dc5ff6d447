"""File indexes of Java Paimon and of Lakelet: the same bytes for the same rows, and both prune by either's."""

from __future__ import annotations

import datetime as dt
import decimal
import math
import operator
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pytest

from lakelet.errors import InvalidError
from lakelet.format.index.file.container import decode_indexes
from tests.conformance.tables import DATABASE, JAVA, LAKELET, Rows, Warehouse, same, spell_rows

COLUMNS = [
    ("tiny", "TINYINT"),
    ("small", "SMALLINT"),
    ("id", "INT"),
    ("big", "BIGINT"),
    ("real", "FLOAT"),
    ("double", "DOUBLE"),
    ("text", "STRING"),
    ("code", "CHAR(4)"),
    ("raw", "BYTES"),
    ("day", "DATE"),
    ("clock", "TIME"),
    ("ms", "TIMESTAMP(3)"),
    ("us", "TIMESTAMP(6)"),
    ("zoned", "TIMESTAMP(6) WITH LOCAL TIME ZONE"),
]
NAMES = [name for name, _ in COLUMNS]
BLOOM = {"file-index.bloom-filter.columns": ", ".join(NAMES)} | {
    f"file-index.bloom-filter.{name}.{key}": value
    for name in NAMES
    for key, value in (("items", "200"), ("fpp", "0.01"))
}
BITMAP = {
    "file-index.bitmap.columns": ", ".join(name for name in [*NAMES, "yes"] if name != "raw"),
    # Several blocks of values.
    "file-index.bitmap.text.index-block-size": "200 b",
    "file-index.bitmap.big.index-block-size": "64 b",
}
RANGED = [*COLUMNS, ("yes", "BOOLEAN"), ("money", "DECIMAL(18, 4)"), ("none", "INT")]
RANGE_BITMAP = {
    "file-index.range-bitmap.columns": ", ".join(name for name, _ in RANGED if name != "raw"),
    # Several chunks of values.
    "file-index.range-bitmap.text.chunk-size": "200 b",
    "file-index.range-bitmap.big.chunk-size": "30 b",
}
BEGIN = dt.datetime(1969, 12, 20, 1, 2, 3, 456789)


def rows(start: int) -> Rows:
    made: Rows = []
    for n in range(start, start + 60, 3):
        at = BEGIN + dt.timedelta(hours=n, microseconds=n)
        value: dict[str, Any] = {
            "tiny": n % 120 - 60,
            "small": n - 30000,
            "id": n - 50,
            "big": (n - 40) * 2**40 + n,
            "real": float("nan") if n % 7 == 0 else n / 4,
            "double": float("nan") if n % 7 == 0 else -n / 8,
            "text": "é" * (n % 40) + str(n),
            "code": f"{n:4d}",
            "raw": bytes([n % 256]) * (n % 70),
            "day": at.date(),
            "clock": dt.time(n % 24, n % 60, 1),
            "ms": at.replace(microsecond=n * 1000 % 1_000_000),
            "us": at,
            "zoned": at.replace(tzinfo=dt.UTC),
        }
        made.append({name: None if (n + place) % 11 == 0 else value[name] for place, name in enumerate(NAMES)})
    return made


def marked(start: int) -> Rows:
    """The rows, with values that several rows have."""
    return [
        {**row, "yes": [True, False, None][place % 3], "tiny": place % 4, "double": [0.0, -0.0, 1.5][place % 3]}
        for place, row in enumerate(rows(start))
    ]


def ranged(start: int) -> Rows:
    """The rows, with decimals, and two columns that share values."""
    return [
        {**row, "money": None if place % 9 == 0 else decimal.Decimal(place * 1000003 - 7) / 10000, "none": None}
        for place, row in enumerate(marked(start))
    ]


def indexes(warehouse: Warehouse, name: str) -> list[dict[str, dict[str, bytes | None]]]:
    found = []
    for _, file in warehouse.table(name).files():
        data = file.embedded_index
        if data is None:
            (beside,) = file.extra_files
            data = (warehouse.path(name) / "bucket-0" / beside).read_bytes()
        found.append(decode_indexes(data, where=file.name))
    return found


@pytest.fixture(scope="module")
def warehouse(java_paimon: Any, tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    made = Warehouse(tmp_path_factory.mktemp("indexes"), java_paimon, None)  # type: ignore[arg-type]
    for place, threshold in (("beside", "100 bytes"), ("inside", "1 mb")):
        for writer in (LAKELET, JAVA):
            name = f"{writer}_{place}".replace("-", "_")
            made.create(LAKELET, name, COLUMNS, options={**BLOOM, "file-index.in-manifest-threshold": threshold})
            for start in range(3):
                made.write(writer, name, rows(start))
    columns = [*COLUMNS, ("yes", "BOOLEAN")]
    for writer in (LAKELET, JAVA):
        made.create(LAKELET, f"{writer}_bitmap", columns, options={**BITMAP, "file-index.in-manifest-threshold": "1 b"})
        for start in range(3):
            made.write(writer, f"{writer}_bitmap", marked(start))
    for writer in (LAKELET, JAVA):
        options = {**RANGE_BITMAP, "file-index.in-manifest-threshold": "1 b"}
        made.create(LAKELET, f"{writer}_range", RANGED, options=options)
        for start in range(3):
            made.write(writer, f"{writer}_range", ranged(start))
    made.create(JAVA, "java_bitmap_1", columns, options={**BITMAP, "file-index.bitmap.text.version": "1"})
    for start in range(3):
        made.write(JAVA, "java_bitmap_1", marked(start))
    return made


@pytest.mark.parametrize("place", ["beside", "inside"])
def test_the_bytes_are_the_same(warehouse: Warehouse, place: str) -> None:
    ours, theirs = indexes(warehouse, f"{LAKELET}_{place}"), indexes(warehouse, f"{JAVA}_{place}")
    assert len(ours) == len(theirs) == 3
    for one, other in zip(ours, theirs, strict=True):
        assert set(one) == set(other) == set(NAMES)
        assert [name for name in NAMES if one[name] != other[name]] == []


@pytest.mark.parametrize("name", [f"{writer}_{place}" for writer in (LAKELET, JAVA) for place in ("beside", "inside")])
def test_each_prunes_by_the_others(warehouse: Warehouse, name: str) -> None:
    table = warehouse.table(name)
    fields = table.schema.fields
    everything = [row for start in range(3) for row in rows(start)]
    for column, literal, where in (
        ("id", 10 - 50, "id = -40"),
        ("text", "é" * 10 + "10", f"text = '{'é' * 10}10'"),
        ("big", (13 - 40) * 2**40 + 13, f"big = {(13 - 40) * 2**40 + 13}"),
    ):
        expected = spell_rows([row for row in everything if row[column] == literal], fields)
        scan = table.scan(where=where)
        assert scan.plan().files == 1
        same(spell_rows(scan.to_arrow().to_pylist(), fields), expected, "Lakelet")
        found = warehouse.java.read(warehouse.folder, f"{DATABASE}.{name}", filters=[f"{column} = {literal}"])
        # Java leaves out files, and rows where an index says which match.
        assert len(found) < len(everything)
        assert [row["id"] for row in found if row[column] == expected[0][column]] == [row["id"] for row in expected]


@pytest.mark.parametrize("name", ["lakelet_bitmap", "java_bitmap", "java_bitmap_1"])
def test_each_prunes_by_the_others_bitmaps(warehouse: Warehouse, name: str) -> None:
    table = warehouse.table(name)
    everything = [row for start in range(3) for row in marked(start)]
    for column in [*NAMES, "yes"]:
        if column in ("raw", "zoned"):
            continue
        values = {repr(row[column]): row[column] for row in everything}
        for value in [*values.values()][:7]:
            text = spelled(column, value)
            found = table.scan(where=f"{column} IS NULL" if value is None else f"{column} = {text}").to_arrow()
            assert found.num_rows == sum(is_same(row[column], value) for row in everything), (column, value)
    files = {where: table.scan(where=where).plan().files for where in ("id = -40", "text = 'nowhere'", "tiny <> 9")}
    assert files == {"id = -40": 1, "text = 'nowhere'": 0, "tiny <> 9": 3}
    for column, literal in (("id", -40), ("tiny", 3), ("text", "é" * 10 + "10")):
        found = warehouse.java.read(warehouse.folder, f"{DATABASE}.{name}", filters=[f"{column} = {literal}"])
        # Java reads the rows that the bitmaps name, and no others.
        expected = [row["id"] for row in everything if row[column] == literal]
        assert sorted(map(str, (row["id"] for row in found))) == sorted(map(str, expected)), column


def test_the_bytes_of_range_bitmaps_are_the_same(warehouse: Warehouse) -> None:
    ours, theirs = indexes(warehouse, "lakelet_range"), indexes(warehouse, "java_range")
    assert len(ours) == len(theirs) == 3
    for one, other in zip(ours, theirs, strict=True):
        assert set(one) == set(other) == {name for name, _ in RANGED if name != "raw"}
        # Of a column without values Java finds two NULLs by its own index: ours says that there is no value.
        assert [name for name in one if one[name] != other[name]] == ["none"]
        assert one["none"] == {"range-bitmap": None}


@pytest.mark.parametrize("name", ["lakelet_range", "java_range"])
def test_each_prunes_by_the_others_range_bitmaps(warehouse: Warehouse, name: str) -> None:
    table = warehouse.table(name)
    everything = [row for start in range(3) for row in ranged(start)]
    compare = {"=": operator.eq, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
    for column in [name for name, _ in RANGED if name not in ("raw", "zoned", "yes")]:
        nulls = sum(row[column] is None for row in everything)
        assert table.scan(where=f"{column} IS NULL").to_arrow().num_rows == nulls
        assert table.scan(where=f"{column} IS NOT NULL").to_arrow().num_rows == len(everything) - nulls
        values = {repr(row[column]): row[column] for row in everything if row[column] is not None}
        for value in list(values.values())[:4]:
            for sign, check in compare.items():
                found = table.scan(where=f"{column} {sign} {spelled(column, value)}").to_arrow().num_rows
                expected = sum(
                    row[column] is not None and check(ordered(row[column]), ordered(value)) for row in everything
                )
                assert found == expected, (column, sign, value)
    files = {where: table.scan(where=where).plan().files for where in ("id BETWEEN -40 AND -40", "id > 3 AND id < 4")}
    assert files == {"id BETWEEN -40 AND -40": 1, "id > 3 AND id < 4": 0}
    for filters in (["id > -40", "id <= -31"], ["tiny >= 2"], ["text < b"], ["none isnull"], ["id isnull"]):
        found = warehouse.java.read(warehouse.folder, f"{DATABASE}.{name}", filters=filters)
        asked = " AND ".join(filters).replace("text < b", "text < 'b'").replace("isnull", "IS NULL")
        expected = table.scan(where=asked).to_arrow().column("small").to_pylist()
        # Of a column that is NULL everywhere Java finds two rows of each of its own files.
        if filters != ["none isnull"] or name == "lakelet_range":
            assert sorted(map(str, (row["small"] for row in found))) == sorted(map(str, expected)), filters


TIMES = [(f"t{precision}", f"TIMESTAMP({precision})") for precision in (0, 1, 2, 3, 5, 6, 9)]
# Before 1970 too, where rounding down is not cutting off; not in the last second before, which ORC files have a second later.
MOMENTS = ("1969-12-31 23:59:57.999999999", "1969-12-31 23:59:58.000500500", "1970-01-01 00:00:00.000000000",
           "1970-01-01 00:00:01.123456789", "2024-02-29 12:00:00.100200300")  # fmt: skip
SIGNS = {"=": pc.equal, "<>": pc.not_equal, "<": pc.less, "<=": pc.less_equal, ">": pc.greater, ">=": pc.greater_equal}


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_times_with_more_digits_than_their_type_are_found(java_paimon: Any, tmp_path: Any, file_format: str) -> None:
    """Java writes them as they are, and its indexes have them in their own way: what a scan shows a condition finds."""
    made = Warehouse(tmp_path, java_paimon, None)  # type: ignore[arg-type]
    for index in ("bloom-filter", "bitmap", "range-bitmap"):
        # Neither a range bitmap nor Avro takes nanoseconds.
        columns = dict(TIMES[:-1] if index == "range-bitmap" or file_format == "avro" else TIMES)
        name = index.replace("-", "_")
        options = {f"file-index.{index}.columns": ", ".join(columns), "file.format": file_format}
        # Statistics leave out files as well, and are not what this is about.
        options["metadata.stats-mode"] = "none"
        made.create(JAVA, name, [("id", "INT"), *columns.items()], options=options)
        for number, moment in enumerate(MOMENTS):
            made.java.write(made.folder, f"{DATABASE}.{name}", [{"id": number, **dict.fromkeys(columns, moment)}])
        table = made.table(name)
        assert all(len(one) == len(columns) for one in indexes(made, name))
        shown = table.scan().to_arrow()
        asked = 0
        for column in columns:
            values = shown.column(column).combine_chunks()
            for value in values:
                for sign, check in SIGNS.items():
                    where = f"{column} {sign} TIMESTAMP '{_moment(value)}'"
                    try:
                        found = table.scan(where=where).to_arrow()
                    except InvalidError:
                        # The literal has more digits than the type, so that nobody can ask.
                        continue
                    asked += 1
                    expected = shown.filter(check(values, value)).column("id").to_pylist()
                    assert sorted(found.column("id").to_pylist()) == sorted(expected), (index, where)
        assert asked


def _moment(value: Any) -> str:
    """A timestamp as SQL spells it."""
    return str(np.datetime64(value.value, value.type.unit)).replace("T", " ")


def ordered(value: Any) -> Any:
    """What compares as the table does: NaN is the greatest."""
    if isinstance(value, float):
        return (math.isnan(value), 0.0 if math.isnan(value) else value)
    return value.encode() if isinstance(value, str) else value


def is_same(one: Any, other: Any) -> bool:
    """Equality of the table: NULL was asked for by name, and NaN equals itself."""
    return one == other or (
        isinstance(one, float) and isinstance(other, float) and math.isnan(one) and math.isnan(other)
    )


def spelled(column: str, value: Any) -> str:
    """A literal of SQL."""
    kinds = {"day": "DATE", "clock": "TIME", "ms": "TIMESTAMP", "us": "TIMESTAMP"}
    if isinstance(value, float) and math.isnan(value):
        return "CAST('NaN' AS DOUBLE)"
    text = str(value)
    return f"{kinds[column]} '{text}'" if column in kinds else f"'{text}'" if isinstance(value, str) else text
