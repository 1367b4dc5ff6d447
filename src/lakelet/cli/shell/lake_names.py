"""The names of a lake for completion, cached until the next statement has run: listings of S3 are slow."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lakelet.cli.shell.backslash import BACKSLASHES
from lakelet.cli.shell.statement_run import Shell
from lakelet.errors import LakeletError


class KeptNames:
    """Names listed at most once per statement. What cannot be read has no names: completion reports no errors."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell
        self._kept: dict[object, Sequence[str]] = {}

    def forget(self) -> None:
        """Clear the cache, for statements create and drop tables."""
        self._kept.clear()

    @property
    def database(self) -> str:
        """The database in use."""
        return self._shell.database

    def databases(self) -> Sequence[str]:
        """The names of databases."""
        return self._keep("databases", self._shell.lake.databases)

    def tables(self, database: str) -> Sequence[str]:
        """The names of a database's tables."""
        return self._keep(("tables", database), lambda: self._shell.lake.tables(database))

    def columns(self, parts: Sequence[str]) -> Sequence[str]:
        """The names of a table's columns."""
        return self._keep(
            ("columns", tuple(parts)),
            lambda: [field.name for field in self._shell.session.context.table(parts).schema.fields],
        )

    def procedures(self) -> Sequence[str]:
        """The names of procedures."""
        from lakelet.sql.procedures import PROCEDURES  # noqa: PLC0415 - it loads much, and few type CALL.

        return [f"sys.{name}(" for name in PROCEDURES]

    def system_tables(self) -> Sequence[str]:
        """The names of system tables, without branches."""
        from lakelet.sql.system import SYSTEM_TABLES  # noqa: PLC0415 - as above.

        return list(SYSTEM_TABLES)

    def backslashes(self) -> Sequence[str]:
        """The shell's own commands."""
        return list(BACKSLASHES)

    def _keep(self, key: object, read: Callable[[], Sequence[str]]) -> Sequence[str]:
        if key not in self._kept:
            try:
                self._kept[key] = read()
            except LakeletError:
                self._kept[key] = ()
        return self._kept[key]
