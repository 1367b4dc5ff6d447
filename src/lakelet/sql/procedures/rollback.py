"""rollback and its variants: make an older version the newest one."""

from __future__ import annotations

import pyarrow as pa

from lakelet.operations.rollback import Rollback, roll_back
from lakelet.sql.procedures.procedure import TABLE_ARGUMENT, Argument, Call, Column, Done, Procedure
from lakelet.sql.procedures.values import MOMENT, NUMBER, TEXT, VERSION

_RETURNS = (Column("snapshot_id", pa.int64()),)
_TAG = Argument("tag", TEXT, "The tag to go back to.", aliases=("tag_name",))


def rollback(call: Call) -> Done:
    """Rolls back to the version that one of the arguments names."""
    return _back(call, Rollback(call.version("version"), call.version("snapshot_id"), call.text("tag")))


def rollback_to_timestamp(call: Call) -> Done:
    """Rolls back to the newest version up to a time."""
    return _back(call, Rollback(timestamp=call.values["timestamp"]))


def rollback_to_watermark(call: Call) -> Done:
    """Rolls back to the newest version up to a watermark."""
    return _back(call, Rollback(watermark_ms=call.values["watermark"]))


def rollback_to_tag(call: Call) -> Done:
    """Rolls back to the version of a tag."""
    return _back(call, Rollback(tag=call.values["tag"]))


def _back(call: Call, request: Rollback) -> Done:
    table = call.table()
    number = roll_back(table, request)
    return Done(f"{table.name} is back at snapshot {number}", [(number,)])


ROLLING_BACK = (
    Procedure(
        "rollback",
        "Makes an older version the newest one; later ones are deleted. One of version, snapshot and tag is given.",
        (
            TABLE_ARGUMENT,
            Argument("version", VERSION, "The snapshot or tag to go back to."),
            Argument("snapshot_id", NUMBER, "The snapshot to go back to.", aliases=("snapshot",)),
            _TAG,
        ),
        _RETURNS,
        rollback,
    ),
    Procedure(
        "rollback_to",
        "The same, as Flink has it.",
        (
            TABLE_ARGUMENT,
            Argument("snapshot_id", VERSION, "The snapshot to go back to; as text, a tag.", aliases=("snapshot",)),
            _TAG,
        ),
        _RETURNS,
        rollback,
    ),
    Procedure(
        "rollback_to_timestamp",
        "Goes back to the newest version up to a time.",
        (TABLE_ARGUMENT, Argument("timestamp", MOMENT, "The time.", required=True)),
        _RETURNS,
        rollback_to_timestamp,
    ),
    Procedure(
        "rollback_to_watermark",
        "Goes back to the newest version whose watermark is at most this.",
        (TABLE_ARGUMENT, Argument("watermark", NUMBER, "The watermark, in milliseconds.", required=True)),
        _RETURNS,
        rollback_to_watermark,
    ),
    Procedure(
        "rollback_to_tag",
        "Goes back to the version of a tag.",
        (TABLE_ARGUMENT, Argument("tag", TEXT, "The tag.", required=True, aliases=("tag_name",))),
        _RETURNS,
        rollback_to_tag,
    ),
)
