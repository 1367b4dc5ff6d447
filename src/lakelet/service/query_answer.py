"""Answers of queries as bytes: run in threads, read part by part."""

from __future__ import annotations

import io
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from lakelet.service.query.json_text import JsonText

if TYPE_CHECKING:
    from lakelet.service.query.query_engine import QueryEngine, QueryRequest
    from lakelet.service.query.served_table import ServedTables


def json_answer(engine: QueryEngine, request: QueryRequest, served: ServedTables) -> str:
    """The rows as the text of a JSON array of objects."""
    with engine.run(request, served) as result:
        return result.json().decode()


def json_text(engine: QueryEngine, request: QueryRequest, served: ServedTables) -> JsonText:
    """The same as the text of a JSON string; the caller closes it."""
    made = JsonText()
    try:
        with engine.run(request, served) as result:
            for part in result.json_parts():
                made.add(part)
    except BaseException:
        made.close()
        raise
    return made


def arrow_parts(engine: QueryEngine, request: QueryRequest, served: ServedTables) -> Generator[bytes]:
    """The rows as an Arrow IPC stream: its schema with the first batch, then batch by batch."""
    with engine.run(request, served) as result:
        sink = io.BytesIO()
        with pa.ipc.new_stream(sink, result.schema) as writer:
            for batch in result.batches():
                writer.write_batch(batch)
                yield _taken(sink)
        yield _taken(sink)


def close_parts(parts: Iterator[bytes]) -> None:
    """End a query whose rows are not all read."""
    if isinstance(parts, Generator):
        parts.close()


def _taken(sink: io.BytesIO) -> bytes:
    """What has been written since the last time."""
    found = sink.getvalue()
    sink.seek(0)
    sink.truncate()
    return found
