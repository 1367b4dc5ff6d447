"""Import files into a table, in one atomic commit and in bounded memory.

A table created for the import is dropped if the import fails: it has never held a row.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa

from lakelet.catalog.names import DEFAULT_DATABASE, matching, split_name
from lakelet.errors import InvalidError
from lakelet.model.schema import TableSchema
from lakelet.sql.engine.duck_types import duck_type
from lakelet.sql.files.csv_delimiter import detected_delimiter
from lakelet.sql.files.file_formats import Source, Tell
from lakelet.sql.files.text_values import read_type, value_sql
from lakelet.sql.lexer.errors import nearest
from lakelet.sql.session import Session
from lakelet.table import Table


@dataclass(frozen=True, slots=True)
class NewTable:
    """The definition of a new table, apart from its columns."""

    primary_key: tuple[str, ...]
    partitioned_by: tuple[str, ...]
    options: Mapping[str, str]


@dataclass(slots=True)
class _Count:
    rows: int = 0


@dataclass(frozen=True, slots=True)
class ImportFiles:
    """An import request: the files, the new table if one is created, and the write mode."""

    source: Source
    new: NewTable | None = None
    mode: str = "append"
    missing: str | None = None


@dataclass(frozen=True, slots=True)
class Imported:
    """The result of an import; the snapshot is None where there was no row."""

    table: str
    files: int
    rows: int
    snapshot_id: int | None


def import_files(session: Session, target: Table | str, request: ImportFiles, tell: Tell | None = None) -> Imported:
    """Writes all rows of the files into a table, or into a new one of that name, in one commit."""
    lake, source, count = session.context.lake, request.source, _Count()
    table = target if isinstance(target, Table) else _created(session, target, request.new, source)
    try:
        batches = _batches(session, source, table.schema, count, tell or _ignore_progress)
        snapshot = table.write(batches, mode=request.mode, missing=request.missing)
    except BaseException:
        if request.new is not None:
            lake.drop_table(table.name, if_exists=True)
        raise
    return Imported(table.name, len(source.paths), count.rows, snapshot.id if snapshot else None)


def _ignore_progress(done: float, total: float | None, rows: int) -> None:
    """Ignore progress."""


def _created(session: Session, name: str, new: NewTable | None, source: Source) -> Table:
    assert new is not None, "a table that is not there is made by a request that says how"
    asked = split_name(name.split("."), DEFAULT_DATABASE)
    if asked.branch is not None or asked.system is not None:
        raise InvalidError(f"{name!r}: a table that is made has a plain name, database.table")
    with session.run(f"{source.query()} LIMIT 0") as result:
        schema = result.schema
    session.context.ensure_database(asked.database)
    return session.context.lake.create_table(
        asked.full,
        pa.schema([_plain(field) for field in schema]),
        primary_key=new.primary_key,
        partitioned_by=new.partitioned_by,
        options=new.options,
    )


def _plain(field: pa.Field) -> pa.Field:
    """The table column for a column of the files, at every depth: JSON, UUID and columns of nothing but NULL become text,
    unsigned integers wider signed types."""
    return pa.field(field.name, _plain_type(field.type))


def _plain_type(kind: pa.DataType) -> pa.DataType:
    types = pa.types
    if isinstance(kind, pa.BaseExtensionType) or types.is_null(kind):
        return pa.string()
    if types.is_unsigned_integer(kind):
        return {8: pa.int16(), 16: pa.int32(), 32: pa.int64(), 64: pa.decimal128(20, 0)}[kind.bit_width]
    if types.is_struct(kind):
        return pa.struct([_plain(inner) for inner in kind])
    if types.is_map(kind):
        return pa.map_(_plain_type(kind.key_type), _plain_type(kind.item_type))
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return pa.list_(_plain_type(kind.value_type))
    return kind


def _batches(
    session: Session, source: Source, schema: TableSchema, count: _Count, tell: Tell
) -> Iterator[pa.RecordBatch]:
    """The rows of file after file; progress is reported in bytes."""
    original = source
    sizes = [source.bytes_of(path) for path in source.paths]
    known = [size for size in sizes if size is not None]
    total = float(sum(known)) if len(known) == len(sizes) else None
    done = 0.0
    for path, size in zip(source.paths, sizes, strict=True):
        source = original.separated_by(_delimiter(original, path, schema))
        row_bytes = source.row_bytes(path)
        rows = 0
        with _short_csv_errors(path), session.run(_query(session, source, path, schema)) as result:
            for batch in result.to_batches():
                rows += batch.num_rows
                count.rows += batch.num_rows
                inside = min(rows * row_bytes, size or 0) if row_bytes is not None else 0
                tell(done + inside, total, count.rows)
                yield batch.rename_columns([_column(name, schema) for name in batch.schema.names])
        done += size or 0
        tell(done, total, count.rows)


@contextmanager
def _short_csv_errors(path: str) -> Iterator[None]:
    """Shorten DuckDB's errors in CSV, which list all its settings, to the file, the line and the value."""
    try:
        yield
    except InvalidError as error:
        _, found, told = str(error).partition("CSV Error on Line: ")
        if not found:
            raise
        if "not utf-8 encoded" in told:
            raise InvalidError(f"{path} is not UTF-8: say its encoding, such as --encoding latin-1") from error
        parts = itertools.takewhile(lambda part: not part.startswith(("Column ", "Possible ")), told.split("; "))
        raise InvalidError(f"{path}, line {'; '.join(parts)}") from error


def _delimiter(source: Source, path: str, schema: TableSchema) -> str | None:
    """The delimiter of a CSV file: the given one, else the one detected from its header."""
    if source.format != "csv" or source.delimiter is not None:
        return source.delimiter
    there = [field.name for field in schema.fields]

    def is_record(record: Sequence[str]) -> bool:
        if not source.header:
            return len(record) == len(there)
        return all(matching(name, there) is not None for name in record)

    return detected_delimiter(path, is_record, quote=source.quote, encoding=source.encoding)


def _query(session: Session, source: Source, path: str, schema: TableSchema) -> str:
    """The query for the rows of a file, converted to the types of the table's columns."""
    with session.run(f"{source.query(path)} LIMIT 0") as result:
        names = result.columns
    if not source.has_names:
        if len(names) > len(schema.fields):
            raise InvalidError(f"{path} has {len(names)} columns, the table has {len(schema.fields)}")
        names = tuple(field.name for field in schema.fields[: len(names)])
    types = {name: schema.field(_column(name, schema)).type for name in names}
    if source.format == "parquet":
        return source.query(path, {name: duck_type(kind) for name, kind in types.items()})
    is_csv = source.format == "csv"
    return source.query(
        path,
        {name: read_type(kind, csv=is_csv) for name, kind in types.items()},
        {name: value_sql(name, kind, csv=is_csv) for name, kind in types.items()},
    )


def _column(name: str, schema: TableSchema) -> str:
    """The table's column of that name; InvalidError names the nearest."""
    there = [field.name for field in schema.fields]
    found = matching(name, there)
    if found is None:
        raise InvalidError(f"column {name!r} of the file is not in the table{nearest(name, there)}")
    return found
