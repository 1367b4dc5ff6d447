"""Canal's envelope: `{"type": "UPDATE", "data": [rows], "old": [changed columns of each], "mysqlType": {…}, "pkNames": […]}`."""

from __future__ import annotations

import json

from pyspark.sql import functions as F
from pyspark.sql import types as T

from lakelet.spark.cdc.envelope.event_columns import Steps, arrived, event_columns, known, names_of, padded, reasons
from lakelet.spark.cdc.value.mysql_types import mysql_field
from lakelet.spark.cdc.value.type_rules import TypeRules
from lakelet.spark.cdc.value.wire_field import WireField

_EVENT = (
    "id bigint, database string, `table` string, pkNames array<string>, isDdl boolean, type string, es bigint, ts bigint, "
    "mysqlType string, data array<variant>, old array<variant>, broken string"
)
_OPERATIONS = {"INSERT": "i", "UPDATE": "u", "DELETE": "d", "TRUNCATE": "t"}
_SKIPPED = ("CREATE", "ALTER", "ERASE", "RENAME", "CINDEX", "DINDEX", "QUERY")


def steps(found: T.StructType) -> Steps:
    """What makes events with the columns of `event_columns` of a frame, a row for each entry of `data`: the columns of one select
    after the other."""
    parsed = [F.col("*"), F.from_json("text", _EVENT, {"columnNameOfCorruptRecord": "broken"}).alias("e")]
    rows = [F.col("*"), F.posexplode_outer(F.col("e.data")).alias("place", "entry")]
    event, image = F.col("e"), known(F.col("entry"))
    kind = F.upper(event["type"])
    operation = F.coalesce(*(F.when(kind == name, F.lit(mine)) for name, mine in _OPERATIONS.items()))
    skipped = F.col("text").isNull() | ((event["isDdl"] | kind.isin(*_SKIPPED)) & (kind != "TRUNCATE"))
    reason = reasons(
        [
            (skipped & event["broken"].isNull(), F.lit(None).cast("string")),
            (~F.is_valid_utf8(F.col("text")), "the event is no UTF-8"),
            (event.isNull() | event["broken"].isNotNull(), "the event is no JSON object of Canal's"),
            (operation.isNull(), F.concat(F.lit("unknown type "), F.coalesce(event["type"], F.lit("(none)")))),
            (event["table"].isNull(), "table is missing"),
            ((operation != "t") & image.isNull(), F.concat(kind, F.lit(" without a row"))),
        ]
    )
    made = event_columns(
        operation=F.when(F.coalesce(skipped, F.lit(False)) | reason.isNotNull(), None).otherwise(operation),
        reason=reason,
        row_index=F.coalesce(F.col("place"), F.lit(0)),
        database_name=event["database"],
        table_name=event["table"],
        image=image,
        old=F.when(kind == "UPDATE", known(F.try_element_at(event["old"], F.col("place") + 1))),
        layout=F.coalesce(event["mysqlType"], names_of(image)),
        key_names=F.to_json(event["pkNames"]),
        op_millis=F.coalesce(event["es"], event["ts"]),
        position=F.concat(padded(F.coalesce(event["es"], event["ts"])), F.lit(":"), padded(event["id"])),
    )
    return (arrived(found), parsed, rows, made)


def layout_of(text: str, mapping: TypeRules) -> tuple[WireField, ...]:
    """The columns of a `mysqlType` object, or of a list of names."""
    found = json.loads(text)
    if isinstance(found, list):
        return tuple(WireField(str(name)) for name in found)
    return tuple(mysql_field(str(name), str(kind), mapping) for name, kind in found.items())
