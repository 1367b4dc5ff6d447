"""Remove the metadata file that a catalog wrote for a commit that then conflicted.

A catalog of pyiceberg that keeps a pointer in a database writes metadata/<version>-<uuid>.metadata.json first and moves the
pointer then; where another commit has moved it meanwhile, the file stays. It is ours if it has the snapshot of the attempt, whose
id is unique, and it was never current, for the table does not have that snapshot. Catalogs
behind a service write their files themselves.
"""

from __future__ import annotations

import logging
import re

import pyarrow.fs as pafs
from pyiceberg.catalog import MetastoreCatalog
from pyiceberg.io.pyarrow import PyArrowFileIO

from lakelet.iceberg.table import IcebergTable

_LOG = logging.getLogger(__name__)
_VERSIONED = re.compile(r"(\d+)-[0-9a-f-]{36}(?:\.gz)?\.metadata\.json")


def remove_lost_metadata(sent: IcebergTable, now: IcebergTable, snapshot_id: int) -> int:
    """Removes the metadata files of a conflicted attempt to add a snapshot; `sent` is the table that it was made for, `now` the
    one that does not have the snapshot. Returns how many; raises nothing."""
    if not isinstance(now.library.catalog, MetastoreCatalog) or not isinstance(now.library.io, PyArrowFileIO):
        return 0
    if now.metadata.snapshot_by_id(snapshot_id) is not None:
        return 0
    try:
        return _remove(sent, now, now.library.io, f'"snapshot-id":{snapshot_id}')
    except Exception as error:
        _LOG.warning("table %s: metadata files of a lost commit are left: %s", now.full_name, error)
        return 0


def _remove(sent: IcebergTable, now: IcebergTable, io: PyArrowFileIO, mark: str) -> int:
    folder, _, name = sent.library.metadata_location.rpartition("/")
    match = _VERSIONED.fullmatch(name)
    if match is None:
        return 0
    kept = {path.rpartition("/")[2] for path in _known(now)}
    scheme, netloc, root = PyArrowFileIO.parse_location(folder, io.properties)
    listed = io.fs_by_scheme(scheme, netloc).get_file_info(pafs.FileSelector(root, allow_not_found=True))
    removed = 0
    for info in listed:
        found = _VERSIONED.fullmatch(info.base_name)
        if found is None or int(found[1]) <= int(match[1]) or info.base_name in kept or info.base_name.count(".gz"):
            continue
        path = f"{folder}/{info.base_name}"
        with io.new_input(path).open() as stream:
            text = stream.read()
        if mark.encode() in text:
            io.delete(path)
            removed += 1
    return removed


def _known(now: IcebergTable) -> set[str]:
    return {now.library.metadata_location, *(entry.metadata_file for entry in now.metadata.metadata_log)}
