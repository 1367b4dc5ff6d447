"""`REFRESH TABLE t`, `REFRESH DATABASE d`, `REFRESH CATALOG c`: have the metadata cache look what others have changed.

Under strict staleness every query looks by itself, and a refresh changes nothing for it.
"""

from __future__ import annotations

from lakelet.catalog.sql_result import SqlResult
from lakelet.operations.metadata_cache import refresh_catalog, refresh_database, refresh_table
from lakelet.sql.context import Context
from lakelet.sql.statement import Statement
from lakelet.sql.statements.text.clauses import placed
from lakelet.sql.statements.text.given_table import read_database, read_table


def run_refresh(context: Context, statement: Statement) -> SqlResult:
    """REFRESH in all its forms."""
    reader = statement.reader
    reader.expect("REFRESH")
    what = reader.one_of("TABLE", "DATABASE", "SCHEMA", "CATALOG")
    if what == "TABLE":
        given = read_table(context, reader)
        reader.finish()
        table = given.open()
        with placed(reader, given.word):
            found = refresh_table(context.lake, table)
        changed = [
            name for name, did in (("snapshot", found.snapshot_changed), ("schema", found.schema_changed)) if did
        ]
        return SqlResult.done(f"refreshed {given.shown}: {' and '.join(changed) or 'nothing'} changed")
    word = reader.peek()
    if what == "CATALOG":
        name = reader.name("the name of a catalog")
        reader.finish()
        with placed(reader, word):
            return SqlResult.done(f"refreshed {refresh_catalog(context.lake, name)} tables of catalog {name}")
    database = read_database(context, reader)
    reader.finish()
    return SqlResult.done(f"refreshed {refresh_database(context.lake, database)} tables of database {database}")
