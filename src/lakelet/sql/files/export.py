"""Export the rows of a table or a query to a file, batch by batch.

The file is renamed to its name once all rows are written; a failed export leaves nothing.
"""

from __future__ import annotations

import contextlib
import gzip
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any

import pyarrow as pa

from lakelet.catalog.lake import Lake
from lakelet.catalog.names import DEFAULT_DATABASE, LakeNames, split_name
from lakelet.catalog.sql_result import SqlResult
from lakelet.errors import AlreadyExistsError, InvalidError, NotFoundError
from lakelet.sql.files.file_formats import COMPRESSED, Tell, format_of
from lakelet.sql.files.json_rows import json_objects
from lakelet.sql.lexer.quotes import quoted
from lakelet.sql.session import Session
from lakelet.storage.disk.own_files import check_outside

STDOUT = "-"


@dataclass(frozen=True, slots=True)
class Target:
    """The file to write, and its format."""

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
        """The target given on the command line; InvalidError for what cannot be written."""
        chosen = file_format or ("csv" if path == STDOUT else format_of(path))
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
        if path != STDOUT and os.path.exists(path) and not overwrite:
            raise AlreadyExistsError(f"file {path!r} is there: give --overwrite to replace it")
        return Target(path, chosen, packing, delimiter or ",", header, null or "", overwrite)


@dataclass(frozen=True, slots=True)
class ExportQuery:
    """The query whose rows are exported, and its estimated row count."""

    text: str
    rows: float | None = None


def export_query(lake: Lake, source: str) -> ExportQuery:
    """The query over a table, or the given one."""
    if len(source.split()) > 1:
        return ExportQuery(source)
    asked = split_name(source.split("."), DEFAULT_DATABASE)
    found = LakeNames(lake).existing(asked)
    name = ".".join(map(quoted, (found.database, source.rsplit(".", maxsplit=1)[-1])))
    if asked.system is not None:
        return ExportQuery(f"SELECT * FROM {name}")
    snapshot = LakeNames(lake).open(found).latest_snapshot()
    return ExportQuery(f"SELECT * FROM {name}", float(snapshot.total_record_count or 0) if snapshot else None)


def export_rows(
    session: Session, query: ExportQuery, target: Target, tell: Tell | None = None, stream: IO[bytes] | None = None
) -> int:
    """Writes the rows of a query to the target's file, or to `stream` if given; returns the row count."""
    if stream is None:
        check_outside(session.context.lake.location, os.path.abspath(target.path), "export to")
    rows = 0
    with session.run(query.text) as result:

        def counted() -> Iterator[pa.RecordBatch]:
            nonlocal rows
            for batch in result.to_batches():
                yield batch
                rows += batch.num_rows
                if tell is not None:
                    tell(rows, query.rows, rows)

        with _opened(target.path, stream) as file:
            _write(result, counted(), target, file)
    return rows


@contextlib.contextmanager
def _opened(path: str, stream: IO[bytes] | None) -> Iterator[IO[bytes]]:
    """A temporary file beside the target, which is renamed to it at the end."""
    if stream is not None:
        yield stream
        stream.flush()
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
        from lakelet.sql.files.csv_text import csv_lines  # noqa: PLC0415 - as above.

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
