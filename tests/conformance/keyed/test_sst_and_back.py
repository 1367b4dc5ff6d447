"""A table that had SST files opens in Java Paimon and pypaimon again after a full compaction to Parquet."""

from __future__ import annotations

import pytest

from tests.conformance.keyed.test_keyed_modes import COLUMNS, LAYOUTS, rows
from tests.conformance.keyed_tables import KeyedTable
from tests.conformance.tables import JAVA, LAKELET, Warehouse


def compact(made: KeyedTable) -> None:
    """By Lakelet: no other engine reads these files."""
    made.table.compact(full=True)
    made.model.compacted()
    made.note()


@pytest.mark.parametrize("layout", list(LAYOUTS)[:2])
@pytest.mark.parametrize("compacted", [False, True])
def test_sst_and_back(warehouse: Warehouse, layout: str, compacted: bool) -> None:
    made = KeyedTable(warehouse, LAKELET, "t", COLUMNS, ["id", "p"], **{"partitioned_by": [], **LAYOUTS[layout]})
    made.write(JAVA, rows(range(20), 0))
    made.table.set_options({"file.format": "sst"})
    made.write(LAKELET, rows(range(10, 30), 1))
    made.write(LAKELET, rows(range(5, 12), 2))
    if compacted:
        compact(made)
    assert any(file.name.endswith(".sst") for _, file in made.table.files())
    made.table.set_options({"file.format": "parquet"})
    compact(made)
    assert all(file.name.endswith(".parquet") for _, file in made.table.files())
    made.check()
    made.write(JAVA, rows(range(3, 8), 3))
    made.check()
