"""Every way by which a text meets a TIMESTAMP_LTZ, as one JSON of what each gives: run in a process of its own, with TZ set.

python -m tests.unit.zone_paths <folder>
"""

import json
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

import lakelet
from lakelet import Lake

_TEXT = "'2024-07-01 09:30:00'"
_CONDITIONS = (
    f"z < {_TEXT}",
    f"z = {_TEXT}",
    f"z <> {_TEXT}",
    f"z IN ({_TEXT}, '2024-07-01 12:00:00+05:30')",
    f"z BETWEEN '2024-07-01' AND {_TEXT}",
    f"z >= CAST({_TEXT} AS TIMESTAMP)",
    f"z >= TIMESTAMP {_TEXT}",
    f"z > CAST({_TEXT} AS TIMESTAMPTZ)",
    "z >= DATE '2024-07-02'",
    f"z + INTERVAL 1 HOUR > {_TEXT}",
    "hour(z) = 9",
    "CAST(z AS VARCHAR) LIKE '2024-07-01 09:%'",
    f"CASE WHEN z = {_TEXT} THEN true ELSE false END",
)
_ROWS = (
    "SELECT CAST(i AS INT), CAST('2024-06-30 21:30:00+00' AS TIMESTAMPTZ) + i * INTERVAL 90 MINUTE FROM range(24) r(i)"
)


def paths(lake: Lake) -> Iterator[tuple[str, object]]:
    """The name of each way and the rows it gives."""
    yield from _plain(lake, "millis", "TIMESTAMP_LTZ(3)", "parquet", _CONDITIONS)
    # DuckDB compares nanoseconds with texts and with nothing else.
    yield from _plain(lake, "nanos", "TIMESTAMP_LTZ(9)", "parquet", _CONDITIONS[:4])
    yield from _plain(lake, "orc", "TIMESTAMP_LTZ(6)", "orc", _CONDITIONS[:4])
    yield from _partitioned(lake)
    yield from _keyed(lake)
    yield from _inserted(lake)


def _plain(
    lake: Lake, name: str, kind: str, file_format: str, conditions: Sequence[str]
) -> Iterator[tuple[str, object]]:
    lake.sql(f"CREATE TABLE {name} (id INT, z {kind}) WITH ('file.format' = '{file_format}')")
    # Two files of consecutive moments: each condition prunes one of them.
    for start in (0, 12):
        lake.sql(f"INSERT INTO {name} SELECT * FROM ({_ROWS} LIMIT 12 OFFSET {start})")
    table = lake.table(f"default.{name}")
    connection = table.scan().to_duckdb()
    for condition in conditions:
        yield f"{name}: {condition} scan", sorted(table.scan(where=condition).to_arrow()["id"].to_pylist())
        yield f"{name}: {condition} sql", lake.sql(f"SELECT id FROM {name} WHERE {condition} ORDER BY id").rows()
        yield f"{name}: {condition} relation", connection.filter(condition).order("id").select("id").fetchall()
    yield f"{name}: count", lake.sql(f"SELECT count(*) FROM {name} WHERE {conditions[0]}").rows()
    for value in ("2024-07-01 09:30:00", datetime(2024, 7, 1, 9, 30), datetime(2024, 7, 1, 9, 30, tzinfo=UTC)):
        if name == "millis" or isinstance(value, str):
            text = f"SELECT id FROM {name} WHERE z >= $1 ORDER BY id"
            yield f"{name}: parameter {value!r}", lake.sql(text, params=[value]).rows()
    table.delete(where=f"z < {_TEXT}")
    yield f"{name}: deleted", sorted(table.scan().to_arrow()["id"].to_pylist())
    lake.sql(f"DELETE FROM {name} WHERE z >= '2024-07-02 03:30:00'")
    lake.sql(f"UPDATE {name} SET id = -id WHERE z = '2024-07-01 11:00:00'")
    yield f"{name}: changed", lake.sql(f"SELECT id, CAST(z AS VARCHAR) FROM {name} ORDER BY id").rows()


def _partitioned(lake: Lake) -> Iterator[tuple[str, object]]:
    lake.sql("CREATE TABLE parted (id INT, z TIMESTAMP_LTZ(3)) PARTITIONED BY (z)")
    lake.sql(f"INSERT INTO parted {_ROWS}")
    table = lake.table("default.parted")
    yield "parted: folders", sorted(path.split("/bucket")[0].rsplit("/", 1)[-1] for path, _ in table.files())
    for condition in _CONDITIONS[:6]:
        yield f"parted: {condition}", sorted(table.scan(where=condition).to_arrow()["id"].to_pylist())
        yield f"parted: {condition} sql", lake.sql(f"SELECT id FROM parted WHERE {condition} ORDER BY id").rows()
    lake.sql(f"INSERT OVERWRITE parted PARTITION (z = {_TEXT}) VALUES (100)")
    table.delete(where=f"z < {_TEXT}")
    yield "parted: deleted", sorted(table.scan().to_arrow()["id"].to_pylist())


def _keyed(lake: Lake) -> Iterator[tuple[str, object]]:
    lake.sql("CREATE TABLE keyed (id INT, z TIMESTAMP_LTZ(3), PRIMARY KEY (z) NOT ENFORCED)")
    lake.sql(f"INSERT INTO keyed {_ROWS}")
    table = lake.table("default.keyed")
    yield "get", table.get({"z": datetime(2024, 7, 1, 9, 30, tzinfo=UTC)}, columns=["id"])
    for condition in _CONDITIONS[:5]:
        yield f"keyed: {condition}", sorted(table.scan(where=condition).to_arrow()["id"].to_pylist())
    lake.sql(
        f"MERGE INTO keyed USING (SELECT {_TEXT} AS m) AS s ON keyed.z = CAST(s.m AS TIMESTAMPTZ) "
        "WHEN MATCHED THEN UPDATE SET id = 100"
    )
    table.delete(where=f"z < {_TEXT}")
    yield "keyed: left", sorted(table.scan().to_arrow()["id"].to_pylist())


def _inserted(lake: Lake) -> Iterator[tuple[str, object]]:
    lake.sql("CREATE TABLE inserted (id INT, z TIMESTAMP_LTZ(3))")
    lake.sql(f"INSERT INTO inserted VALUES (1, {_TEXT}), (2, TIMESTAMP {_TEXT}), (3, '2024-07-01 15:00:00+05:30')")
    lake.sql("INSERT INTO inserted VALUES (4, $1)", params=["2024-07-01 09:30:00"])
    moments = lake.table("default.inserted").scan().to_arrow()["z"].cast("int64").to_pylist()
    yield "inserted", moments
    yield "zone", lake.sql("SELECT current_setting('TimeZone')").rows()
    lake.sql("SET TimeZone = 'Asia/Tokyo'")
    yield "Tokyo", lake.sql("SELECT count(*) FROM inserted WHERE z = '2024-07-01 18:30:00'").rows()
    lake.sql("DELETE FROM inserted WHERE z = '2024-07-01 18:30:00' AND id = 1")
    lake.sql("UPDATE inserted SET id = -2 WHERE z <= '2024-07-01 18:30:00' AND id = 2")
    yield "Tokyo: changed", lake.sql("SELECT id FROM inserted ORDER BY id").rows()
    lake.sql("RESET TimeZone")
    yield "back", lake.sql(f"SELECT count(*) FROM inserted WHERE z = {_TEXT}").rows()


if __name__ == "__main__":
    print(json.dumps(dict(paths(lakelet.connect(sys.argv[1]))), default=str))
