"""SQL: parsers of Lakelet's own statements, queries on DuckDB, system tables and procedures."""

from lakelet.catalog.sql_result import SqlResult
from lakelet.sql.profile import LOCAL, RESTRICTED, SqlProfile
from lakelet.sql.session import Session

__all__ = ["LOCAL", "RESTRICTED", "Session", "SqlProfile", "SqlResult"]
