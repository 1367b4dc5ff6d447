"""Tasks of change events: read them into rows of a table's types, and apply them to a table.

Events of all envelopes describe the same changes of a table with eight columns; they are texts in Parquet files, so that finding
them costs little. A core's rate is taken from processor time over the whole process tree, JVM and Python included.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame, SparkSession

import lakelet.spark as ls
from benchmarks.contender import serve
from benchmarks.spark.spark_turns import Turn, consume, session, take_turns
from lakelet.spark.cdc.arguments import settings_of
from lakelet.spark.cdc.batch import planned_batch
from lakelet.spark.cdc.settings import CdcSettings

TABLE = "shop.item"
_DECIMAL = "org.apache.kafka.connect.data.Decimal"
_FIELDS: list[dict[str, Any]] = [
    {"field": "id", "type": "int64", "optional": False},
    {"field": "price", "type": "bytes", "name": _DECIMAL, "parameters": {"scale": "2", "connect.decimal.precision": "10"}},
    {"field": "quantity", "type": "int32"},
    {"field": "note", "type": "string"},
    {"field": "weight", "type": "float64"},
    {"field": "born", "type": "int32", "name": "io.debezium.time.Date"},
    {"field": "at", "type": "int64", "name": "io.debezium.time.MicroTimestamp"},
    {"field": "active", "type": "boolean"},
]  # fmt: skip
_MYSQL = {
    "id": "bigint",
    "price": "decimal(10,2)",
    "quantity": "int",
    "note": "varchar(50)",
    "weight": "double",
    "born": "date",
    "at": "datetime(6)",
    "active": "tinyint(1)",
}
_PRICE = "BNI="
_SOURCE = '"source":{"version":"3.0","connector":"postgresql","db":"shop","schema":"public","table":"item","ts_ms":1704067200000'


def events(folder: str, rows: int, rounds: int) -> dict[str, Any]:
    """Every envelope: rows in the table's types and no further, and whole calls of `ls.sync_cdc` into a new table."""
    with session(folder) as spark:
        turns: dict[str, Turn] = {}
        for name, made in ENVELOPES.items():
            place = f"{folder}/{name}"
            made(_numbers(spark, rows)).write.parquet(place)
            frame = spark.read.parquet(place)
            warehouse = f"{folder}/lake-{name}"
            settings = settings_of(warehouse, format=name.split()[0], table=TABLE, primary_key=["id"])
            ls.sync_cdc(frame.limit(10), warehouse, format=name.split()[0], table=TABLE, primary_key=["id"])
            turns[f"{name}: rows"] = Turn(_parse(frame, settings))
            turns[f"{name}: applied"] = Turn(*_apply(frame, f"{folder}/new-{name}", name.split()[0]))
        return take_turns(rounds, turns, warm_up=1)


def _parse(frame: DataFrame, settings: CdcSettings) -> Callable[[int], object]:
    def action(_: int) -> None:
        # As a batch is planned unless one of the last had poison: without the bytes of events that can be read.
        with planned_batch(frame, settings, whole=False) as batch:
            for target in batch.targets:
                consume(target.good)

    return action


def _apply(frame: DataFrame, warehouse: str, format: str) -> tuple[Callable[[int], object], Callable[[int], object]]:
    def action(_: int) -> None:
        ls.sync_cdc(frame, warehouse, format=format, table=TABLE, primary_key=["id"], table_options={"bucket": "2"})

    def fresh(_: int) -> None:
        shutil.rmtree(warehouse, ignore_errors=True)

    return action, fresh


def _numbers(spark: SparkSession, rows: int) -> DataFrame:
    """A change a row: two of three insert, the third updates an earlier key."""
    return spark.range(rows, numPartitions=4).selectExpr(
        "id AS n", "if(id % 3 = 2, id - 2, id) AS id", "if(id % 3 = 2, 'u', 'c') AS op"
    )


def _row(*, price: str, born: str, at: str, active: str, quoted: bool) -> str:
    """A row as JSON, an expression of Spark's over `n` and `id`."""
    mark = '"' if quoted else ""
    parts = {
        "id": "id",
        "price": price,
        "quantity": "n % 100",
        "note": "concat('note number ', n % 1000)",
        "weight": "n / 7",
        "born": born,
        "at": at,
        "active": active,
    }
    texts = []
    for name, value in parts.items():
        inside = mark or ('"' if name == "note" or (name == "price" and not quoted) else "")
        texts.append(f"'\"{name}\":{inside}', {value}, '{inside}'")
    return "concat('{', " + ", ',', ".join(texts) + ", '}')"


_DEBEZIUM_ROW = _row(
    price=f"'{_PRICE}'", born="19723 + n % 300", at="1704067200123456 + n", active="n % 2 = 0", quoted=False
)
_TEXT_ROW = _row(
    price="concat(n % 1000, '.25')",
    born="date_add(DATE'2024-01-01', int(n % 300))",
    at="concat('2024-01-01 00:00:00.', lpad(n % 1000000, 6, '0'))",
    active="n % 2",
    quoted=True,
)


def _debezium(numbers: DataFrame, before: str, after: str) -> DataFrame:
    payload = (
        f"concat('{before}{{\"before\":', if(op = 'u', {_DEBEZIUM_ROW}, 'null'), ',\"after\":', {_DEBEZIUM_ROW}, "
        f'\',{_SOURCE},"lsn":\', n, \'}},"op":"\', op, \'","ts_ms":1704067200999}}{after}\')'
    )
    return numbers.selectExpr(f"{payload} AS value")


def _with_schema(numbers: DataFrame) -> DataFrame:
    sides = [{"field": side, "type": "struct", "optional": True, "fields": _FIELDS} for side in ("before", "after")]
    schema = json.dumps({"type": "struct", "fields": sides}, separators=(",", ":"))
    return _debezium(numbers, f'{{"schema":{schema},"payload":', "}")


def _without_schema(numbers: DataFrame) -> DataFrame:
    return _debezium(numbers, "", "")


def _canal(numbers: DataFrame) -> DataFrame:
    types = json.dumps(_MYSQL, separators=(",", ":"))
    head = '{"database":"shop","table":"item","pkNames":["id"],"isDdl":false,"es":1704067200000,"ts":1704067200321'
    old = "if(op = 'u', '[{\"quantity\":\"0\"}]', 'null')"
    return numbers.selectExpr(
        f"concat('{head},\"id\":', n, ',\"type\":\"', if(op = 'u', 'UPDATE', 'INSERT'), '\",\"mysqlType\":{types},"
        f"\"data\":[', {_TEXT_ROW}, '],\"old\":', {old}, '}}') AS value"
    )


def _maxwell(numbers: DataFrame) -> DataFrame:
    head = '{"database":"shop","table":"item","ts":1704067200,"commit":true'
    return numbers.selectExpr(
        f"concat('{head},\"xid\":', n, ',\"type\":\"', if(op = 'u', 'update', 'insert'), '\",\"data\":', {_TEXT_ROW}, '}}') "
        "AS value"
    )


ENVELOPES: dict[str, Callable[[DataFrame], DataFrame]] = {
    "debezium with schema": _with_schema,
    "debezium": _without_schema,
    "canal": _canal,
    "maxwell": _maxwell,
}


if __name__ == "__main__":
    serve(events)
