"""System tables: the metadata of a table and of a lake, as tables to query.

    SELECT * FROM shop.orders$files          about a table
    SELECT * FROM sys.tables                 about the whole lake

Columns have the names, types and meanings of Paimon's. Nothing here writes; nothing here parses SQL.
"""

from lakelet.sql.system.global_tables import GLOBAL_TABLES, global_relation
from lakelet.sql.system.table_about import SYSTEM_TABLES, system_relation

__all__ = ["GLOBAL_TABLES", "SYSTEM_TABLES", "global_relation", "system_relation"]
