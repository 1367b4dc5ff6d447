"""Tables that UPDATE, DELETE and MERGE are tried on."""

from typing import Any

from lakelet import Table
from tests.unit.sql_session import SqlSession

COLUMNS = [("id", "INT NOT NULL"), ("p", "STRING"), ("v", "BIGINT"), ("s", "STRING")]
# Every kind of table whose rows can be changed.
LAYOUTS: dict[str, dict[str, Any]] = {
    "append": {},
    "partitioned": {"partitioned_by": ["p"]},
    "append_vectors": {"options": {"deletion-vectors.enabled": "true"}},
    "fixed": {"primary_key": ["id"], "options": {"bucket": "2"}},
    "dynamic": {"primary_key": ["id", "p"], "partitioned_by": ["p"]},
    "crossing": {"primary_key": ["id"], "partitioned_by": ["p"]},
    "vectors": {"primary_key": ["id"], "options": {"bucket": "2", "deletion-vectors.enabled": "true"}},
}
KEYED = ("fixed", "dynamic", "crossing", "vectors")
START = [(1, "a", 10, "one"), (2, "b", 20, "two"), (3, "a", 30, None), (4, "b", None, "four"), (5, "a", 50, "five")]


def filled(sql: SqlSession, layout: str, name: str = "default.t", **options: str) -> Table:
    """A table of five rows in two commits."""
    database = name.split(".", maxsplit=1)[0]
    if database not in sql.lake.databases():
        sql.lake.create_database(database)
    arguments = dict(LAYOUTS[layout])
    arguments["options"] = {**arguments.get("options", {}), **options}
    table = sql.lake.create_table(name, COLUMNS, **arguments)
    for part in (START[:3], START[3:]):
        table.write([dict(zip(("id", "p", "v", "s"), row, strict=True)) for row in part])
    return table


def rows(sql: SqlSession, name: str = "t") -> list[tuple[Any, ...]]:
    """The rows of a table in order."""
    return sql.rows(f"SELECT * FROM {name} ORDER BY ALL")


def values(sql: SqlSession, name: str = "t") -> dict[int, int | None]:
    """The column v by id."""
    return dict(sql.rows(f"SELECT id, v FROM {name} ORDER BY ALL"))
