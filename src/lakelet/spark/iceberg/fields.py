"""Parse the partition spec and the sort order of an Iceberg table from the JSON of the write plan.

    spec        {"fields": [{"source-id": 2, "transform": "bucket[16]", …}]}
    sort order  {"fields": [{"source-id": 1, "transform": "identity", "direction": "desc", "null-order": "nulls-last"}]}
    schema      {"fields": [{"id": 2, "name": "customer", "type": "long"}, …]}, structs within one another

A source may be a member of a struct; its place is then the path of names to it. Members of lists and maps cannot be one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from lakelet.iceberg.write.write_plan import WritePlan

_TRANSFORM = re.compile(r"(?P<name>\w+)(?:\[(?P<argument>\d+)\])?")


@dataclass(frozen=True, slots=True)
class TransformedField:
    """A transformed source column, in Iceberg's terms: type `decimal(9, 2)`, transform `bucket`, argument 16."""

    place: tuple[str, ...]
    type: str
    transform: str
    argument: int = 0


@dataclass(frozen=True, slots=True)
class SortedField:
    """A column of the sort order."""

    field: TransformedField
    descending: bool
    nulls_last: bool


def partition_fields(plan: WritePlan) -> tuple[TransformedField, ...]:
    """The fields of the partition spec, without those that were dropped from it (void)."""
    sources = _sources(json.loads(plan.schema_json))
    spec = json.loads(plan.partition_specs_json[plan.partition_spec_id])
    found = (_transformed(field, sources) for field in spec["fields"])
    return tuple(field for field in found if field is not None and field.transform != "void")


def sort_fields(plan: WritePlan) -> tuple[SortedField, ...]:
    """The fields of the sort order."""
    sources = _sources(json.loads(plan.schema_json))
    found = [(_transformed(one, sources), one) for one in json.loads(plan.sort_order_json)["fields"]]
    return tuple(
        SortedField(field, one["direction"].lower() == "desc", one["null-order"].lower() == "nulls-last")
        for field, one in found
        if field is not None
    )


def _transformed(
    field: Mapping[str, Any], sources: Mapping[int, tuple[tuple[str, ...], str]]
) -> TransformedField | None:
    match = _TRANSFORM.fullmatch(str(field["transform"]))
    if match is None or field["source-id"] not in sources:
        return None
    place, data_type = sources[field["source-id"]]
    return TransformedField(place, data_type, match["name"].lower(), int(match["argument"] or 0))


def _sources(struct: Mapping[str, Any]) -> dict[int, tuple[tuple[str, ...], str]]:
    return {number: (place, data_type) for number, place, data_type in _columns(struct, ())}


def _columns(struct: Mapping[str, Any], above: tuple[str, ...]) -> Iterator[tuple[int, tuple[str, ...], str]]:
    """Every column that is no struct: id, place, type."""
    for field in struct["fields"]:
        place = (*above, field["name"])
        if isinstance(field["type"], str):
            yield field["id"], place, field["type"]
        elif field["type"]["type"] == "struct":
            yield from _columns(field["type"], place)
