"""Random operations on primary-key tables: a lookup handle serves the rows that the model holds, after every one of them.

The tables are those of `test_compacted_tables` and `test_keyed_tables`: all merge engines that select, every key type, deletes,
deletion vectors, schema evolution, fixed and dynamic buckets, compaction, expiry. Handles stay open and are refreshed.
"""

from __future__ import annotations

import tempfile
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from lakelet.format.sst.point_loops import row_loop, rows_loop, text_loop
from lakelet.table.read.table_lookup import TableLookup
from tests.property.served_rows import check_served
from tests.property.tables.test_compacted_tables import CompactedTables
from tests.property.tables.test_keyed_tables import KeyedTables
from tests.tiers.examples import examples

# The way of a process that has served many keys; unit tests have the other one too.
for _loop in (row_loop, rows_loop, text_loop):
    _loop.load_if_enabled()
_FOLDER = tempfile.TemporaryDirectory(prefix="lakelet-lookup-")


class _Served(KeyedTables):
    handles: dict[str, TableLookup]

    def _check(self, data: st.DataObject) -> None:
        super()._check(data)
        if not hasattr(self, "handles"):
            self.handles = {}
        for table in self.tables:
            handle = self.handles.get(table.name)
            if handle is None:
                handle = self.handles[table.name] = table.lookup(folder=_FOLDER.name)
            elif data.draw(st.booleans(), label="a new handle"):
                handle.close()
                handle = self.handles[table.name] = table.lookup(folder=_FOLDER.name)
            else:
                handle.refresh()
            check_served(table, handle, self._key_table(self._some_keys(data))(table))


class ServedKeyedTables(_Served):
    """Tables that are not compacted."""


class ServedCompactedTables(_Served, CompactedTables):
    """Tables that are."""


_SETTINGS: dict[str, Any] = {
    "stateful_step_count": 8,
    "deadline": None,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
}
TestServedKeyedTables = ServedKeyedTables.TestCase
TestServedKeyedTables.settings = settings(max_examples=examples(6), **_SETTINGS)
TestServedCompactedTables = ServedCompactedTables.TestCase
TestServedCompactedTables.settings = settings(max_examples=examples(6), **_SETTINGS)
