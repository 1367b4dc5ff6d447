"""Scans of Iceberg tables: a version is pinned and planned on the driver, its files are read anywhere.

    scan = scan_of(table, ref="dev", where="id > 5")      versions ─ plan: manifests, pruning, deletes of each file
    for file in scan.files: scan.read(file, columns)      data_files ─ evolution ─ positions, equality: deleted rows

Rows are never lost: pruning leaves out only files that provably hold no matching row, and a delete that cannot be applied is
an error that names its file.
"""

from lakelet.iceberg.scan.evolution import PlainColumn, PlainColumns
from lakelet.iceberg.scan.scan import IcebergScan, comparable_fields, scan_of, version_key
from lakelet.iceberg.scan.scan_file import DeleteFile, ScanFile

__all__ = [
    "DeleteFile",
    "IcebergScan",
    "PlainColumn",
    "PlainColumns",
    "ScanFile",
    "comparable_fields",
    "scan_of",
    "version_key",
]
