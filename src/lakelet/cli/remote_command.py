"""Implementations of `remote …`: the client of a service, and its answers as output."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import nullcontext

from lakelet.cli.call import Call
from lakelet.client import Client, ServedTable
from lakelet.errors import InvalidError, NotFoundError

_TABLE_COLUMNS = ("table", "status", "records", "files", "bytes", "last write")
_RECORD_COLUMNS = ("id", "timestamp", "payload")


def opened_client(
    url: str, timeout: float, ca_file: str | None, certificate_file: str | None, key_file: str | None
) -> Client:
    """A client of the service at an address, with the key of the environment."""
    key = os.environ.get("LAKELET_API_KEY") or None
    return Client(
        url,
        api_key=key,
        ca_file=ca_file,
        certificate_file=certificate_file,
        key_file=key_file,
        timeout_seconds=timeout,
    )


def run_query(
    client: Client, statement: str, params: Mapping[str, str], *, form: str, limit: int | None, engine: str | None
) -> None:
    """Run a SELECT and print its rows."""
    from lakelet.cli.deferred_pandas import defer_pandas  # noqa: PLC0415 - only this command loads Arrow's tables.

    defer_pandas()
    from lakelet.catalog.sql_result import SqlResult  # noqa: PLC0415 - as above.
    from lakelet.cli.output.result_forms import write_result  # noqa: PLC0415
    from lakelet.cli.statements import parameter_values  # noqa: PLC0415

    text = sys.stdin.read() if statement == "-" else statement
    answer = client.query(text, parameter_values(params) or None, engine=engine)
    write_result(SqlResult.of_table(answer.to_arrow()), form, sys.stdout, limit)


def write_file(call: Call, client: Client, table: str, path: str, *, partial: bool, batch_rows: int) -> None:
    """Write the records of a file and print how many."""
    done = client.write_many(table, _rows_of(path), partial=partial, batch_rows=batch_rows)
    values: dict[str, object] = {"records": done.written}
    if done.rest_values:
        values["values in payload_rest"] = done.rest_values
    if partial:
        values["refused"] = len(done.refused)
    call.output.values(f"written to {table}", values)
    if done.refused:
        call.output.rows("refused records", ("record", "reason"), [(one.place, one.reason) for one in done.refused])


def show_records(call: Call, client: Client, table: str, id: str) -> None:
    """Print the records of an id."""
    found = client.get(table, id)
    for_programs = call.output.for_programs
    rows = [
        (
            one.id,
            None if one.timestamp is None else one.timestamp.isoformat().replace("+00:00", "Z"),
            one.payload if for_programs else json.dumps(one.payload, ensure_ascii=False),
        )
        for one in found
    ]
    call.output.rows(f"{table}: {len(found)} {'record' if len(found) == 1 else 'records'}", _RECORD_COLUMNS, rows)


def list_served(call: Call, client: Client, pattern: str) -> None:
    """Print the tables of a service."""
    rows = [
        (
            one.name,
            one.status,
            one.stats.get("record_count"),
            one.stats.get("file_count"),
            one.stats.get("size_bytes"),
            None if one.last_write is None else one.last_write.isoformat().replace("+00:00", "Z"),
        )
        for one in client.list_tables(pattern)
    ]
    call.output.rows(client.address, _TABLE_COLUMNS, rows)


def show_table(call: Call, table: ServedTable) -> None:
    """Print a table and its configuration."""
    config = {name: value for name, value in table.config.items() if name != "properties"}
    call.output.values(table.name, {"status": table.status, **config, **table.config.get("properties", {})})


def _rows_of(path: str) -> object:
    """The rows of a file by its ending: Parquet, Arrow (a file or a stream), a JSON array, or NDJSON."""
    if path == "-":
        return _lines(path)
    if not os.path.exists(path):
        raise NotFoundError(f"file {path!r} is not there")
    ending = os.path.splitext(path)[1].lower()
    match ending:
        case ".parquet" | ".arrow" | ".arrows" | ".feather" | ".ipc":
            return _columns(path, is_parquet=ending == ".parquet")
        case ".json":
            return _array(path)
        case ".ndjson" | ".jsonl":
            return _lines(path)
    raise InvalidError(f"file {path!r}: expected .ndjson, .jsonl, .json, .parquet, .arrow or .arrows, found {ending!r}")


def _lines(path: str) -> Iterator[object]:
    """The records of NDJSON, read line by line."""
    try:
        with nullcontext(sys.stdin) if path == "-" else open(path, encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    yield _decoded(line, f"{path}: line {number}")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidError(f"file {path!r} cannot be read as text: {error}") from error


def _array(path: str) -> list[object]:
    try:
        with open(path, encoding="utf-8") as file:
            found = _decoded(file.read(), path)
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidError(f"file {path!r} cannot be read as text: {error}") from error
    if not isinstance(found, list):
        raise InvalidError(f"file {path!r}: expected a JSON array, found {type(found).__name__}")
    return found


def _decoded(text: str, where: str) -> object:
    try:
        found: object = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidError(f"{where}: expected JSON: {error}") from error
    return found


def _columns(path: str, *, is_parquet: bool) -> object:
    """A reader of record batches: a file is never held whole."""
    from lakelet.cli.deferred_pandas import defer_pandas  # noqa: PLC0415 - as above.

    defer_pandas()
    import pyarrow as pa  # noqa: PLC0415 - as above.
    import pyarrow.parquet as pq  # noqa: PLC0415

    try:
        if is_parquet:
            file = pq.ParquetFile(path)
            return pa.RecordBatchReader.from_batches(file.schema_arrow, file.iter_batches())
        try:
            opened = pa.ipc.open_file(path)
        except pa.ArrowInvalid:
            return pa.ipc.open_stream(pa.OSFile(path))
        batches = (opened.get_batch(place) for place in range(opened.num_record_batches))
        return pa.RecordBatchReader.from_batches(opened.schema, batches)
    except (pa.ArrowException, OSError) as error:
        raise InvalidError(f"file {path!r} cannot be read: {error}") from error
