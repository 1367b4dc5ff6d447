"""Records to the columns of a served table: converted values in `payload`, what fits no field in `payload_rest`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from lakelet.errors import InvalidError
from lakelet.model.arrow.arrow_types import arrow_schema
from lakelet.model.schema import TableSchema
from lakelet.service.ingest.payload_growth import MisfitError
from lakelet.service.ingest.payload_schema import Misfit, payload_row
from lakelet.service.ingest.payload_values import Converter, converter_of
from lakelet.service.tables.served_table import exact_integers
from lakelet.service.tables.table_layout import DAY, ID, PAYLOAD, PAYLOAD_REST, TIMESTAMP
from lakelet.service.timestamps import DAY_US
from lakelet.service.values import Record

_ZONED_MICROSECONDS = pa.timestamp("us", "UTC")


class RecordColumns:
    """Makes columns of records, for one schema of a table that the service made."""

    def __init__(self, schema: TableSchema) -> None:
        self.schema = schema
        row, exact = payload_row(schema), exact_integers(schema)
        self._converters: dict[str, Converter] = {}
        self._payload: pa.StructType | None = None
        if row is not None:
            self._converters = {
                field.name: converter_of(field.type, takes_large=field.name in exact) for field in row.fields
            }
            self._payload = arrow_schema(schema.fields).field(PAYLOAD).type

    def convert(self, records: Sequence[Record]) -> tuple[pa.Table, list[Misfit]]:
        """The columns of records, without the values that do not fit; and those values: place, field and value."""
        count, misfits = len(records), list[Misfit]()
        values: dict[str, list[Any]] = {name: [None] * count for name in self._converters}
        converters = self._converters
        for place, record in enumerate(records):
            for name, value in record.payload.items():
                if value is None:
                    continue
                convert = converters.get(name)
                try:
                    if convert is None:
                        raise MisfitError
                    values[name][place] = convert(value)
                except MisfitError:
                    misfits.append((place, name, value))
        moments = [record.timestamp_us for record in records]
        columns = {
            ID: pa.array([record.id for record in records], pa.string()),
            TIMESTAMP: pa.array(moments, pa.int64()).cast(_ZONED_MICROSECONDS),
        }
        if self._payload is not None:
            columns[PAYLOAD] = self._struct(values, count)
        columns[PAYLOAD_REST] = pa.nulls(count, pa.string())
        columns[DAY] = pa.array([moment // DAY_US for moment in moments], pa.int32()).cast(pa.date32())
        return pa.table(columns), misfits

    def _struct(self, values: dict[str, list[Any]], count: int) -> pa.StructArray:
        assert self._payload is not None, "a payload with fields has a type"
        fields = [self._payload.field(place) for place in range(self._payload.num_fields)]
        try:
            arrays = [pa.array(values[field.name], field.type) for field in fields]
        except (pa.ArrowInvalid, pa.ArrowTypeError, UnicodeEncodeError) as error:
            raise InvalidError(f"payload: {error}") from None
        return pa.StructArray.from_arrays(arrays, fields=fields)


def with_rest(rows: pa.Table, misfits: Sequence[Misfit]) -> pa.Table:
    """Rows with their misfits in `payload_rest`, one JSON object a row."""
    rest: dict[int, dict[str, Any]] = {}
    for place, name, value in misfits:
        rest.setdefault(place, {})[name] = value
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
        return json.dumps(values, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidError(f"payload: a value that fits no column cannot be kept as JSON either: {error}") from None
