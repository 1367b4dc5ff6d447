"""rollback and its like: an older version becomes the newest one."""

from __future__ import annotations

import pyarrow as pa

from lakelet.errors import InvalidError, NotFoundError
from lakelet.sql.procedures.procedure import TABLE_ARGUMENT, Argument, Call, Column, Done, Procedure
from lakelet.sql.procedures.values import MOMENT, NUMBER, TEXT, VERSION
from lakelet.table import Table

_RETURNS = (Column("snapshot_id", pa.int64()),)
_TAG = Argument("tag", TEXT, "The tag to go back to.", aliases=("tag_name",))


def rollback(call: Call) -> Done:
    """To the version that one of the arguments names."""
    given = {name: call.values[name] for name in ("version", "snapshot_id", "tag") if name in call.values}
    if len(given) != 1:
        found = " and ".join(given) or "none"
        raise InvalidError(f"a rollback needs one of version, snapshot and tag; found {found}")
    ((name, to),) = given.items()
    table = call.table()
    if name == "tag":
        return _back_to(table, table.tags.get(to).name)
    return _back_to(table, to)


def rollback_to_timestamp(call: Call) -> Done:
    """To the newest version up to a time."""
    table = call.table()
    snapshot = table.rollback(timestamp=call.values["timestamp"])
    return _done(table, snapshot.id)


def rollback_to_watermark(call: Call) -> Done:
    """To the newest version up to a watermark."""
    table, most = call.table(), call.values["watermark"]
    fitting = [one.id for one in table.snapshots() if one.watermark is not None and one.watermark <= most]
    if not fitting:
        raise NotFoundError(f"{table.name} has no snapshot with a watermark of {most} or less")
    return _back_to(table, fitting[-1])


def rollback_to_tag(call: Call) -> Done:
    """To the version of a tag."""
    table = call.table()
    return _back_to(table, table.tags.get(call.values["tag"]).name)


def _back_to(table: Table, to: int | str) -> Done:
    return _done(table, table.rollback(to).id)


def _done(table: Table, number: int) -> Done:
    return Done(f"{table.name} is back at snapshot {number}", [(number,)])


ROLLING_BACK = (
    Procedure(
        "rollback",
        "Makes an older version the newest one; later ones are no more. One of version, snapshot and tag is given.",
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
