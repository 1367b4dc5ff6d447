"""`lakelet cdc sync|replay`: their signatures and help."""

from __future__ import annotations

from typing import Annotated

import typer

from lakelet.cli.call import Call, command, pairs_of

app = typer.Typer(help="Apply change events of databases (Debezium, Canal, Maxwell).", no_args_is_help=True)

FormatOption = Annotated[str, typer.Option("--format", help="debezium, canal or maxwell.")]
TableOption = Annotated[str | None, typer.Option("--table", metavar="DATABASE.TABLE", help="All events go here.")]
DatabaseOption = Annotated[
    str | None, typer.Option("--database", metavar="NAME", help="The events of each table go to one of its name here.")
]
KeyOption = Annotated[
    str | None, typer.Option("--primary-key", metavar="COLUMNS", help="The key of new tables, where no event tells it.")
]
SettingOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="Any other argument of ls.sync_cdc, such as excluding=tmp_.*; may be repeated.",
    ),
]
TableSettingOption = Annotated[
    list[str] | None,
    typer.Option("--table-option", metavar="KEY=VALUE", help="An option of new tables; may be repeated."),
]
MasterOption = Annotated[
    str | None, typer.Option("--master", metavar="URL", help="Spark's master; this machine by default.")
]
ConfOption = Annotated[
    list[str] | None, typer.Option("--conf", metavar="KEY=VALUE", help="A setting of Spark; may be repeated.")
]


@app.command("sync")
@command
def sync(
    call: Call,
    source: Annotated[
        str | None, typer.Argument(metavar="[PATH]", help="A folder of files with an event a line.", show_default=False)
    ] = None,
    kafka: Annotated[
        str | None, typer.Option("--kafka", metavar="HOST:PORT", help="Read from these brokers rather than files.")
    ] = None,
    topic: Annotated[str | None, typer.Option("--topic", metavar="NAMES", help="Topics of Kafka: a,b.")] = None,
    checkpoint: Annotated[
        str | None,
        typer.Option("--checkpoint", metavar="FOLDER", help="How far it came is kept here; needed for Kafka."),
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", help="Go on until stopped, rather than take what is there.")
    ] = False,
    format: FormatOption = "debezium",
    table: TableOption = None,
    database: DatabaseOption = None,
    primary_key: KeyOption = None,
    set_: SettingOption = None,
    table_option: TableSettingOption = None,
    master: MasterOption = None,
    conf: ConfOption = None,
) -> None:
    """Keep tables as those of a source database are, from files or Kafka topics of its change events."""
    from lakelet.cli.cdc_command import CdcCall, sync_command  # noqa: PLC0415 - loaded when it runs, as in all commands.

    asked = CdcCall(
        call,
        {"format": format, "table": table, "database": database, "primary_key": primary_key},
        pairs_of(set_, "--set", "NAME=VALUE"),
        pairs_of(table_option, "--table-option", "KEY=VALUE"),
        master,
        pairs_of(conf, "--conf", "KEY=VALUE"),
    )
    sync_command(asked, source, kafka, topic, checkpoint, follow=follow)


@app.command("replay")
@command
def replay(
    call: Call,
    overwrite: Annotated[
        bool,
        typer.Option("--overwrite", help="Replayed events win over newer rows of tables without a sequence.field."),
    ] = False,
    format: FormatOption = "debezium",
    table: TableOption = None,
    database: DatabaseOption = None,
    primary_key: KeyOption = None,
    set_: SettingOption = None,
    table_option: TableSettingOption = None,
    master: MasterOption = None,
    conf: ConfOption = None,
) -> None:
    """Apply the events of the quarantine that can be applied now; the others stay there."""
    from lakelet.cli.cdc_command import CdcCall, replay_command  # noqa: PLC0415

    asked = CdcCall(
        call,
        {"format": format, "table": table, "database": database, "primary_key": primary_key},
        pairs_of(set_, "--set", "NAME=VALUE"),
        pairs_of(table_option, "--table-option", "KEY=VALUE"),
        master,
        pairs_of(conf, "--conf", "KEY=VALUE"),
    )
    replay_command(asked, overwrite=overwrite)
