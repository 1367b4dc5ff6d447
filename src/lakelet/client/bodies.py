"""The bodies of writes: records as NDJSON, frames as Arrow streams, in batches of bounded rows and bytes.

mappings {id, timestamp, payload}                      NDJSON
Arrow, pandas, polars: id, timestamp, payload          Arrow, as it is
Arrow, pandas, polars: id, timestamp, further columns  Arrow; the further columns are the payload
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

from lakelet.errors import InvalidError

if TYPE_CHECKING:
    import pyarrow as pa

NDJSON, ARROW = "application/x-ndjson", "application/vnd.apache.arrow.stream"
_ID, _TIMESTAMP, _PAYLOAD = "id", "timestamp", "payload"
_MEMBERS = frozenset((_ID, _TIMESTAMP, _PAYLOAD))
# Well below the 32 MiB that a service takes by default.
_BATCH_BYTES = 8 << 20


@dataclass(frozen=True, slots=True)
class Batch:
    """The body of one request: its records are written together."""

    media_type: str
    body: bytes
    records: int


def batches_of(rows: object, batch_rows: int) -> Iterator[Batch]:
    """The batches of records, of Arrow data or of a frame."""
    if batch_rows < 1:
        raise InvalidError(f"batch_rows: expected 1 or more, found {batch_rows}")
    if isinstance(rows, Mapping | str | bytes):
        raise InvalidError(f"rows: expected several records, or a frame, found {type(rows).__name__}")
    # A pandas frame offers an Arrow stream, too, which has its index as a column.
    if hasattr(rows, "__arrow_c_stream__") or hasattr(rows, "__arrow_c_array__"):
        return _arrow_batches(rows, batch_rows)
    if isinstance(rows, Iterable):
        return _json_batches(rows, batch_rows)
    raise InvalidError(f"rows: expected records, Arrow data or a frame, found {type(rows).__name__}")


def json_body(value: object) -> bytes:
    """The JSON of a value; points in time as RFC 3339. InvalidError for what JSON has no form for."""
    try:
        text = json.dumps(value, default=_json_value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return text.encode()
    except UnicodeEncodeError:
        raise InvalidError("expected text that UTF-8 can hold, found half of a surrogate pair") from None
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidError(f"expected what JSON can hold: {error}; Arrow data has further types") from None


def timestamp_text(value: object) -> object:
    """A record's point in time as text; one without a zone is refused, texts are left to the service."""
    if not isinstance(value, datetime):
        return value
    if value.tzinfo is None:
        raise InvalidError(f"timestamp: expected a zone, found {value.isoformat()}")
    if getattr(value, "nanosecond", 0):
        raise InvalidError(f"timestamp: expected microseconds at the finest, found {value.isoformat()}")
    return value.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _json_batches(rows: Iterable[object], batch_rows: int) -> Iterator[Batch]:
    lines: list[bytes] = []
    size = 0
    for place, row in enumerate(rows):
        line = _line(place, row)
        if lines and (len(lines) >= batch_rows or size + len(line) > _BATCH_BYTES):
            yield Batch(NDJSON, b"\n".join(lines), len(lines))
            lines, size = [], 0
        lines.append(line)
        size += len(line) + 1
    if lines:
        yield Batch(NDJSON, b"\n".join(lines), len(lines))


def _line(place: int, row: object) -> bytes:
    try:
        if isinstance(row, Mapping):
            if not row.keys() >= _MEMBERS:
                raise InvalidError(f"expected id, timestamp and payload, found {', '.join(map(str, row)) or 'none'}")
            return json_body({**row, _TIMESTAMP: timestamp_text(row[_TIMESTAMP])})
        found = [getattr(row, name, None) for name in (_ID, _TIMESTAMP, _PAYLOAD)]
        if found[2] is None:
            raise InvalidError(f"expected a mapping with id, timestamp and payload, found {type(row).__name__}")
        return json_body({_ID: found[0], _TIMESTAMP: timestamp_text(found[1]), _PAYLOAD: found[2]})
    except InvalidError as error:
        raise InvalidError(f"record {place}: {error}") from None


def _json_value(value: object) -> object:
    if isinstance(value, datetime):
        return timestamp_text(value)
    if isinstance(value, date):
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} has no form in JSON")


def _arrow_batches(rows: object, batch_rows: int) -> Iterator[Batch]:
    import pyarrow as pa  # noqa: PLC0415 - most requests need no Arrow, and it is slow to load.

    try:
        for part in _parts(rows, pa):
            for batch in _pieces(_with_payload(part, pa), batch_rows):
                sink = pa.BufferOutputStream()
                with pa.ipc.new_stream(sink, batch.schema) as writer:
                    writer.write_table(batch)
                yield Batch(ARROW, sink.getvalue().to_pybytes(), batch.num_rows)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise InvalidError(f"rows: {error}") from error


def _parts(rows: Any, pa: Any) -> Iterator[pa.Table]:
    """The rows as tables: one, or those of a stream, which is not read whole."""
    if isinstance(rows, pa.Table):
        yield rows
    elif type(rows).__module__.partition(".")[0] == "pandas":
        yield pa.Table.from_pandas(rows, preserve_index=False)
    elif hasattr(rows, "__arrow_c_stream__"):
        for batch in pa.RecordBatchReader.from_stream(rows):
            yield pa.Table.from_batches([batch])
    else:
        yield pa.Table.from_batches([pa.record_batch(rows)])


def _pieces(rows: pa.Table, batch_rows: int) -> Iterator[pa.Table]:
    """A table cut by rows, and by bytes where its rows are large."""
    if not rows.num_rows:
        return
    by_size = max(1, int(_BATCH_BYTES * rows.num_rows / max(1, rows.nbytes)))
    step = min(batch_rows, by_size)
    for start in range(0, rows.num_rows, step):
        yield rows.slice(start, step)


def _with_payload(rows: pa.Table, pa: Any) -> pa.Table:
    names = rows.column_names
    missing = [name for name in (_ID, _TIMESTAMP) if names.count(name) != 1]
    if missing:
        raise InvalidError(f"columns: expected one {missing[0]!r}, found {', '.join(names) or 'none'}")
    rest = [name for name in names if name not in (_ID, _TIMESTAMP)]
    if _PAYLOAD in rest:
        return rows.replace_schema_metadata(None)
    if len(set(rest)) < len(rest):
        raise InvalidError(f"columns: expected names that differ, found {', '.join(names)}")
    if rest:
        payload = rows.select(rest).to_struct_array()
    else:
        payload = pa.array([{}] * rows.num_rows, pa.struct([]))
    return pa.table({_ID: rows.column(_ID), _TIMESTAMP: rows.column(_TIMESTAMP), _PAYLOAD: payload})
