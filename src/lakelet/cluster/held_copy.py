"""A copy of a table's write-ahead logs of another node, in the folder of this node's logs.

    <folder of logs>/replicas/<origin>/<token>/COPY                which table, JSON
                                              /<table>/wal-N.log   as at the origin (`format/wal`)
                                              /<table>/wal-N.tmp   a log that is being created
                                              /<table>/keys.db     names of writes whose log is committed (`key_file`)

`…/<origin>/<token>` has the form of a folder of logs, so that `lakelet recover --wal-folder` replays it. Whether it counts is
said by the warehouse (`replica_records`), never by the folder.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass

from lakelet.errors import CorruptionError, InvalidError, NotFoundError
from lakelet.realtime.settings import wal_path
from lakelet.realtime.wal.leftover_logs import logs_root
from lakelet.realtime.wal.wal_folder import make_folder, sync_folder
from lakelet.storage.disk.system_errors import SystemErrors

_REPLICAS, _NAME = "replicas", "COPY"
_PRIVATE = 0o600
# Names of folders, which come over the network.
_SAFE = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,63}")


@dataclass(frozen=True, slots=True)
class HeldCopy:
    """A copy: whose logs, its token, the table by identity and full name, and its folder."""

    origin: str
    token: str
    identity: str
    table: str
    root: str

    @property
    def path(self) -> str:
        """The folder of the logs."""
        return wal_path(self.root, self.identity)

    @property
    def folder(self) -> str:
        """The name of that folder, which is the same at the origin."""
        return os.path.basename(self.path)

    def delete(self) -> None:
        """Delete it with all logs."""
        shutil.rmtree(self.root, ignore_errors=True)


def copies_root(wal_folder: object) -> str:
    """The folder of all copies that a node holds."""
    return os.path.join(logs_root(wal_folder), _REPLICAS)


def create_copy(copies: str, origin: str, token: str, identity: str, table: str) -> HeldCopy:
    """Begin an empty copy, durably."""
    for what, name in (("node", origin), ("token", token)):
        if not _SAFE.fullmatch(name):
            raise InvalidError(f"{what} {name!r}: expected 1 to 64 letters, digits, '_', '-' or, not first, '.'")
    made = HeldCopy(origin, token, identity, table, os.path.join(copies, origin, token))
    with SystemErrors(made.root):
        make_folder(made.path)
        path = os.path.join(made.root, _NAME)
        with open(path, "w", encoding="utf-8", opener=lambda name, flags: os.open(name, flags, _PRIVATE)) as file:
            file.write(json.dumps({"origin": origin, "token": token, "identity": identity, "table": table}))
            file.flush()
            os.fsync(file.fileno())
        sync_folder(made.root)
    return made


def read_copy(root: str) -> HeldCopy | None:
    """The copy that a folder of logs is; None for one that is none."""
    path = os.path.join(root, _NAME)
    try:
        with SystemErrors(path), open(path, encoding="utf-8") as file:
            found = json.load(file)
        origin, token, identity, table = (str(found[name]) for name in ("origin", "token", "identity", "table"))
    except NotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptionError(f"{path}: expected which table's logs are copied here, found {error!r}") from None
    return HeldCopy(origin, token, identity, table, os.path.abspath(root))


def held_copies(copies: str) -> Iterator[HeldCopy]:
    """All copies below a folder. One whose creation was interrupted never counted, and is deleted."""
    for origin in _folders(copies):
        for root in _folders(origin):
            try:
                found = read_copy(root)
            except CorruptionError:
                found = None
            if found is None:
                shutil.rmtree(root, ignore_errors=True)
            else:
                yield found


def _folders(path: str) -> list[str]:
    try:
        return sorted(entry.path for entry in os.scandir(path) if entry.is_dir(follow_symlinks=False))
    except FileNotFoundError:
        return []
