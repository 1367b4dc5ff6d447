"""The columns, keys and partitions of a table that the service makes.

    id STRING NOT NULL · timestamp TIMESTAMP(6) WITH LOCAL TIME ZONE · [payload ROW<…>] · payload_rest STRING · dt DATE
    [· lakelet_sequence BIGINT, where there is a primary key]

    properties                     partitions   buckets        primary key
    (none)                         dt           4, by id       none: every record is a row
    partitioning = id-day          id, dt       none           none
    primary_key = id               none         4              id: the last record of an id is its row
    primary_key = id, timestamp    dt           4              id, timestamp, dt

`payload` is added with its first field, or here for declared ones: `payload.<field>` = type. `dt` is the day of the timestamp in
UTC. `lakelet_sequence` is the `sequence.field`, a number of the hybrid clock of the node that accepted the record
(`cluster/hybrid_clock`): the later write wins, whichever node commits it. Whatever else is in the properties is a table option.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from lakelet.errors import InvalidError

ID, TIMESTAMP, PAYLOAD, PAYLOAD_REST, DAY = "id", "timestamp", "payload", "payload_rest", "dt"
SEQUENCE = "lakelet_sequence"
# The columns of the service's own tables that `SELECT *` leaves out.
HIDDEN = (DAY, SEQUENCE)

ATTACH = "attach"
_PARTITIONING, _PRIMARY_KEY, _BUCKETS = "partitioning", "primary_key", "buckets"
_DECLARED = "payload."
_SERVICE = "service."
_DEFAULT_BUCKETS = "4"
# What the layout decides, and what would make the service's rows other ones.
_FIXED = ("bucket-key", "primary-key", "partition", "merge-engine", "sequence.field", "rowkind.field", "path", "type")


@dataclass(frozen=True, slots=True)
class TableLayout:
    """What a new table is created with."""

    columns: tuple[tuple[str, str], ...]
    primary_key: tuple[str, ...]
    partitioned_by: tuple[str, ...]
    options: Mapping[str, str]


def planned_layout(properties: Mapping[str, str], retention_days: int) -> TableLayout:
    """The layout that properties choose; InvalidError for what they cannot."""
    given = dict(properties)
    partitioning = given.pop(_PARTITIONING, "day")
    key = tuple(part.strip() for part in given.pop(_PRIMARY_KEY, "").split(",") if part.strip())
    buckets = given.pop(_BUCKETS, None)
    declared = {name.removeprefix(_DECLARED): text for name, text in given.items() if name.startswith(_DECLARED)}
    options = {name: text for name, text in given.items() if not name.startswith(_DECLARED)}
    wrong = [name for name in options if name in _FIXED or name.startswith(_SERVICE)]
    if wrong:
        raise InvalidError(f"properties.{wrong[0]}: the service decides this option itself")
    if partitioning not in ("day", "id-day"):
        raise InvalidError(f"properties.{_PARTITIONING}: expected day or id-day, found {partitioning!r}")
    if key not in ((), (ID,), (ID, TIMESTAMP)):
        raise InvalidError(f"properties.{_PRIMARY_KEY}: expected 'id' or 'id, timestamp', found {', '.join(key)!r}")
    if key and partitioning == "id-day":
        raise InvalidError(f"properties.{_PARTITIONING}: id-day is for tables without a primary key")
    partitioned_by: tuple[str, ...] = () if key == (ID,) else (DAY,)
    if partitioning == "id-day":
        partitioned_by = (ID, DAY)
        options.setdefault("bucket", buckets or "-1")
    else:
        options["bucket"] = buckets or options.get("bucket", _DEFAULT_BUCKETS)
        if not key and options["bucket"] != "-1":
            options["bucket-key"] = ID
    options.update(retention_options(partitioned_by, retention_days, options))
    stored = (*key, *partitioned_by) if key else ()
    if key:
        options["sequence.field"] = SEQUENCE
    return TableLayout(_columns(declared, stored), stored, partitioned_by, options)


def retention_options(
    partitioned_by: tuple[str, ...], retention_days: int, given: Mapping[str, str] = MappingProxyType({})
) -> dict[str, str]:
    """The options by which rows expire after days: whole days where those are partitions, else rows by their timestamp.

    A day is as old as what was written to it last, unless the table's own options say otherwise: a record of years ago that comes
    today was acknowledged, and is not removed by the commit that writes it.
    """
    if not retention_days:
        return {}
    if DAY in partitioned_by:
        return {
            "partition.expiration-time": f"{retention_days} d",
            "partition.timestamp-pattern": f"${DAY}",
            "partition.timestamp-formatter": "yyyy-MM-dd",
            STRATEGY: given.get(STRATEGY, "update-time"),
        }
    return {"record-level.expire-time": f"{retention_days} d", "record-level.time-field": TIMESTAMP}


STRATEGY = "partition.expiration-strategy"
RETENTION_OPTIONS = (
    "partition.expiration-time",
    "partition.timestamp-pattern",
    "partition.timestamp-formatter",
    "record-level.expire-time",
    "record-level.time-field",
)


def _columns(declared: Mapping[str, str], key: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    timestamp, day = "TIMESTAMP(6) WITH LOCAL TIME ZONE", "DATE"
    columns = [
        (ID, "STRING NOT NULL"),
        (TIMESTAMP, f"{timestamp} NOT NULL" if TIMESTAMP in key else timestamp),
        (PAYLOAD_REST, "STRING"),
        (DAY, f"{day} NOT NULL" if DAY in key else day),
    ]
    if declared:
        fields = ", ".join(f"`{name}` {text}" for name, text in declared.items())
        columns.insert(2, (PAYLOAD, f"ROW<{fields}>"))
    if key:
        columns.append((SEQUENCE, "BIGINT"))
    return tuple(columns)
