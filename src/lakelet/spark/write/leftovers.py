"""Remove the files of unsuccessful task attempts: failed, killed, or overtaken by a speculative copy.

Every file of a job carries the job's id in its name, so the ones that no message lists are found by listing. An attempt that
still runs while the driver lists may leave a file later: it is an orphan, which the removal of orphans finds.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from lakelet.errors import LakeletError
from lakelet.format.partition_folders import PartitionFolders
from lakelet.model.commit_message import CommitMessage
from lakelet.model.schema import TableSchema
from lakelet.storage.home import TableHome

_LOG = logging.getLogger(__name__)
_THREADS = 16
# Up to this number of folders are listed even without a sign of other attempts: that costs next to nothing.
_FEW_FOLDERS = 64


def remove_leftovers(
    home: TableHome, schema: TableSchema, job: str, messages: Sequence[CommitMessage], *, expected: bool
) -> None:
    """Removes the job's files in the buckets of the messages that no message lists. `expected` says that there may be some."""
    folders = PartitionFolders(home.paths, schema)
    places = {(message.partition, message.bucket) for message in messages}
    if not expected and len(places) > _FEW_FOLDERS:
        return
    searched = [folders.bucket_folder(*place) for place in places]
    indexes = {index.name for m in messages for index in (m.new_hash_index, m.new_vectors) if index is not None}
    if indexes:
        searched.append(home.paths.index("").rstrip("/"))
    with ThreadPoolExecutor(_THREADS) as pool:
        found = [path for paths in pool.map(lambda folder: _files(home, folder, job), searched) for path in paths]
    listed = {file.name for message in messages for file in (*message.new_files, *message.changelog_files)}
    _delete(home, [path for path in found if path.rsplit("/", 1)[-1] not in listed | indexes])


def remove_all(home: TableHome, job: str) -> None:
    """Removes every file of a job that will not be committed, wherever in the table it is."""
    try:
        found = [info.path for info in home.store.list(home.paths.root) if job in info.path.rsplit("/", 1)[-1]]
    except LakeletError as error:
        _LOG.warning("files of job %s stay behind in %s: %s", job, home.where(home.paths.root), error)
        return
    _delete(home, found)


def _files(home: TableHome, folder: str, job: str) -> list[str]:
    try:
        files = home.store.list_folder(folder).files
    except LakeletError as error:
        _LOG.warning("files of lost attempts may stay behind in %s: %s", home.where(folder), error)
        return []
    return [info.path for info in files if job in info.path.rsplit("/", 1)[-1]]


def _delete(home: TableHome, paths: list[str]) -> None:
    if not paths:
        return
    _LOG.info("removing %d files of attempts that did not count", len(paths))
    try:
        home.store.delete(paths)
    except LakeletError as error:
        _LOG.warning("%d uncommitted files stay behind in %s: %s", len(paths), home.where(home.paths.root), error)
