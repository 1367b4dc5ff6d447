"""SQL profiles: what the statements of a session may do.

    Session(lake)                  LOCAL: everything, for texts as trusted as the program itself
    Session(lake, RESTRICTED)      queries over the lake's own tables and nothing else, for texts of others

A profile is a set of allow-lists. Statements are recognised by their first word. Everything that DuckDB runs is parsed by DuckDB
first, and every node and function of the tree must be on the lists; a text without a parse tree (PIVOT) is refused. The
engine of a session without file access has external access off as well, for all but the folder of the lake: a query that passes
the lists by a defect of ours still reads no other file and reaches no address.

Every refusal is a PermissionDeniedError that says what is refused. The profile is no limit on time, memory or rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lakelet.errors import PermissionDeniedError
from lakelet.sql.query.parse_tree import Node, references
from lakelet.sql.query.tree_check import TreeCheck
from lakelet.sql.views.functions import ALLOWED, TABLES

Words = frozenset[str]


@dataclass(frozen=True, slots=True)
class SqlProfile:
    """The permissions of a session; None is no limit.

    `statements` are first words of statements, `functions` and `table_functions` those a query may call, `settings` those
    that SET and RESET may change. `file_access`: files, addresses and DuckDB's own catalog tables may be named. `variables`:
    data frames of the calling code may be named; those passed as `frames` always may. `system_tables`: tables about
    tables, which show paths. `catalogs`: tables of Iceberg catalogs, which are elsewhere.
    """

    name: str
    statements: Words | None = None
    functions: Words | None = None
    table_functions: Words = TABLES
    settings: Words | None = None
    file_access: bool = True
    variables: bool = True
    system_tables: bool = True
    catalogs: bool = True

    def check_statement(self, keyword: str) -> None:
        """Refuses a statement by its first word."""
        if self.statements is not None and keyword not in self.statements:
            raise self._refused(f"the statement {keyword}")

    def check_setting(self, name: str) -> None:
        """Refuses a setting that is not listed."""
        if self.settings is not None and name.lower() not in {known.lower() for known in self.settings}:
            raise self._refused(f"the setting {name!r}")

    def check_system_table(self, name: str) -> None:
        """Refuses system tables."""
        if not self.system_tables:
            raise self._refused(f"the system table {name!r}")

    def check_catalog(self, name: str) -> None:
        """Refuses tables of Iceberg catalogs."""
        if not self.catalogs:
            raise self._refused(f"{name!r}, a table of a catalog,")

    def check_query(self, tree: Node) -> None:
        """Refuses a parsed query with a node or function that is not allowed."""
        if self.functions is None:
            return
        if not tree.get("error"):
            self._tree_check().check(tree.get("statements", []))
        elif tree.get("error_type") != "parser":
            # A syntax error is reported with its position by the caller.
            raise self._refused("a query that is several statements to DuckDB, such as PIVOT")

    def check_value(self, expression: str, tree_of: Callable[[str], Node]) -> None:
        """Refuses an expression that DuckDB is to evaluate before the query around it; `tree_of` parses."""
        if self.functions is None:
            return
        tree = tree_of(f"SELECT {expression}")
        if tree.get("error"):
            raise self._refused(f"the value {expression!r}")
        self.check_query(tree)
        for reference in references(tree):
            raise self._refused(f"the table {'.'.join(reference.parts)!r} in a value")

    def check_outside(self, parts: Sequence[str]) -> None:
        """Refuses a name outside the lake: a file, an address, or something of DuckDB's own."""
        if not self.file_access:
            raise self._refused(f"{'.'.join(parts)!r}, which is not in the lake,")

    def engine_settings(self, location: str) -> dict[str, str]:
        """The settings of an open DuckDB instance that restrict its file access to a lake at `location`."""
        if self.file_access:
            return {}
        folders = f"['{location.replace(chr(39), chr(39) * 2)}']" if location.startswith("/") else "[]"
        return {"allowed_directories": folders, "enable_external_access": "false"}

    def _tree_check(self) -> TreeCheck:
        assert self.functions is not None
        return TreeCheck(
            self.functions,
            self.table_functions,
            self._refused,
            lambda function: self._refused(f"the function {function}()"),
            frozenset(("PARAMETER",)),
        )

    def _refused(self, what: str) -> PermissionDeniedError:
        return PermissionDeniedError(f"{what} is not allowed by the SQL profile {self.name!r}")


LOCAL = SqlProfile("local")
RESTRICTED = SqlProfile(
    "restricted",
    statements=frozenset(("SELECT", "WITH", "FROM", "VALUES", "TABLE", "(", "USE", "SET", "RESET")),
    functions=ALLOWED,
    settings=frozenset(("TimeZone",)),
    file_access=False,
    variables=False,
    system_tables=False,
    catalogs=False,
)
