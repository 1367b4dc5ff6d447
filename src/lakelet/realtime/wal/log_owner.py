"""Which copy of a table logs belong to: a warehouse that is copied has the same table identities as the first.

The folder of logs says in a file `TABLE` where the table of its last writer was. Rows that are left over go there: a writer of
another place is refused while the table is still at that one, for it would commit the rows into a copy and delete the log. A
table that was moved or renamed is no longer there, and its logs go with it.
"""

from __future__ import annotations

import os

from lakelet.errors import ConflictError, CorruptionError, NotFoundError
from lakelet.realtime.wal.wal_folder import WalFolder
from lakelet.storage.disk.system_errors import SystemErrors
from lakelet.storage.home import TableHome

_NAME = "TABLE"
_SCHEME, _MEMORY = "://", "memory://"


def check_owner(home: TableHome, folder: WalFolder) -> None:
    """ConflictError where logs with rows are those of a table in another place."""
    here, owner = _location(home), _owner(folder)
    if owner is None or owner == here or not _is_there(owner) or not _has_rows(folder):
        return
    raise ConflictError(
        f"{folder.path} has rows of the table at {owner}, of which {here} is a copy: open a writer there, or run "
        "lakelet recover, or give this one a wal_folder of its own"
    )


def set_owner(home: TableHome, folder: WalFolder) -> None:
    """Say whose the logs are from now on."""
    here, path = _location(home), os.path.join(folder.path, _NAME)
    if _owner(folder) == here:
        return
    with SystemErrors(path):
        with open(f"{path}.new", "w", encoding="utf-8") as file:
            file.write(here)
            file.flush()
            os.fsync(file.fileno())
        os.replace(f"{path}.new", path)


def _location(home: TableHome) -> str:
    where = home.where(home.paths.root)
    # A link and what it points at are one place.
    return where if _SCHEME in where else os.path.realpath(where)


def _owner(folder: WalFolder) -> str | None:
    path = os.path.join(folder.path, _NAME)
    try:
        with SystemErrors(path), open(path, encoding="utf-8") as file:
            return file.read() or None
    except NotFoundError:
        return None


def _is_there(location: str) -> bool:
    """Whether a table may be in a place; of a store that is no local disk it is assumed."""
    if _SCHEME in location:
        return not location.startswith(_MEMORY)
    return os.path.isdir(os.path.join(location, "schema"))


def _has_rows(folder: WalFolder) -> bool:
    return any(_log_has_rows(folder, number) for number in folder.numbers())


def _log_has_rows(folder: WalFolder, number: int) -> bool:
    try:
        return bool(len(folder.read(number).records))
    except CorruptionError:
        # Nobody can tell; recovery says what is wrong with it.
        return True
