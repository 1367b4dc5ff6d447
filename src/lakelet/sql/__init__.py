"""SQL: statements of Lakelet's own over words, queries on DuckDB, system tables and procedures."""

from lakelet.catalog.sql_result import SqlResult
from lakelet.sql.session import Session

__all__ = ["Session", "SqlResult"]
