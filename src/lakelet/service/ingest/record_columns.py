"""Records to the columns of a served table: converted values in `payload`, what fits no field in `payload_rest`.

A table that was attached and has no column `payload` takes the fields of payloads as columns of their own.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

from lakelet.errors import InvalidError
from lakelet.model.arrow.arrow_types import arrow_schema
from lakelet.model.schema import TableSchema
from lakelet.model.types import Atomic, Field, Kind
from lakelet.realtime.nested_row import MOST_NESTED_ROWS
from lakelet.service.ingest.payload_growth import MisfitError
from lakelet.service.ingest.payload_schema import Misfit, payload_row
from lakelet.service.ingest.payload_values import Converter, converter_of
from lakelet.service.tables.served_table import exact_integers, is_attached
from lakelet.service.tables.table_layout import DAY, ID, PAYLOAD, PAYLOAD_REST, TIMESTAMP
from lakelet.service.timestamps import DAY_US, moment_us, timestamp_text
from lakelet.service.values import Record

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_DAY = _EPOCH.toordinal()
_ZONED_MICROSECONDS = pa.timestamp("us", "UTC")


class RecordColumns:
    """Makes columns of records, for one schema of a table."""

    def __init__(self, schema: TableSchema) -> None:
        self.schema = schema
        exact, attached = exact_integers(schema), is_attached(schema)
        row = payload_row(schema)
        self._arrow = arrow_schema(schema.fields)
        self.is_flat = attached and PAYLOAD not in schema.names
        self._day = next((field for field in schema.fields if field.name == DAY and _is_date(field)), None)
        fields: Sequence[Field] = () if row is None else row.fields
        if self.is_flat:
            own = {ID, TIMESTAMP} | ({DAY} if self._day is not None else set())
            fields = [field for field in schema.fields if field.name not in own]
        self._converters: dict[str, Converter] = {
            field.name: converter_of(field.type, takes_large=attached or field.name in exact) for field in fields
        }
        self._nulls: dict[str, Any] = dict.fromkeys(self._converters)
        self._has_rest = PAYLOAD_REST in schema.names and not self.is_flat

    def convert(self, records: Sequence[Record]) -> tuple[pa.Table | list[dict[str, Any]], list[Misfit]]:
        """The rows of records, without the values that do not fit, as mappings where they are few; and those values: place, field
        and value."""
        count, misfits = len(records), list[Misfit]()
        if count <= MOST_NESTED_ROWS:
            return [self._row(place, record, misfits) for place, record in enumerate(records)], misfits
        values: dict[str, list[Any]] = {name: [None] * count for name in self._converters}
        for place, record in enumerate(records):
            for name, value in self._converted(place, record, misfits):
                values[name][place] = value
        moments = pa.array([record.timestamp_us for record in records], pa.int64())
        ids = pa.array([record.id for record in records], pa.string())
        return self.table(ids, moments, self._payload(values, count), count), misfits

    def _converted(self, place: int, record: Record, misfits: list[Misfit]) -> Iterator[tuple[str, Any]]:
        """The fields of a record that fit, converted; the others are added to the misfits."""
        converters = self._converters
        for name, value in record.payload.items():
            if value is None:
                continue
            convert = converters.get(name)
            try:
                if convert is None:
                    raise MisfitError
                yield name, convert(value)
            except MisfitError:
                misfits.append((place, name, value))

    def _row(self, place: int, record: Record, misfits: list[Misfit]) -> dict[str, Any]:
        """A record as a mapping of all columns."""
        payload: dict[str, Any] = self._nulls.copy()
        converters = self._converters
        for name, value in record.payload.items():
            if value is None:
                continue
            convert = converters.get(name)
            if convert is None:
                misfits.append((place, name, value))
                continue
            try:
                payload[name] = convert(value)
            except MisfitError:
                misfits.append((place, name, value))
        row: dict[str, Any] = {ID: record.id, TIMESTAMP: _EPOCH + timedelta(microseconds=record.timestamp_us)}
        if self.is_flat:
            row.update(payload)
        elif payload:
            row[PAYLOAD] = payload
        if self._has_rest:
            row[PAYLOAD_REST] = None
        if self._day is not None:
            row[DAY] = date.fromordinal(_EPOCH_DAY + record.timestamp_us // DAY_US)
        return row

    def table(self, ids: pa.Array, moments_us: pa.Array, payload: dict[str, pa.Array], count: int) -> pa.Table:
        """Rows of ids, moments, and what the payload is made of, in the columns that the table has."""
        columns = {ID: ids, TIMESTAMP: moments_us.cast(_ZONED_MICROSECONDS)}
        columns.update(payload)
        if self._has_rest:
            columns[PAYLOAD_REST] = pa.nulls(count, pa.string())
        if self._day is not None:
            columns[DAY] = day_of(moments_us)
        return pa.table(columns)

    def _payload(self, values: dict[str, list[Any]], count: int) -> dict[str, pa.Array]:
        try:
            if self.is_flat:
                return {name: pa.array(found, self._arrow.field(name).type) for name, found in values.items()}
            if not values:
                return {}
            wanted = self._arrow.field(PAYLOAD).type
            fields = [wanted.field(place) for place in range(wanted.num_fields)]
            arrays = [pa.array(values[field.name], field.type) for field in fields]
        except (pa.ArrowInvalid, pa.ArrowTypeError, UnicodeEncodeError) as error:
            raise InvalidError(f"payload: {error}") from None
        return {PAYLOAD: pa.StructArray.from_arrays(arrays, fields=fields)}


def day_of(moments_us: pa.Array) -> pa.Array:
    """The day in UTC of moments, before 1970, too."""
    numbers = moments_us.to_numpy(zero_copy_only=False) // DAY_US
    return pa.array(numbers.astype("int32")).cast(pa.date32())


def with_rest(rows: pa.Table | list[dict[str, Any]], misfits: Sequence[Misfit]) -> pa.Table | list[dict[str, Any]]:
    """Rows with their misfits in `payload_rest`, one JSON object a row."""
    rest: dict[int, dict[str, Any]] = {}
    for place, name, value in misfits:
        rest.setdefault(place, {})[name] = value
    if isinstance(rows, list):
        return [
            {**row, PAYLOAD_REST: rest_text(rest[place])} if place in rest else row for place, row in enumerate(rows)
        ]
    texts: list[str | None] = [None] * rows.num_rows
    for place, values in rest.items():
        texts[place] = rest_text(values)
    index = rows.schema.get_field_index(PAYLOAD_REST)
    try:
        return rows.set_column(index, PAYLOAD_REST, pa.array(texts, pa.string()))
    except UnicodeEncodeError:
        raise InvalidError("payload: expected text that UTF-8 can hold, found half of a surrogate pair") from None


def rest_text(values: dict[str, Any]) -> str:
    """The JSON of values that fit no field."""
    try:
        return json.dumps(values, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_json)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidError(f"payload: a value that fits no column cannot be kept as JSON either: {error}") from None


def _json(value: Any) -> str:
    """The text of a value that Arrow has and JSON has not."""
    match value:
        case Decimal() | timedelta():
            return str(value)
        case datetime() if value.tzinfo is not None and not getattr(value, "nanosecond", 0):
            return timestamp_text(moment_us(value))
        case date() | time():
            return value.isoformat()
        case bytes():
            return base64.b64encode(value).decode()
    raise TypeError(f"a {type(value).__name__}")


def _is_date(field: Field) -> bool:
    return isinstance(field.type, Atomic) and field.type.kind is Kind.DATE
