"""`lakelet inspect file`: the manifest entry of a data file, and its footer."""

from __future__ import annotations

from typing import Any

from lakelet.cli.output.output import Output
from lakelet.clock import shown_time
from lakelet.errors import NotFoundError
from lakelet.format.data.parquet_file import open_parquet
from lakelet.format.data.sst_file import NAME as SST
from lakelet.format.data.sst_file import StoredSource, open_scan
from lakelet.format.rows.binary_row import decode_row
from lakelet.model.data_file import FILE_SOURCE_COMPACT, DataFile
from lakelet.model.schema import TableSchema
from lakelet.sql.lexer.errors import nearest
from lakelet.table import Table


def inspect_file(table: Table, output: Output, name: str) -> None:
    """The file of that name, which may be the end of its path: level, keys, schema, row groups, statistics."""
    path, file = _found(table, name)
    output.values(path, _described(file, table.schema))
    if path.endswith(f".{SST}"):
        _show_sst(table, output, path, file)
    if not path.endswith(".parquet"):
        return
    with open_parquet(table.home.store, path) as opened:
        footer: Any = opened.metadata
        output.values(
            "footer",
            {"created by": footer.created_by, "rows": footer.num_rows, "row groups": footer.num_row_groups},
        )
        columns = [footer.schema.column(place) for place in range(footer.num_columns)]
        output.rows(
            "schema",
            ("column", "physical type", "logical type"),
            [(column.path, column.physical_type, str(column.logical_type)) for column in columns],
        )
        output.rows(
            "row groups",
            ("group", "rows", "bytes", "column", "compressed", "codec", "nulls", "least", "greatest"),
            [row for group in range(footer.num_row_groups) for row in _group_rows(footer.row_group(group), group)],
        )


def _show_sst(table: Table, output: Output, path: str, file: DataFile) -> None:
    """The meta block of an SST file; `lakelet inspect sst` shows more, and reads all of it."""
    scan = open_scan(StoredSource(table.home.store, path, file.size))
    meta, bloom = scan.meta, scan.bloom
    output.values(
        "footer",
        {
            "rows": meta.row_count,
            "schema": meta.schema_id,
            "data blocks": len(scan.blocks),
            "compression": meta.compression,
            "delta encoding": meta.delta_encoding,
            "bloom filter": "none" if bloom is None else f"{bloom.total_bits} bits, {bloom.hash_count} hashes",
        },
    )
    columns = [(field.id, field.name, str(field.type)) for field in meta.fields]
    output.rows("schema", ("id", "column", "type"), columns)


def _found(table: Table, name: str) -> tuple[str, DataFile]:
    files = table.files()
    for path, file in files:
        if path == name or path.endswith(f"/{name}"):
            return path, file
    known = [file.name for _, file in files]
    raise NotFoundError(f"file {name!r} is none of the live files of {table.name}{nearest(name, known)}")


def _described(file: DataFile, schema: TableSchema) -> dict[str, object]:
    types = [field.type for field in schema.trimmed_key_fields]
    keys: dict[str, object] = {}
    if types and schema.primary_keys:
        names = [field.name for field in schema.trimmed_key_fields]
        for what, row in (("least key", file.min_key), ("greatest key", file.max_key)):
            values = decode_row(row, types)
            keys[what] = ", ".join(f"{name}={value}" for name, value in zip(names, values, strict=True))
    return {
        "level": file.level,
        "rows": file.row_count,
        "deletions": file.delete_row_count,
        "bytes": file.size,
        "schema": file.schema_id,
        **keys,
        "sequence": f"{file.min_sequence} to {file.max_sequence}",
        "made by": "compaction" if file.source == FILE_SOURCE_COMPACT else "a write",
        "made at": None if file.creation_ms is None else shown_time(file.creation_ms),
    }


def _group_rows(group: Any, number: int) -> list[tuple[object, ...]]:
    """A row for each column of a row group."""
    rows: list[tuple[object, ...]] = []
    for place in range(group.num_columns):
        column = group.column(place)
        known = column.statistics if column.is_stats_set else None
        bounds = (known.min, known.max) if known is not None and known.has_min_max else (None, None)
        nulls = known.null_count if known is not None and known.has_null_count else None
        rows.append(
            (
                number,
                group.num_rows,
                group.total_byte_size,
                column.path_in_schema,
                column.total_compressed_size,
                column.compression,
                nulls,
                *bounds,
            )
        )
    return rows
