"""Which tables and layouts a batch of events has: one job over the events, a line for each."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lakelet.errors import InternalError, InvalidError
from lakelet.model.schema import new_schema
from lakelet.model.type_parser import parse_type
from lakelet.model.types import Field, string
from lakelet.spark.cdc.envelope.debezium import CutError
from lakelet.spark.cdc.envelope.event_columns import HASH
from lakelet.spark.cdc.route import SourceTable
from lakelet.spark.cdc.scan.scanned_events import ScannedGroups
from lakelet.spark.cdc.settings import CdcSettings
from lakelet.spark.cdc.value.wire_field import WireField

_SHOWN = 300


@dataclass(frozen=True, slots=True)
class EventGroup:
    """The events of one source table with one layout, or with several that agree about the columns that they share; `hashes` are
    their `group_hash`es, `wrong` is why the layout is none that a table could have."""

    source: SourceTable
    hashes: tuple[int, ...]
    fields: tuple[WireField, ...]
    key_names: tuple[str, ...]
    count: int
    truncates: int
    wrong: str | None = None

    def events(self, frame: DataFrame) -> DataFrame:
        """The events of this group."""
        return frame.filter(self.condition)

    @property
    def condition(self) -> str:
        """What tells these events from others, as SQL."""
        return f"operation IS NOT NULL AND {HASH} IN ({', '.join(f'{one}L' for one in self.hashes)})"


@dataclass(frozen=True, slots=True)
class Discovery:
    """The groups of a batch, and how many rows of events it has, how many have nothing to do and how many are poison."""

    groups: tuple[EventGroup, ...]
    rows: int
    skipped: int
    poison: int


_NAMES = ("database_name", "schema_name", "table_name", HASH, "layout", "key_names")
_TOLD = [f"if(operation IS NULL, NULL, {name}) AS {name}" for name in _NAMES]


def discovered(events: DataFrame, settings: CdcSettings, *, exact: bool = True) -> Discovery:
    """The groups of these events; CutError where a layout was cut at the wrong place and may be read `exact`, InternalError
    where two groups have one hash."""
    chosen = events.selectExpr(*_TOLD, "operation IS NOT NULL AS applies", "reason IS NOT NULL AS bad", "operation")
    counts = settings.memory.once(
        "discovery", lambda: (F.expr("count(*)").alias("count"), F.expr("count_if(operation = 't')").alias("truncates"))
    )
    lines = chosen.groupBy(*_NAMES, "applies", "bad").agg(*counts).collect()
    found: dict[int, EventGroup] = {}
    known, layouts = settings.memory.layouts, dict[int, tuple[SourceTable, str | None]]()
    totals: dict[str, int] = defaultdict(int)
    for line in lines:
        totals["applied" if line["applies"] else "poison" if line["bad"] else "skipped"] += line["count"]
        if not line["applies"]:
            continue
        source = SourceTable(line["database_name"], line["schema_name"], line["table_name"])
        number = int(line[HASH])
        layout = line["layout"] if line["layout"] is not None else known.get(number)
        if layouts.setdefault(number, (source, layout)) != (source, layout):
            raise InternalError(f"two layouts of {source} and {layouts[number][0]} have one hash, {number}")
        fields, wrong = _layout(layout, settings, exact=exact)
        keys = tuple(json.loads(line["key_names"])) if line["key_names"] else ()
        group = EventGroup(source, (number,), fields, keys, line["count"], line["truncates"], wrong)
        found[number] = _joined(found.get(number), group)
    settings.memory.learn({number: layout for number, (_, layout) in layouts.items()})
    groups = sorted(found.values(), key=lambda one: (str(one.source), one.hashes[0]))
    return Discovery(tuple(_merged(groups)), sum(totals.values()), totals["skipped"], totals["poison"])


def told(found: ScannedGroups, settings: CdcSettings) -> Discovery:
    """The groups of events that were scanned."""
    groups = []
    for one in found.groups:
        fields, wrong = _layout(one.layout, settings, exact=True)
        keys = tuple(json.loads(one.key_names)) if one.key_names else ()
        groups.append(EventGroup(SourceTable(*one.names), (one.hash,), fields, keys, one.count, 0, wrong))
    groups.sort(key=lambda one: (str(one.source), one.hashes[0]))
    return Discovery(tuple(_merged(groups)), found.idle + sum(one.count for one in groups), found.idle, 0)


def together(one: Discovery, other: Discovery) -> Discovery:
    """What two parts of a batch have."""
    groups = sorted((*one.groups, *other.groups), key=lambda group: str(group.source))
    rows, skipped = one.rows + other.rows, one.skipped + other.skipped
    return Discovery(tuple(_merged(groups)), rows, skipped, one.poison + other.poison)


def _layout(text: str | None, settings: CdcSettings, *, exact: bool) -> tuple[tuple[WireField, ...], str | None]:
    """The columns that a layout tells, or why it is none: events are written by others, and a schema may be anything."""
    if text is None:
        return (), None
    try:
        fields = settings.layout_of(text)
        if fields:
            columns = [Field(-1, one.name, parse_type(str(one.type or string()))) for one in fields]
            new_schema(columns, partition_keys=(), primary_keys=(), options={}, comment=None, time_ms=0)
    except CutError:
        if not exact:
            raise
        return (), "the layout of the row is no JSON"
    except InvalidError as error:
        return (), f"the layout of the row: {error}"
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
        return (), f"the layout of the row cannot be read: {type(error).__name__}: {error}"[:_SHOWN]
    return fields, None


def _joined(known: EventGroup | None, other: EventGroup) -> EventGroup:
    if known is None:
        return other
    # An event without a key (a deleted topic key, a keyless source) does not hide that of the others.
    keys = known.key_names or other.key_names
    return replace(known, key_names=keys, count=known.count + other.count, truncates=known.truncates + other.truncates)


def _merged(groups: Sequence[EventGroup]) -> list[EventGroup]:
    """Groups of one source whose layouts agree as one: a column that an event lacks is NULL either way, and each group is a part
    of the plan of its own."""
    merged: list[EventGroup] = []
    for group in groups:
        place = next((place for place, one in enumerate(merged) if _agree(one, group)), None)
        if place is None:
            merged.append(group)
            continue
        one = merged[place]
        more = tuple(field for field in group.fields if field.name not in {known.name for known in one.fields})
        merged[place] = replace(_joined(one, group), hashes=(*one.hashes, *group.hashes), fields=(*one.fields, *more))
    return merged


def _agree(one: EventGroup, other: EventGroup) -> bool:
    if one.source != other.source or one.wrong != other.wrong:
        return False
    known = {field.name: field for field in one.fields}
    return all(known.get(field.name, field) == field for field in other.fields)


def all_fields(groups: Sequence[EventGroup]) -> list[WireField]:
    """The columns of several groups in the order in which they come, each as often as it does."""
    return [one for group in groups for one in group.fields]
