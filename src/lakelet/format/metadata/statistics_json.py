"""Statistics files: `statistics/stat-<uuid>-K`, one JSON object each, as Paimon writes them.

    {"snapshotId": 7, "schemaId": 0, "mergedRecordCount": 100, "mergedRecordSize": 4096,
     "colStats": {"amount": {"colId": 2, "distinctCount": 93, "min": "-1.5", "max": "7.0E10", "nullCount": 0,
                             "avgLen": 8, "maxLen": 8}, …}}

Members that are unknown are left out. Minimum and maximum are text: numbers as Java prints them, DATE the days since
1970, TIME the milliseconds of the day, TIMESTAMP `yyyy-MM-dd HH:mm:ss.f` with as many digits as its precision (in UTC where it
has a zone). Columns without such a text, as binaries, have neither.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from lakelet.errors import CorruptionError, InvalidError
from lakelet.format.metadata.stored_json import load_json
from lakelet.model.partition_path import parse_partition_value, partition_text
from lakelet.model.table_statistics import ColumnStatistics, TableStatistics
from lakelet.model.types import BINARIES, STRINGS, TIMESTAMPS, Atomic, DataType, Field

FieldsOf = Callable[[int], Sequence[Field]]

_MEMBERS = (
    ("distinctCount", "distinct_count"),
    ("nullCount", "null_count"),
    ("avgLen", "average_length"),
    ("maxLen", "maximum_length"),
)


def encode_statistics(statistics: TableStatistics, fields: Sequence[Field]) -> bytes:
    """The bytes of a statistics file; `fields` are those of the schema that the statistics name."""
    types = {field.name: field.type for field in fields}
    value: dict[str, Any] = {"snapshotId": statistics.snapshot_id, "schemaId": statistics.schema_id}
    if statistics.record_count is not None:
        value["mergedRecordCount"] = statistics.record_count
    if statistics.record_bytes is not None:
        value["mergedRecordSize"] = statistics.record_bytes
    value["colStats"] = {name: _encode_column(column, types[name]) for name, column in statistics.columns.items()}
    return json.dumps(value, ensure_ascii=False).encode()


def decode_statistics(data: bytes, fields_of: FieldsOf, *, path: str) -> TableStatistics:
    """The statistics in `data`; `fields_of` gives the fields of a schema version, errors name `path`."""
    try:
        value = load_json(data)
        schema_id = int(value["schemaId"])
        types = {field.name: field.type for field in fields_of(schema_id)}
        columns = {
            name: _decode_column(column, types.get(name)) for name, column in (value.get("colStats") or {}).items()
        }
        return TableStatistics(
            int(value["snapshotId"]),
            schema_id,
            _number(value, "mergedRecordCount"),
            _number(value, "mergedRecordSize"),
            columns,
        )
    except (ValueError, KeyError, TypeError, AttributeError, InvalidError) as error:
        raise CorruptionError(f"{path}: not a statistics file ({type(error).__name__}: {error})") from error


def has_bounds(data_type: DataType) -> bool:
    """Whether columns of the type have a minimum and a maximum here: as in Spark, text and bytes have none."""
    return isinstance(data_type, Atomic) and data_type.kind not in STRINGS and data_type.kind not in BINARIES


def _encode_column(column: ColumnStatistics, data_type: DataType) -> dict[str, Any]:
    value: dict[str, Any] = {"colId": column.column_id}
    if column.minimum is not None:
        value["min"] = _text(column.minimum, data_type)
    if column.maximum is not None:
        value["max"] = _text(column.maximum, data_type)
    for member, attribute in _MEMBERS:
        found = getattr(column, attribute)
        if found is not None:
            value[member] = found
    return value


def _decode_column(value: dict[str, Any], data_type: DataType | None) -> ColumnStatistics:
    bounds = [
        None if data_type is None or value.get(name) is None else _value(str(value[name]), data_type)
        for name in ("min", "max")
    ]
    numbers = {attribute: _number(value, member) for member, attribute in _MEMBERS}
    return ColumnStatistics(int(value["colId"]), minimum=bounds[0], maximum=bounds[1], **numbers)


def _text(value: object, data_type: DataType) -> str:
    # Partition folders of older Paimon versions spell everything as statistics do, but for timestamps.
    stamped = isinstance(data_type, Atomic) and data_type.kind in TIMESTAMPS
    return partition_text(data_type, value, legacy=not stamped)


def _value(text: str, data_type: DataType) -> object:
    # No text means NULL here.
    return parse_partition_value(text, data_type, default_name="\0")


def _number(value: dict[str, Any], member: str) -> int | None:
    found = value.get(member)
    return None if found is None else int(found)
