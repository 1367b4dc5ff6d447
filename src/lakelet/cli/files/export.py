"""`lakelet export`: the rows of a table or a query into a file, batch by batch.

The file appears under its name when all rows are in it; a failed export leaves nothing.
"""

from __future__ import annotations

import contextlib
import gzip
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any

import pyarrow as pa

from lakelet.catalog.names import DEFAULT_DATABASE, LakeNames, split_name
from lakelet.catalog.sql_result import SqlResult
from lakelet.cli.call import Call
from lakelet.cli.files.file_formats import COMPRESSED, format_of
from lakelet.cli.files.json_rows import json_objects
from lakelet.cli.interrupts import stopped_by_interrupt
from lakelet.cli.look.amounts import shown_bytes
from lakelet.cli.output.progress import row_bar
from lakelet.errors import AlreadyExistsError, InvalidError, NotFoundError
from lakelet.sql.lexer.quoting import quoted
from lakelet.sql.session import Session
from lakelet.storage.own_files import check_outside

_STDOUT = "-"


@dataclass(frozen=True, slots=True)
class Target:
    """A file to be written."""

    path: str
    format: str
    compression: str
    delimiter: str = ","
    header: bool = True
    null: str = ""
    overwrite: bool = False

    @staticmethod
    def of(
        path: str,
        file_format: str | None,
        compression: str | None,
        *,
        delimiter: str | None,
        header: bool,
        null: str | None = None,
        overwrite: bool,
    ) -> Target:
        """The target as the command line says it; InvalidError for what cannot be written."""
        chosen = file_format or ("csv" if path == _STDOUT else format_of(path))
        if "://" in path:
            raise InvalidError(f"{path!r}: an export writes to a file of this machine; copy it from there")
        if chosen == "parquet":
            packing = compression or "zstd"
        else:
            packing = compression or COMPRESSED.get(os.path.splitext(path)[1].lower(), "none")
            if packing == "snappy":
                raise InvalidError(f"snappy goes with Parquet, found {chosen}: expected none, gzip or zstd")
        if delimiter is not None and len(delimiter) != 1:
            raise InvalidError(f"--delimiter {delimiter!r}: expected one sign")
        if path != _STDOUT and os.path.exists(path) and not overwrite:
            raise AlreadyExistsError(f"file {path!r} is there: give --overwrite to replace it")
        return Target(path, chosen, packing, delimiter or ",", header, null or "", overwrite)


def export_rows(call: Call, source: str, target: Target) -> None:
    """Writes the file, and says how many rows are in it."""
    if target.path != _STDOUT:
        check_outside(call.lake.location, os.path.abspath(target.path), "export to")
    session = Session(call.lake)
    try:
        query, total = _query(call, source)
        with (
            stopped_by_interrupt(session.interrupt),
            session.run(query) as result,
            row_bar(call.output, "exporting") as tell,
        ):
            rows = 0

            def counted() -> Iterator[pa.RecordBatch]:
                nonlocal rows
                for batch in result.to_batches():
                    yield batch
                    rows += batch.num_rows
                    tell(rows, total, rows)

            with _opened(target.path) as file:
                _write(result, counted(), target, file)
    finally:
        session.close()
    if target.path != _STDOUT:
        size = os.path.getsize(target.path)
        shown: object = size if call.output.for_programs else shown_bytes(size)
        call.output.values(f"exported to {target.path}", {"rows": rows, "bytes": shown})


def _query(call: Call, source: str) -> tuple[str, float | None]:
    """The query for a table, or the one that is given, and about how many rows there are."""
    if len(source.split()) > 1:
        return source, None
    asked = split_name(source.split("."), DEFAULT_DATABASE)
    found = LakeNames(call.existing_lake).existing(asked)
    name = ".".join(map(quoted, (found.database, source.rsplit(".", maxsplit=1)[-1])))
    if asked.system is not None:
        return f"SELECT * FROM {name}", None
    snapshot = LakeNames(call.existing_lake).open(found).latest_snapshot()
    return f"SELECT * FROM {name}", float(snapshot.total_record_count or 0) if snapshot else None


@contextlib.contextmanager
def _opened(path: str) -> Iterator[IO[bytes]]:
    """A file beside the one that is wanted, which takes its place at the end."""
    if path == _STDOUT:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    folder, name = os.path.split(os.path.abspath(path))
    if not os.path.isdir(folder):
        raise NotFoundError(f"folder {folder!r} is not there")
    unfinished = os.path.join(folder, f".{name}.{os.getpid()}.tmp")
    try:
        with open(unfinished, "wb") as file:
            yield file
        os.replace(unfinished, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(unfinished)
        raise


def _write(result: SqlResult, batches: Iterator[pa.RecordBatch], target: Target, file: IO[bytes]) -> None:
    if target.format == "parquet":
        import pyarrow.parquet as pq  # noqa: PLC0415 - only this format needs it.

        with pq.ParquetWriter(file, result.schema, compression=target.compression) as writer:
            for batch in batches:
                writer.write_batch(batch)
        return
    with _packed(file, target.compression) as packed:
        for text in _texts(result, batches, target):
            packed.write(text.encode())


def _texts(result: SqlResult, batches: Iterator[pa.RecordBatch], target: Target) -> Iterator[str]:
    if target.format == "csv":
        from lakelet.cli.files.csv_text import csv_lines  # noqa: PLC0415 - as above.

        yield from csv_lines(result.schema, batches, header=target.header, delimiter=target.delimiter, null=target.null)
        return
    first, between, last = ("[\n", ",\n", "\n]\n") if target.format == "json" else ("", "\n", "\n")
    yield first
    written = False
    for batch in batches:
        if not batch.num_rows:
            continue
        yield (between if written else "") + json_objects(batch, between)
        written = True
    yield last if written or first else ""


def _packed(file: IO[bytes], compression: str) -> contextlib.AbstractContextManager[Any]:
    match compression:
        case "gzip":
            return gzip.GzipFile(fileobj=file, mode="wb", mtime=0)
        case "zstd":
            import zstandard  # noqa: PLC0415 - as above.

            return zstandard.ZstdCompressor().stream_writer(file, closefd=False)
        case _:
            return contextlib.nullcontext(file)
