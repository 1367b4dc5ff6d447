"""Maxwell's envelope: `{"type": "update", "data": row, "old": its changed columns, "xid": …, "xoffset": …}`; it has no types."""

from __future__ import annotations

import json

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from lakelet.spark.cdc.envelope.event_columns import (
    Steps,
    arrived,
    event_columns,
    known,
    log_file,
    names_of,
    padded,
    reasons,
)
from lakelet.spark.cdc.value.type_rules import TypeRules
from lakelet.spark.cdc.value.wire_field import WireField

_EVENT = (
    "database string, `table` string, type string, ts bigint, xid bigint, xoffset bigint, position string, commit boolean, "
    "data variant, old variant, primary_key_columns array<string>, broken string"
)
_OPERATIONS = {"insert": "i", "bootstrap-insert": "i", "update": "u", "delete": "d"}
# The last row of a transaction says `commit` and has no xoffset.
_LAST = 2**62
# Definitions have milliseconds where rows have seconds.
_MILLIS_FROM = 10**11


def steps(found: T.StructType) -> Steps:
    """What makes events with the columns of `event_columns` of a frame: the columns of one select after the other."""
    parsed = [F.col("*"), F.from_json("text", _EVENT, {"columnNameOfCorruptRecord": "broken"}).alias("e")]
    event = F.col("e")
    kind, image = event["type"], known(event["data"])
    operation = F.coalesce(*(F.when(kind == name, F.lit(mine)) for name, mine in _OPERATIONS.items()))
    definition = kind.rlike("^(table|database)-(create|alter|drop)$") | kind.isin(
        "bootstrap-start", "bootstrap-complete"
    )
    skipped = F.col("text").isNull() | F.coalesce(definition, F.lit(False))
    reason = reasons(
        [
            (F.col("text").isNull(), F.lit(None).cast("string")),
            (~F.is_valid_utf8(F.col("text")), "the event is no UTF-8"),
            (event.isNull() | (event["broken"].isNotNull() & ~skipped), "the event is no JSON object of Maxwell's"),
            (skipped, F.lit(None).cast("string")),
            (operation.isNull(), F.concat(F.lit("unknown type "), F.coalesce(kind, F.lit("(none)")))),
            (event["table"].isNull(), "table is missing"),
            (image.isNull(), F.concat(kind, F.lit(" without a row"))),
        ]
    )
    made = event_columns(
        operation=F.when(skipped | reason.isNotNull(), None).otherwise(operation),
        reason=reason,
        database_name=event["database"],
        table_name=event["table"],
        image=image,
        old=F.when(kind == "update", known(event["old"])),
        layout=names_of(image),
        key_names=F.to_json(event["primary_key_columns"]),
        op_millis=F.when(event["ts"] > _MILLIS_FROM, event["ts"]).otherwise(event["ts"] * 1000),
        position=_position(event),
    )
    return (arrived(found), parsed, made)


def _position(event: Column) -> Column:
    """The place in the binlog, else the transaction and the place in it."""
    file, place = log_file(F.substring_index(event["position"], ":", 1)), F.substring_index(event["position"], ":", -1)
    inside = padded(F.coalesce(event["xoffset"], F.when(event["commit"], F.lit(_LAST)), F.lit(0)))
    return F.coalesce(
        F.concat(file, F.lit(":"), padded(place), F.lit(":"), inside),
        F.concat(padded(event["ts"]), F.lit(":"), padded(event["xid"]), F.lit(":"), inside),
        F.concat(padded(event["ts"]), F.lit(":")),
    )


def layout_of(text: str, mapping: TypeRules) -> tuple[WireField, ...]:
    """The columns of a list of names."""
    return tuple(WireField(str(name)) for name in json.loads(text))
