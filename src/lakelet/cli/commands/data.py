"""`lakelet import` and `lakelet export`."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from lakelet.cli.call import Call, command, pairs_of
from lakelet.cli.parameters import TableArgument, table_names


class FileFormat(StrEnum):
    """The format of a file; those of `file_formats`."""

    csv = "csv"
    json = "json"
    ndjson = "ndjson"
    parquet = "parquet"


class Mode(StrEnum):
    """The write mode: what happens to existing rows."""

    append = "append"
    overwrite = "overwrite"
    overwrite_partitions = "overwrite_partitions"


class Missing(StrEnum):
    """How an upsert treats columns that the files lack; the policies of `sink.missing_columns`."""

    error = "error"
    default = "default"
    keep = "keep"


class Compression(StrEnum):
    """How a file is compressed."""

    none = "none"
    gzip = "gzip"
    zstd = "zstd"
    snappy = "snappy"


FormatOption = Annotated[
    FileFormat | None, typer.Option("--format", help="What the files are; by default as their names end.")
]
DelimiterOption = Annotated[
    str | None, typer.Option("--delimiter", help="What separates values in CSV.", metavar="SIGN")
]


NullOption = Annotated[
    str | None, typer.Option("--null", metavar="TEXT", help="The text of NULL in CSV; nothing by default.")
]


@command
def import_(
    call: Call,
    table: TableArgument,
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILES...", help="Files, or patterns such as 'orders-*.csv'.", show_default=False),
    ],
    create: Annotated[bool, typer.Option("--create", help="Make the table from what the files hold.")] = False,
    primary_key: Annotated[
        str | None, typer.Option("--primary-key", metavar="COLUMNS", help="Its primary key, with --create: a,b.")
    ] = None,
    partitioned_by: Annotated[
        str | None,
        typer.Option("--partitioned-by", metavar="COLUMNS", help="What it is partitioned by, with --create."),
    ] = None,
    table_option: Annotated[
        list[str] | None,
        typer.Option(
            "--table-option", metavar="KEY=VALUE", help="An option of the table, with --create; may be repeated."
        ),
    ] = None,
    mode: Annotated[Mode, typer.Option("--mode", help="What happens to the rows that are there.")] = Mode.append,
    missing: Annotated[
        Missing | None,
        typer.Option(
            "--missing", help="What an upsert does about columns that the files lack; by default what the table says."
        ),
    ] = None,
    format: FormatOption = None,
    delimiter: DelimiterOption = None,
    header: Annotated[
        bool, typer.Option("--header/--no-header", help="Whether the first line of CSV has names.")
    ] = True,
    null: NullOption = None,
    quote: Annotated[str, typer.Option("--quote", metavar="SIGN", help="What encloses values in CSV.")] = '"',
    escape: Annotated[
        str | None,
        typer.Option("--escape", metavar="SIGN", help="The sign before a quote in a value; by default a quote."),
    ] = None,
    encoding: Annotated[
        str, typer.Option("--encoding", metavar="NAME", help="How CSV is encoded: utf-8, latin-1 or utf-16.")
    ] = "utf-8",
) -> None:
    """Load files into a table in one atomic commit: CSV, JSON, NDJSON, Parquet."""
    if not create and (primary_key or partitioned_by or table_option):
        raise typer.BadParameter("the table's keys and options are given with --create only", param_hint="'--create'")
    options = pairs_of(table_option, "--table-option", "KEY=VALUE")
    from lakelet.cli.import_command import run_import  # noqa: PLC0415 - loaded when it runs, as in all commands.
    from lakelet.sql.files.file_formats import Source  # noqa: PLC0415
    from lakelet.sql.files.import_files import ImportFiles, NewTable  # noqa: PLC0415

    source = Source.of(
        files,
        format.value if format else None,
        delimiter=delimiter,
        header=header,
        null=null,
        quote=quote,
        escape=escape,
        encoding=encoding,
    )
    new = NewTable(_names(primary_key), _names(partitioned_by), options) if create else None
    run_import(call, table, ImportFiles(source, new, mode.value, missing and missing.value))


@command
def export(
    call: Call,
    source: Annotated[
        str,
        typer.Argument(
            metavar="TABLE|QUERY", help="A table, or a query in quotes.", autocompletion=table_names, show_default=False
        ),
    ],
    file: Annotated[str, typer.Argument(help="The file to write; - is standard output.", show_default=False)],
    format: FormatOption = None,
    compression: Annotated[
        Compression | None,
        typer.Option(
            "--compression", help="By default zstd for Parquet, and as the name ends (.gz, .zst) for the rest."
        ),
    ] = None,
    delimiter: DelimiterOption = None,
    header: Annotated[bool, typer.Option("--header/--no-header", help="Whether CSV begins with the names.")] = True,
    null: NullOption = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a file that is there.")] = False,
) -> None:
    """Write a table or the rows of a query to a file: CSV, JSON, NDJSON, Parquet."""
    from lakelet.cli.export_command import run_export  # noqa: PLC0415
    from lakelet.sql.files.export import Target  # noqa: PLC0415

    target = Target.of(
        file,
        format.value if format else None,
        compression.value if compression else None,
        delimiter=delimiter,
        header=header,
        null=null,
        overwrite=overwrite,
    )
    run_export(call, source, target)


def _names(text: str | None) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip()) if text else ()
