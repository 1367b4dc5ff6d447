"""`lakelet COMMAND …`: parses the command line and maps errors to exit codes.

0  done        1  an error of Lakelet, shown with its kind        2  the command line makes no sense
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence

from lakelet.catalog import connect
from lakelet.cli.demo import run_demo
from lakelet.cli.demo_engines import ENGINES
from lakelet.cli.inspecting import list_tables, show_table
from lakelet.cli.maintaining import compact_table, expire_table, remove_orphans
from lakelet.cli.output import ConsoleOutput, JsonOutput, Output
from lakelet.errors import LakeletError
from lakelet.table import Table

Handler = Callable[[argparse.Namespace, Output], None]


def _demo(arguments: argparse.Namespace, output: Output) -> None:
    run_demo(arguments.warehouse, _options(arguments), output, rows=arguments.rows, engine=arguments.engine)


def _tables(arguments: argparse.Namespace, output: Output) -> None:
    list_tables(connect(arguments.warehouse, _options(arguments)), output, arguments.database)


def _inspect(arguments: argparse.Namespace, output: Output) -> None:
    lake = connect(arguments.warehouse, _options(arguments))
    show_table(lake.table(arguments.table), output, arguments.what)


def _compact(arguments: argparse.Namespace, output: Output) -> None:
    partition = dict(pair.split("=", 1) for pair in arguments.partition) or None
    compact_table(_table(arguments), output, full=arguments.full, partition=partition)


def _expire(arguments: argparse.Namespace, output: Output) -> None:
    expire_table(
        _table(arguments),
        output,
        retain_last=arguments.retain_last,
        older_than=arguments.older_than,
        dry_run=arguments.dry_run,
    )


def _orphans(arguments: argparse.Namespace, output: Output) -> None:
    remove_orphans(_table(arguments), output, older_than=arguments.older_than, dry_run=arguments.dry_run)


def _table(arguments: argparse.Namespace) -> Table:
    return connect(arguments.warehouse, _options(arguments)).table(arguments.table)


def _options(arguments: argparse.Namespace) -> dict[str, str]:
    return dict(pair.split("=", 1) for pair in arguments.option)


def _parser() -> argparse.ArgumentParser:
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--warehouse", default="./warehouse", help="folder or s3:// address (default: %(default)s)")
    shared.add_argument(
        "--option", action="append", default=[], metavar="KEY=VALUE", help="a connection option such as s3.endpoint"
    )
    shared.add_argument("--json", action="store_true", help="print JSON, one object a line")
    parser = argparse.ArgumentParser(
        prog="lakelet", description="A lakehouse in Python on Apache Paimon's table format."
    )
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def add(name: str, handler: Handler, text: str) -> argparse.ArgumentParser:
        command = subparsers.add_parser(name, parents=[shared], help=text, description=text)
        command.set_defaults(handler=handler)
        return command

    demo = add("demo", _demo, "Run the main job on made-up orders: ingest, query, change, travel back in time.")
    demo.add_argument("--rows", type=int, default=200_000, help="how many orders to make up (default: %(default)s)")
    demo.add_argument(
        "--engine", choices=ENGINES, default=ENGINES[0], help="who loads and upserts (default: %(default)s)"
    )
    tables = add("tables", _tables, "List the tables of a database, or of all.")
    tables.add_argument("database", nargs="?", help="only this database")
    inspect = add("inspect", _inspect, "Show a table's schema, snapshots, files, options, tags or branches.")
    inspect.add_argument("table", help="database.table")
    inspect.add_argument(
        "what", nargs="?", default="schema", choices=("schema", "snapshots", "files", "options", "tags", "branches")
    )
    compact = add("compact", _compact, "Rewrite a table's files into fewer ones, as its options say is due.")
    compact.add_argument("table", help="database.table")
    compact.add_argument("--full", action="store_true", help="merge all there is")
    compact.add_argument(
        "--partition", action="append", default=[], metavar="COLUMN=VALUE", help="only partitions with this value"
    )
    expire = add("expire", _expire, "Let go of old snapshots and of the files that only they need.")
    expire.add_argument("table", help="database.table")
    expire.add_argument("--retain-last", type=int, metavar="N", help="keep so many snapshots whatever their age")
    expire.add_argument("--older-than", metavar="AGE", help="let go only of what is older, such as 1d or 12h")
    expire.add_argument("--dry-run", action="store_true", help="only say what would go")
    orphans = add("orphans", _orphans, "Remove files that nothing points at.")
    orphans.add_argument("table", help="database.table")
    orphans.add_argument(
        "--older-than",
        default="1d",
        metavar="AGE",
        help="spare younger files, which may be on their way (default: %(default)s)",
    )
    orphans.add_argument("--dry-run", action="store_true", help="only say what would go")
    return parser


def commands() -> list[str]:
    """The names of all commands."""
    actions = [action for action in _parser()._actions if isinstance(action, argparse._SubParsersAction)]
    return sorted(actions[0].choices)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code."""
    parser = _parser()
    arguments = parser.parse_args(argv)
    if any("=" not in pair for pair in arguments.option):
        parser.error("--option takes KEY=VALUE")
    if any("=" not in pair for pair in getattr(arguments, "partition", ())):
        parser.error("--partition takes COLUMN=VALUE")
    output: Output = JsonOutput() if arguments.json else ConsoleOutput()
    try:
        arguments.handler(arguments, output)
    except LakeletError as error:
        output.error(type(error).__name__, str(error))
        return 1
    return 0
