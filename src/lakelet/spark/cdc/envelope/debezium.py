"""Debezium's envelope: `{"before": …, "after": …, "source": …, "op": …}`, alone or under `{"schema": …, "payload": …}`.

The schema part is several times longer than the rest. It is cut off as text, which costs a fifth of reading it as JSON; whether
the cut was right is seen on the driver, where each distinct schema is read once (`layout_of` raises `CutError`), and then the
batch is read again with `exact`.
"""

from __future__ import annotations

import base64
import json
from typing import Any

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
from lakelet.spark.cdc.value.debezium_types import debezium_field
from lakelet.spark.cdc.value.type_rules import TypeRules
from lakelet.spark.cdc.value.wire_field import WireField

_START, _MIDDLE = '{"schema":', ',"payload":'
_SOURCE = (
    "db:string, schema:string, `table`:string, ts_ms:bigint, lsn:string, file:string, pos:bigint, row:bigint, "
    "change_lsn:string, event_serial_no:bigint, scn:string"
)
_PAYLOAD = (
    "before variant, after variant, op string, ts_ms bigint, status string, ddl string, broken string, "
    f"source struct<{_SOURCE}>"
)
_OPERATIONS = {"c": "i", "r": "i", "u": "u", "d": "d", "t": "t"}
_PLACEHOLDER = "__debezium_unavailable_value"
# What stands for a value that PostgreSQL did not send: text, bytes, lists and maps of text, lists of numbers.
UNAVAILABLE = (
    _PLACEHOLDER,
    base64.b64encode(_PLACEHOLDER.encode()).decode(),
    json.dumps([_PLACEHOLDER]),
    json.dumps({_PLACEHOLDER: _PLACEHOLDER}, separators=(",", ":")),
    json.dumps(list(_PLACEHOLDER.encode()), separators=(",", ":")),
)


class CutError(Exception):
    """The text before the payload is no JSON: the payload begins elsewhere."""


def steps(found: T.StructType, *, exact: bool) -> Steps:
    """What makes events with the columns of `event_columns` of a frame: the columns of one select after the other."""
    text = F.col("text")
    # From the end, where the payload is: in a longer text before it than the schema a part of the payload is no JSON.
    after_payload = F.substring_index(text, _MIDDLE, -1)
    before_size = F.octet_length(text) - F.octet_length(after_payload) - len(_MIDDLE)
    cut = text.startswith(_START + "{") & (before_size > 0) & F.lit(not exact)
    before_payload = F.substring(F.col("raw"), F.lit(1), before_size).cast("string")
    wrapped = F.from_json(text, "schema string, payload string")
    simple = ~text.rlike(r'^\s*\{\s*"(schema|payload)"\s*:')
    schema = F.when(cut, before_payload).when(~simple, wrapped["schema"])
    # The brace that closes the event stays behind the payload: the parser ends with the object that it began.
    payload = F.when(cut, after_payload).when(simple, text).otherwise(wrapped["payload"])
    parsed = [
        F.col("*"),
        schema.alias("schema_text"),
        F.from_json(payload, _PAYLOAD, {"columnNameOfCorruptRecord": "broken"}).alias("e"),
        _key_payload(F.col("message_key").cast("string")).alias("key_row"),
    ]
    return (arrived(found), parsed, _columns())


def _key_payload(text: Column) -> Column:
    wrapped = text.rlike(r'^\s*\{\s*"(schema|payload)"\s*:')
    return F.try_parse_json(F.when(wrapped, F.get_json_object(text, "$.payload")).otherwise(text))


def _columns() -> list[Column]:
    event = F.col("e")
    op, before, after = event["op"], known(event["before"]), known(event["after"])
    # REPLICA IDENTITY DEFAULT and the like leave `before` out; the key alone says which row was deleted.
    image = F.when(op == "d", F.coalesce(before, F.col("key_row"))).otherwise(after)
    no_row = before.isNull() & after.isNull() & event["source"].isNull()
    skipped = (
        F.col("text").isNull()
        | (op == "m")
        | (
            op.isNull()
            & (event["ddl"].isNotNull() | event["status"].isNotNull() | (no_row & event["ts_ms"].isNotNull()))
        )
    )
    operation = F.coalesce(*(F.when(op == name, F.lit(mine)) for name, mine in _OPERATIONS.items()))
    reason = reasons(
        [
            (skipped & event["broken"].isNull(), F.lit(None).cast("string")),
            (~F.is_valid_utf8(F.col("text")), "the event is no UTF-8"),
            (event.isNull() | event["broken"].isNotNull(), "the event is no JSON object of Debezium's"),
            (operation.isNull(), F.concat(F.lit("unknown op "), F.coalesce(op, F.lit("(none)")))),
            (event["source"]["table"].isNull(), "source.table is missing"),
            (
                operation.isin("i", "u", "d") & image.isNull(),
                F.concat(F.lit("op "), op, F.lit(" without a row")),
            ),
        ]
    )
    schema = F.when(F.col("schema_text").startswith("{"), F.col("schema_text"))
    return event_columns(
        operation=F.when(skipped | reason.isNotNull(), None).otherwise(operation),
        reason=reason,
        database_name=event["source"]["db"],
        schema_name=event["source"]["schema"],
        table_name=event["source"]["table"],
        image=image,
        old=F.when(op == "u", before),
        layout=F.coalesce(schema, names_of(image)),
        key_names=names_of(F.col("key_row")),
        op_millis=F.coalesce(event["source"]["ts_ms"], event["ts_ms"]),
        position=_position(event["source"]),
    )


def _position(source: Column) -> Column:
    """The place in the log of PostgreSQL (lsn), MySQL (file, pos, row), SQL Server or Oracle. Never `ts_ms`, which ties."""
    return F.coalesce(
        padded(source["lsn"]),
        F.concat(
            log_file(source["file"]),
            F.lit(":"),
            padded(source["pos"]),
            F.lit(":"),
            padded(F.coalesce(source["row"], F.lit(0))),
        ),
        F.concat(source["change_lsn"], F.lit(":"), padded(F.coalesce(source["event_serial_no"], F.lit(0)))),
        F.when(source["scn"].rlike(r"^\d+$"), padded(source["scn"])),
    )


def layout_of(text: str, mapping: TypeRules) -> tuple[WireField, ...]:
    """The columns that a layout tells: those of the row in a schema, else names without types."""
    try:
        found: Any = json.loads(text + "}")["schema"] if text.startswith(_START) else json.loads(text)
    except ValueError as error:
        raise CutError from error
    if isinstance(found, list):
        return tuple(WireField(str(name)) for name in found)
    sides = {side.get("field"): side.get("fields") for side in found.get("fields") or ()}
    fields = sides.get("after") or sides.get("before") or ()
    return tuple(debezium_field(field, mapping) for field in fields)
