"""create_tag and the other procedures on tags."""

from __future__ import annotations

import pyarrow as pa

from lakelet.model.tag import Tag
from lakelet.operations import tags
from lakelet.sql.procedures.procedure import TABLE_ARGUMENT, Argument, Call, Column, Done, Procedure
from lakelet.sql.procedures.values import AGE, FLAG, LENGTH, MOMENT, NAMES, NUMBER, TEXT
from lakelet.table import Table

_TAG = Argument("tag", TEXT, "The name of the tag.", required=True, aliases=("tag_name",))
_SNAPSHOT = Argument("snapshot_id", NUMBER, "The snapshot; by default the newest.", aliases=("snapshot",))
_RETAINED = Argument(
    "time_retained", LENGTH, "How long the tag stays; by default as long as `tag.default-time-retained` says."
)
_TAGGED = (Column("tag_name", pa.string()), Column("snapshot_id", pa.int64()))
_NAMES = (Column("tag_name", pa.string()),)


def create_tag(call: Call) -> Done:
    """Creates a tag of a snapshot."""
    table = call.table()
    request = tags.CreateTag(
        call.values["tag"], call.number("snapshot_id"), call.length("time_retained"), call.flag("if_not_exists")
    )
    return _tagged(table, tags.create_tag(table, request))


def create_tag_from_timestamp(call: Call) -> Done:
    """Creates a tag of the first snapshot from a time on."""
    return _tagged_since(call, timestamp_ms=call.values["timestamp"])


def create_tag_from_watermark(call: Call) -> Done:
    """Creates a tag of the first snapshot from a watermark on."""
    return _tagged_since(call, watermark_ms=call.values["watermark"])


def replace_tag(call: Call) -> Done:
    """Replaces the snapshot or the retention of an existing tag."""
    table = call.table()
    request = tags.ReplaceTag(call.values["tag"], call.number("snapshot_id"), call.length("time_retained"))
    return _tagged(table, tags.replace_tag(table, request))


def rename_tag(call: Call) -> Done:
    """Renames a tag."""
    table, name, target = call.table(), call.values["tag"], call.values["target_tag"]
    tag = tags.rename_tag(table, name, target)
    return Done(f"tag {name!r} of {table.name} is now {target!r}", [(target, tag.snapshot_id)])


def delete_tag(call: Call) -> Done:
    """Deletes tags."""
    table, names = call.table(), call.values["tag"]
    tags.delete_tags(table, names)
    return Done(f"deleted {_listed(names)} of {table.name}", [(name,) for name in names])


def expire_tags(call: Call) -> Done:
    """Deletes the expired tags."""
    table = call.table()
    names = tags.expire_tags(table, call.age("older_than"))
    return Done(f"expired {_listed(names)} of {table.name}", [(name,) for name in names])


def trigger_tag_automatic_creation(call: Call) -> Done:
    """Creates the automatic tags that are due."""
    table = call.table()
    names = tags.create_due_tags(table)
    return Done(f"made {_listed(names)} of {table.name}", [(name,) for name in names])


def _tagged_since(call: Call, *, timestamp_ms: int | None = None, watermark_ms: int | None = None) -> Done:
    table = call.table()
    request = tags.CreateTagSince(call.values["tag"], timestamp_ms, watermark_ms, call.length("time_retained"))
    return _tagged(table, tags.create_tag_since(table, request))


def _tagged(table: Table, tag: Tag) -> Done:
    return Done(f"tag {tag.name!r} of {table.name} is snapshot {tag.snapshot_id}", [(tag.name, tag.snapshot_id)])


def _listed(names: tuple[str, ...]) -> str:
    return f"tags {', '.join(map(repr, names))}" if names else "no tag"


TAGGING = (
    Procedure(
        "create_tag",
        "Gives a snapshot a name, under which its rows stay readable after it expires.",
        (
            TABLE_ARGUMENT,
            _TAG,
            _SNAPSHOT,
            _RETAINED,
            Argument("if_not_exists", FLAG, "Does nothing if a tag of that name exists."),
        ),
        _TAGGED,
        create_tag,
    ),
    Procedure(
        "create_tag_from_timestamp",
        "Tags the first snapshot that was made at a time or after it.",
        (TABLE_ARGUMENT, _TAG, Argument("timestamp", MOMENT, "The time.", required=True), _RETAINED),
        _TAGGED,
        create_tag_from_timestamp,
    ),
    Procedure(
        "create_tag_from_watermark",
        "Tags the first snapshot whose watermark is at least this.",
        (
            TABLE_ARGUMENT,
            _TAG,
            Argument("watermark", NUMBER, "The watermark, in milliseconds.", required=True),
            _RETAINED,
        ),
        _TAGGED,
        create_tag_from_watermark,
    ),
    Procedure(
        "replace_tag",
        "Replaces the snapshot or the retention time of an existing tag.",
        (
            TABLE_ARGUMENT,
            _TAG,
            Argument("snapshot_id", NUMBER, "The snapshot; by default the one it has.", aliases=("snapshot",)),
            Argument("time_retained", LENGTH, "How long the tag stays; by default for good."),
        ),
        _TAGGED,
        replace_tag,
    ),
    Procedure(
        "rename_tag",
        "Gives a tag another name.",
        (
            TABLE_ARGUMENT,
            _TAG,
            Argument("target_tag", TEXT, "The new name.", required=True, aliases=("target_tag_name",)),
        ),
        _TAGGED,
        rename_tag,
    ),
    Procedure(
        "delete_tag",
        "Deletes tags, and the files that nothing else needs.",
        (TABLE_ARGUMENT, Argument("tag", NAMES, "The tag, or several.", required=True, aliases=("tag_name",))),
        _NAMES,
        delete_tag,
    ),
    Procedure(
        "expire_tags",
        "Deletes the expired tags; one row for each.",
        (TABLE_ARGUMENT, Argument("older_than", AGE, "Also those made before this, where it is known when that was.")),
        _NAMES,
        expire_tags,
    ),
    Procedure(
        "trigger_tag_automatic_creation",
        "Makes the automatic tags that are due, as every write does; one row for each.",
        (TABLE_ARGUMENT,),
        _NAMES,
        trigger_tag_automatic_creation,
    ),
)
