"""Clean up after a table that is dropped while a writer writes to it, and report the drop to the writer.

    writer ─ files below <table>/ ─ the table is dropped ─ more files: folders come back, without a schema: no table
                                                         └─ error: the writer removes its files, this its folders

Only folders without files and snapshot hints are removed. Whatever else is there may belong to a table that is just being
created under the same name.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from lakelet.commit.metadata.schemas import latest_schema
from lakelet.commit.metadata.version_ids import schema_ids
from lakelet.errors import InvalidError, LakeletError, NotFoundError
from lakelet.model.commit_message import CommitMessage
from lakelet.model.schema import TableSchema
from lakelet.storage.disk.links import BehindLinkError
from lakelet.storage.home import TableHome
from lakelet.storage.paths import MAIN_BRANCH


class TableDroppedError(NotFoundError):
    """The table, or the branch of it, was dropped while it was written to."""


@contextmanager
def noticing_drop(home: TableHome) -> Iterator[None]:
    """Around a write: removes what it left of a table that was dropped meanwhile, and raises TableDroppedError."""
    try:
        yield
    except InvalidError:
        raise
    except LakeletError as error:
        if not is_dropped(home):
            raise
        clear_folders(home)
        if isinstance(error, TableDroppedError):
            raise
        raise dropped(home) from error
    if not home.store.folder_exists(home.paths.schema_folder):
        # The write was committed, and the table dropped with it.
        clear_folders(home)


def is_dropped(home: TableHome) -> bool:
    """Whether no table exists at the path."""
    try:
        return not schema_ids(home)
    except LakeletError:
        return False


def dropped(home: TableHome) -> TableDroppedError:
    """The error that reports the drop."""
    what = "the table" if home.paths.branch == MAIN_BRANCH else f"branch {home.paths.branch!r} of the table"
    return TableDroppedError(f"{home.where(home.paths.branch_root)}: {what} was dropped while it was written to")


def schema_for_commit(home: TableHome, messages: Sequence[CommitMessage]) -> TableSchema:
    """The newest schema; where the table is dropped, TableDroppedError once the files of the messages are removed."""
    try:
        return latest_schema(home)
    except NotFoundError as error:
        remove_made(home, messages)
        raise dropped(home) from error


def remove_made(home: TableHome, messages: Sequence[CommitMessage]) -> None:
    """Remove the files that were written for messages, wherever below the table: without a schema their folders are unknown."""
    names: set[str] = set()
    for message in messages:
        there_before = {file.name for file in message.deleted_files}
        names.update(file.name for file in message.new_files if file.name not in there_before)
        names.update(file.name for file in message.changelog_files)
        names.update(index.name for index in (message.new_hash_index, message.new_vectors) if index is not None)
    home.store.delete([info.path for info in home.store.list(home.paths.root) if info.path.rsplit("/", 1)[-1] in names])


def clear_folders(home: TableHome) -> None:
    """Remove hints and empty folders of a table or branch without a schema, and the table's own folder with them."""
    try:
        home.store.delete([home.paths.latest_hint, home.paths.earliest_hint])
    except BehindLinkError:
        return
    _remove_empty(home, home.paths.branch_root)
    if home.paths.branch != MAIN_BRANCH:
        home.store.remove_empty_folder(home.paths.branch_folder)
        home.store.remove_empty_folder(home.paths.root)


def _remove_empty(home: TableHome, folder: str) -> None:
    for inside in home.store.list_folder(folder).folders:
        if not home.store.is_linked(inside):
            _remove_empty(home, inside)
    home.store.remove_empty_folder(folder)
