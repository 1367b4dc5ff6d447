"""`$ro`: the rows that can be read without merging.

For a primary-key table these are the files of the topmost level, which a full compaction writes: the rows as of then, read as
fast as those of an append table. Append tables are read whole.
"""

from __future__ import annotations

from dataclasses import replace

from lakelet.lsm.universal import UniversalPolicy
from lakelet.options import TableOptions
from lakelet.sql.system.version import Version
from lakelet.table import Table
from lakelet.table.read.table_scan import TableScan


def read_optimized(table: Table, version: Version) -> TableScan:
    """A scan of the files that need no merge."""
    scan = version.scan(table)
    if not scan.schema.primary_keys:
        return scan
    policy = UniversalPolicy.of(TableOptions(scan.schema.options))
    return replace(scan, level=policy.num_levels - 1)
