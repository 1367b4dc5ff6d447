"""`PRAGMA table_info('orders')` and other pragmas that inspect tables, and `PRAGMA threads = 4`, which is SET, for programs that
know DuckDB; all others are refused."""

from __future__ import annotations

from lakelet.catalog.sql_result import SqlResult
from lakelet.sql.context import Context
from lakelet.sql.lexer.quotes import literal
from lakelet.sql.query.table_lists import tables_query
from lakelet.sql.statement import Statement
from lakelet.sql.statements.set import set_to_rest

_ABOUT_ONE = ("table_info", "show")
_PLAIN = {
    "show_tables": tables_query(),
    "show_databases": "SELECT database_name FROM duckdb_databases()",
    "database_list": "SELECT 0 AS seq, database_name AS name, path AS file FROM duckdb_databases()",
    "version": "FROM pragma_version()",
    "platform": "FROM pragma_platform()",
    "collations": "FROM pragma_collations()",
}


def run_pragma(context: Context, statement: Statement) -> SqlResult:
    """PRAGMA name, PRAGMA name('table'), PRAGMA name(table), PRAGMA setting = value."""
    reader = statement.reader
    reader.expect("PRAGMA")
    word = reader.peek()
    name = reader.name("the name of a pragma").lower()
    if reader.accept("="):
        context.profile.check_statement("SET")
        return set_to_rest(context, statement, name)
    if name in _PLAIN:
        reader.finish()
        return context.query(_PLAIN[name], None, statement.frames)
    if name in _ABOUT_ONE:
        arguments = reader.listed(lambda: reader.expression(","))
        reader.finish()
        argument = arguments[0]
        text = argument if argument.startswith("'") else literal(argument.replace("`", '"'))
        return context.query(f"FROM pragma_{name}({text})", None, statement.frames)
    raise reader.error(f"a pragma that looks at tables ({', '.join((*_ABOUT_ONE, *_PLAIN))})", word)
