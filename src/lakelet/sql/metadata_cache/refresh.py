"""`REFRESH TABLE t`, `REFRESH DATABASE d`, `REFRESH CATALOG c`: have the metadata cache look what others have changed.

Under strict staleness every query looks by itself, and a refresh changes nothing for it.
"""

from __future__ import annotations

from lakelet.cache.coordinator import Refreshed
from lakelet.catalog.sql_result import SqlResult
from lakelet.operations.metadata_cache import refresh_catalog, refresh_database, refresh_table
from lakelet.sql.context import Context
from lakelet.sql.iceberg.hooks import at_iceberg, iceberg_handler
from lakelet.sql.statement import Statement
from lakelet.sql.statements.text.clauses import placed
from lakelet.sql.statements.text.given_table import read_database, read_table


def run_refresh(context: Context, statement: Statement) -> SqlResult:
    """REFRESH in all its forms."""
    reader = statement.reader
    reader.expect("REFRESH")
    what = reader.one_of("TABLE", "DATABASE", "SCHEMA", "CATALOG")
    if what == "TABLE" and at_iceberg(reader):
        return iceberg_handler(context, "refresh:run_refresh_table")(context, statement)
    if what == "TABLE":
        given = read_table(context, reader)
        reader.finish()
        table = given.open()
        with placed(reader, given.word):
            return refreshed(given.shown, refresh_table(context.lake, table))
    word = reader.peek()
    if what == "CATALOG":
        name = reader.name("the name of a catalog")
        reader.finish()
        with placed(reader, word):
            return SqlResult.done(f"refreshed {refresh_catalog(context.lake, name)} tables of catalog {name}")
    if at_iceberg(reader, parts=2):
        return iceberg_handler(context, "refresh:run_refresh_database")(context, statement)
    database = read_database(context, reader)
    reader.finish()
    return SqlResult.done(f"refreshed {refresh_database(context.lake, database)} tables of database {database}")


def refreshed(shown: str, found: Refreshed) -> SqlResult:
    """What a refresh of a table found."""
    changed = [name for name, did in (("snapshot", found.snapshot_changed), ("schema", found.schema_changed)) if did]
    return SqlResult.done(f"refreshed {shown}: {' and '.join(changed) or 'nothing'} changed")
