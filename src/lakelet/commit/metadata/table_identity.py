"""Table identity: a table that was dropped and created again is another table under the same name."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

from lakelet.commit.metadata.stored import stored_schema
from lakelet.errors import ConflictError, NotFoundError
from lakelet.format.metadata.table_metadata import decode_metadata
from lakelet.model.commit_message import CommitMessage
from lakelet.storage.home import TableHome
from lakelet.storage.paths import MAIN_BRANCH


def table_uuid(home: TableHome) -> str | None:
    """The table's UUID, None for a table of another writer, which has none."""
    path = home.paths.metadata
    try:
        return decode_metadata(home.store.get(path), path=home.where(path)).table_uuid
    except NotFoundError:
        return None


def table_identity(home: TableHome) -> str:
    """A name of the table and branch that no other has, for files beside the warehouse: the table's UUID, or a digest of its
    first schema where another engine made it."""
    main = home.on_branch(MAIN_BRANCH)
    name = table_uuid(main) or f"schema-0-{sha256(stored_schema(main, 0)).hexdigest()}"
    return name if home.paths.branch == MAIN_BRANCH else f"{name}+{home.paths.branch}"


def check_same_table(home: TableHome, messages: Sequence[CommitMessage]) -> None:
    """ConflictError if messages were written for a table that has been dropped or recreated since."""
    written_for = {message.table_uuid for message in messages} - {None}
    if written_for:
        now = table_uuid(home)
        if now is not None and written_for != {now}:
            raise ConflictError(
                f"{home.where(home.paths.root)} was dropped and created again since these files were written: write them again"
            )
