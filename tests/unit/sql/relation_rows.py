"""Relations as rows of Python values, read as a query reads them."""

from typing import Any

import pyarrow as pa

from lakelet.catalog.lake import Lake
from lakelet.catalog.names import split_name
from lakelet.sql.context import Context
from lakelet.sql.query.relation import Relation, Rows
from lakelet.sql.system import system_relation
from lakelet.sql.system.version import Version
from lakelet.table.read.table_scan import TableScan


def arrow_of(relation: Relation) -> pa.Table:
    """All rows; checks that each column alone, and no column at all, give the same."""
    if isinstance(relation, TableScan):
        return relation.to_arrow()
    if not isinstance(relation, Rows):
        return relation
    whole = pa.Table.from_batches(relation.read(None, None), relation.schema)
    assert sum(batch.num_rows for batch in relation.read([], None)) == whole.num_rows
    for name in relation.schema.names:
        alone = pa.Table.from_batches(relation.read([name], None), pa.schema([relation.schema.field(name)]))
        assert alone.column(0).equals(whole.column(name))
    return whole


def system_rows(lake: Lake, name: str, **version: Any) -> list[dict[str, Any]]:
    """The rows of a system table such as d.t$files."""
    parts = split_name(name.split("."), "d")
    rows: list[dict[str, Any]] = arrow_of(system_relation(Context(lake), parts, Version(**version))).to_pylist()
    return rows
