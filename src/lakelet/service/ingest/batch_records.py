"""The records of a batch, validated: all of them, or, of a partial batch, those that are valid. Runs in threads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec
import pyarrow as pa

from lakelet.errors import InvalidError
from lakelet.service.ingest.arrow_records import checked_records
from lakelet.service.ingest.fitting_rows import parsed_lines
from lakelet.service.ingest.record import record_of
from lakelet.service.tables.served_table import OpenTable
from lakelet.service.values import BatchRequest, JsonLines, Record, RefusedRecord

_LINE = msgspec.json.Decoder(Any)

Rows: TypeAlias = "Sequence[Record] | pa.Table"


def batch_records(opened: OpenTable, request: BatchRequest) -> tuple[Rows, tuple[RefusedRecord, ...]]:
    """What is to be written of a batch, and what is refused."""
    given = request.records
    if isinstance(given, JsonLines):
        found = None if request.partial else parsed_lines(given.body, opened.schema)
        return (found, ()) if found is not None else _validated(_lines(given.body), partial=request.partial)
    if isinstance(given, pa.Table):
        return (given, ()) if not request.partial else _validated(checked_records(given), partial=True)
    return _validated(given, partial=request.partial)


def _validated(
    given: Iterable[Record | Mapping[str, Any] | InvalidError], *, partial: bool
) -> tuple[Rows, tuple[RefusedRecord, ...]]:
    records: list[Record] = []
    refused: list[RefusedRecord] = []
    for place, row in enumerate(given):
        try:
            if isinstance(row, InvalidError):
                raise row
            records.append(row if isinstance(row, Record) else record_of(row))
        except InvalidError as error:
            if not partial:
                raise InvalidError(f"record {place}: {error}; none of the batch was written") from None
            refused.append(RefusedRecord(place, str(error)))
    return records, tuple(refused)


def _lines(body: bytes) -> Iterable[Mapping[str, Any] | InvalidError]:
    """The values of lines of JSON; of a line that is none, what is wrong with it. Empty lines are no records."""
    for line in body.split(b"\n"):
        if line and not line.isspace():
            yield _line(line)


def _line(line: bytes) -> Any:
    try:
        return _LINE.decode(line)
    except RecursionError:
        return InvalidError("JSON is nested too deep")
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        return InvalidError(f"no JSON: {error}")
