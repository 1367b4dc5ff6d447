"""Remove files left by unsuccessful attempts of a job, such as those of a lost executor: found by the job's id in their names.

    <job>-<task>-<number>.parquet       or, where the store's folders are spread by hash without partitions, 0110…-<job>-…

They are not visible, so that it does no harm if some stay: what cannot be listed or removed now is left to the removal of
orphan files.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Iterator

import pyarrow.fs as pa_fs
from pyiceberg.io.pyarrow import PyArrowFileIO

from lakelet.iceberg.commit.removal import remove_paths
from lakelet.iceberg.write.write_plan import WritePlan

_LOG = logging.getLogger(__name__)


def remove_files_of_job(plan: WritePlan, keep: Collection[str]) -> int:
    """Removes every data file of the job but those to `keep`, and returns how many. Call it once no attempt runs any more."""
    kept = {path.rsplit("/", 1)[-1] for path in keep}
    mine = re.compile(rf"(?:[01]+-)?{re.escape(plan.job)}-[^/]*\.parquet")
    try:
        found = [
            path for path in _data_files(plan) if mine.fullmatch(name := path.rsplit("/", 1)[-1]) and name not in kept
        ]
    except Exception as error:
        _LOG.warning("table %s: files of job %s were not looked for: %s", plan.table, plan.job, error)
        return 0
    return remove_paths(plan.io, found)


def _data_files(plan: WritePlan) -> Iterator[str]:
    """Everything below the folder of data files, as locations."""
    root = plan.locations.data_path
    io = plan.io
    if isinstance(io, PyArrowFileIO):
        scheme, netloc, path = io.parse_location(root, io.properties)
        selector = pa_fs.FileSelector(path, allow_not_found=True, recursive=True)
        for info in io.fs_by_scheme(scheme, netloc).get_file_info(selector):
            if info.type == pa_fs.FileType.File:
                yield root + info.path[len(path) :]
        return
    # pyiceberg's only other implementation, by fsspec.
    filesystem = io.get_fs(root.split(":", 1)[0])  # type: ignore[attr-defined]
    bare = filesystem._strip_protocol(root)
    for path in filesystem.find(root):
        yield root + str(path)[len(bare) :]
