"""The table API: tables, their scans, writes and commits."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lakelet.table.read.table_scan import TableScan
    from lakelet.table.table import Table
    from lakelet.table.write.table_commit import TableCommit
    from lakelet.table.write.table_write import TableWrite

__all__ = ["Table", "TableCommit", "TableScan", "TableWrite"]

_HOMES = {
    "Table": "table",
    "TableCommit": "write.table_commit",
    "TableScan": "read.table_scan",
    "TableWrite": "write.table_write",
}


def __getattr__(name: str) -> object:
    """Import a name at its first use: a scan needs none of the modules that write."""
    if name not in _HOMES:
        raise AttributeError(f"module 'lakelet.table' has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415 - as above.

    found: object = getattr(import_module(f"lakelet.table.{_HOMES[name]}"), name)
    globals()[name] = found
    return found
