"""Commands to a running service: `remote sql|write|get|delete|tables|create|drop|health`."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from lakelet.cli.call import Call, command, pairs_of
from lakelet.cli.commands.query import Form

app = typer.Typer(help="Talk to a running service (lakelet serve).", no_args_is_help=True)

UrlOption = Annotated[
    str,
    typer.Option(
        "--url", metavar="URL", envvar="LAKELET_URL", help="The address of the service. Its key is in LAKELET_API_KEY."
    ),
]
CaFileOption = Annotated[
    str | None,
    typer.Option("--ca-file", metavar="FILE", help="Certificates that an https:// address is checked by."),
]
CertificateOption = Annotated[
    str | None,
    typer.Option(
        "--certificate-file", metavar="FILE", help="The certificate of the client, where a service asks for one."
    ),
]
KeyOption = Annotated[str | None, typer.Option("--key-file", metavar="FILE", help="The key of that certificate.")]
TimeoutOption = Annotated[float, typer.Option("--timeout", metavar="SECONDS", help="How long an answer may take.")]
TableArgument = Annotated[str, typer.Argument(metavar="TABLE", help="The name of a served table.")]
IdArgument = Annotated[str, typer.Argument(metavar="ID", help="The id of records.")]
_URL, _SECONDS = "http://127.0.0.1:8080", 60.0


class Engine(StrEnum):
    """Where a query runs."""

    local = "local"
    spark = "spark"


@app.command("sql")
@command
def sql(
    call: Call,
    statement: Annotated[str, typer.Argument(help="A SELECT; - reads it from standard input.")],
    param: Annotated[
        list[str] | None,
        typer.Option("--param", "-p", metavar="NAME=VALUE", help="The value of $NAME; may be repeated."),
    ] = None,
    output: Annotated[Form, typer.Option("--output", "-t", help="How rows are written.")] = Form.table,
    limit: Annotated[
        int | None, typer.Option("--limit", min=0, help="The most rows to write, 0 for all; 100 for people.")
    ] = None,
    engine: Annotated[
        Engine | None, typer.Option("--engine", help="Where it runs; by default the service decides by what is read.")
    ] = None,
    url: UrlOption = _URL,
    ca_file: CaFileOption = None,
    certificate_file: CertificateOption = None,
    key_file: KeyOption = None,
    timeout: TimeoutOption = _SECONDS,
) -> None:
    """Run a SELECT, rows that are not committed yet included."""
    values = pairs_of(param, "--param", "NAME=VALUE")
    from lakelet.cli.remote_command import opened_client, run_query  # noqa: PLC0415 - loaded when it runs, as in all.

    form = "object" if call.output.for_programs else output.value
    with opened_client(url, timeout, ca_file, certificate_file, key_file) as client:
        where = None if engine is None else engine.value
        run_query(client, statement, values, form=form, limit=limit, engine=where)


@app.command("write")
@command
def write(
    call: Call,
    table: TableArgument,
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="NDJSON, a JSON array, Arrow or Parquet; - reads NDJSON.")
    ] = "-",
    partial: Annotated[
        bool, typer.Option("--partial", help="Report records that are invalid and write the others.")
    ] = False,
    batch_rows: Annotated[
        int, typer.Option("--batch-rows", metavar="N", min=1, help="The most records of one request.")
    ] = 10_000,
    url: UrlOption = _URL,
    ca_file: CaFileOption = None,
    certificate_file: CertificateOption = None,
    key_file: KeyOption = None,
    timeout: TimeoutOption = _SECONDS,
) -> None:
    """Write records of a file: id, timestamp and payload."""
    from lakelet.cli.remote_command import opened_client, write_file  # noqa: PLC0415

    with opened_client(url, timeout, ca_file, certificate_file, key_file) as client:
        write_file(call, client, table, file, partial=partial, batch_rows=batch_rows)


@app.command("get")
@command
def get(
    call: Call,
    table: TableArgument,
    id: IdArgument,
    url: UrlOption = _URL,
    ca_file: CaFileOption = None,
    certificate_file: CertificateOption = None,
    key_file: KeyOption = None,
    timeout: TimeoutOption = _SECONDS,
) -> None:
    """Show the records of an id."""
    from lakelet.cli.remote_command import opened_client, show_records  # noqa: PLC0415

    with opened_client(url, timeout, ca_file, certificate_file, key_file) as client:
        show_records(call, client, table, id)


@app.command("delete")
@command
def delete(
    call: Call,
    table: TableArgument,
    id: IdArgument,
    url: UrlOption = _URL,
    ca_file: CaFileOption = None,
    certificate_file: CertificateOption = None,
    key_file: KeyOption = None,
    timeout: TimeoutOption = _SECONDS,
) -> None:
    """Delete the records of an id."""
    from lakelet.cli.remote_command import opened_client  # noqa: PLC0415

    with opened_client(url, timeout, ca_file, certificate_file, key_file) as client:
        call.output.values(f"deleted from {table}", {"records": client.delete(table, id)})


@app.command("tables")
@command
def tables(
    call: Call,
    pattern: Annotated[str, typer.Argument(metavar="PATTERN", help="Names, with * and ?; all by default.")] = "",
    url: UrlOption = _URL,
    ca_file: CaFileOption = None,
    certificate_file: CertificateOption = None,
    key_file: KeyOption = None,
    timeout: TimeoutOption = _SECONDS,
) -> None:
    """List served tables."""
    from lakelet.cli.remote_command import list_served, opened_client  # noqa: PLC0415

    with opened_client(url, timeout, ca_file, certificate_file, key_file) as client:
        list_served(call, client, pattern)


@app.command("create")
@command
def create(
    call: Call,
    table: TableArgument,
    property: Annotated[
        list[str] | None,
        typer.Option("--property", metavar="KEY=VALUE", help="A property of the table; may be repeated."),
    ] = None,
    if_not_exists: Annotated[bool, typer.Option("--if-not-exists", help="Do nothing where the table exists.")] = False,
    url: UrlOption = _URL,
    ca_file: CaFileOption = None,
    certificate_file: CertificateOption = None,
    key_file: KeyOption = None,
    timeout: TimeoutOption = _SECONDS,
) -> None:
    """Create a table, or serve one that exists (--property attach=true)."""
    properties = pairs_of(property, "--property", "KEY=VALUE")
    from lakelet.cli.remote_command import opened_client, show_table  # noqa: PLC0415

    with opened_client(url, timeout, ca_file, certificate_file, key_file) as client:
        show_table(call, client.create_table(table, properties=properties, if_not_exists=if_not_exists))


@app.command("drop")
@command
def drop(
    call: Call,
    table: TableArgument,
    if_exists: Annotated[bool, typer.Option("--if-exists", help="Do nothing where there is no such table.")] = False,
    cascade: Annotated[bool, typer.Option("--cascade", help="Delete the files of the table, too.")] = False,
    url: UrlOption = _URL,
    ca_file: CaFileOption = None,
    certificate_file: CertificateOption = None,
    key_file: KeyOption = None,
    timeout: TimeoutOption = _SECONDS,
) -> None:
    """Stop serving a table; its files stay unless --cascade is given."""
    from lakelet.cli.remote_command import opened_client  # noqa: PLC0415

    with opened_client(url, timeout, ca_file, certificate_file, key_file) as client:
        deleted = client.drop_table(table, if_exists=if_exists, cascade=cascade)
    call.output.values(f"dropped {table}", {"files deleted": deleted})


@app.command("health")
@command
def health(
    call: Call,
    url: UrlOption = _URL,
    ca_file: CaFileOption = None,
    certificate_file: CertificateOption = None,
    key_file: KeyOption = None,
    timeout: TimeoutOption = _SECONDS,
) -> None:
    """Show the state of the service."""
    from lakelet.cli.remote_command import opened_client  # noqa: PLC0415

    with opened_client(url, timeout, ca_file, certificate_file, key_file) as client:
        found = client.health()
    call.output.values(client.address, {"status": found.status, **found.details})
