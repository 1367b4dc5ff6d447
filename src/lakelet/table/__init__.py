"""Tables, their scans, writes and commits, as people use them."""

from lakelet.table.committing import TableCommit
from lakelet.table.scanning import TableScan
from lakelet.table.table import Table
from lakelet.table.writing import TableWrite

__all__ = ["Table", "TableCommit", "TableScan", "TableWrite"]
