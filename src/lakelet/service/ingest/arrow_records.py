"""Records of an Arrow table with the columns `id`, `timestamp` and `payload`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lakelet.errors import InvalidError
from lakelet.service.ingest.record import check_id
from lakelet.service.timestamps import check_timestamp_us
from lakelet.service.values import Record

_COLUMNS = ("id", "timestamp", "payload")


def decode_arrow(body: bytes) -> pa.Table:
    """The rows of an Arrow IPC stream; InvalidError where it is none."""
    try:
        with pa.ipc.open_stream(body) as reader:
            found = reader.read_all()
            found.validate(full=True)
            return found
    except (pa.ArrowInvalid, pa.ArrowException, OSError, ValueError) as error:
        raise InvalidError(f"body: Arrow stream does not decode: {error}") from None


def records_of_arrow(rows: pa.Table) -> list[Record]:
    """The records of an Arrow table; InvalidError where one of them is none, and for what `checked_records` refuses."""
    records: list[Record] = []
    for place, found in enumerate(checked_records(rows)):
        if isinstance(found, InvalidError):
            raise InvalidError(f"record {place}: {found}")
        records.append(found)
    return records


def checked_records(rows: pa.Table) -> Iterator[Record | InvalidError]:
    """The records of an Arrow table, and of a row that is none, what is wrong with it. InvalidError for other columns, and for
    timestamps that are finer than microseconds."""
    if sorted(rows.column_names) != sorted(_COLUMNS):
        raise InvalidError(
            f"columns: expected id, timestamp and payload, found {', '.join(rows.column_names) or 'none'}"
        )
    moments = _microseconds(rows.column("timestamp")).to_pylist()
    payloads = rows.column("payload")
    if not pa.types.is_struct(payloads.type):
        raise InvalidError(f"payload: expected a struct, found {payloads.type}")
    try:
        # Maps are objects, as in JSON.
        values = payloads.to_pylist(maps_as_pydicts="strict")
    except (pa.ArrowException, ValueError, KeyError) as error:
        raise InvalidError(f"payload: {error}") from None
    for key, moment, payload in zip(rows.column("id").to_pylist(), moments, values, strict=True):
        yield _record(key, moment, payload)


def _record(key: Any, moment: Any, payload: Any) -> Record | InvalidError:
    if moment is None:
        return InvalidError("timestamp: expected one, found NULL")
    if payload is None:
        return InvalidError("payload: expected one, found NULL")
    try:
        return Record(check_id(key), check_timestamp_us(moment), payload)
    except InvalidError as error:
        return error


def _microseconds(column: pa.ChunkedArray) -> pa.ChunkedArray:
    data_type = column.type
    if not pa.types.is_timestamp(data_type) or data_type.tz is None:
        raise InvalidError(f"timestamp: expected an Arrow timestamp with a zone, found {data_type}")
    try:
        return pc.cast(column, pa.timestamp("us", data_type.tz)).cast(pa.int64())
    except pa.ArrowInvalid as error:
        raise InvalidError(f"timestamp: expected microseconds at the finest: {error}") from None
