"""A session with an empty lake in a folder, and the database iceberg.shop in the lake's own catalog."""

from pathlib import Path

from lakelet.storage.open import open_store
from tests.unit.sql_session import SqlSession


def ice_session(folder: Path) -> SqlSession:
    """The session."""
    sql = SqlSession(open_store(str(folder), {}))
    sql.rows("CREATE DATABASE iceberg.shop")
    return sql
