"""The identity of a node: an id that stays, and the tokens of its processes, in the folder of its write-ahead logs.

    <wal folder>/NODE.lock     held by flock(2) for as long as the process lives
    <wal folder>/NODE          {"id": "node-3f2a…", "folder": 1234, "tokens": ["…", "…"]}

A process makes a token of its own and writes it down before it registers. The tokens of the processes before it let it take over
their liveness key, so that a node that was killed is back at once, while a copy of the folder does not pass for the original: it
has another inode, and gives no tokens but its own.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import IO

from lakelet.errors import ConflictError, CorruptionError, NotFoundError
from lakelet.ids import Ids, RandomIds
from lakelet.storage.disk.system_errors import SystemErrors

_NAME, _LOCK = "NODE", "NODE.lock"
_KEPT_TOKENS = 16
_PRIVATE = 0o600


@dataclass(frozen=True, slots=True)
class NodeIdentity:
    """The id of a node, the token of this process and those of the processes before it."""

    id: str
    token: str
    predecessors: tuple[str, ...]


class NodeFolder:
    """The folder of a node, locked for this process until it is closed; ConflictError while another process has it."""

    def __init__(self, folder: str, ids: Ids | None = None) -> None:
        self.folder = folder
        with SystemErrors(folder):
            os.makedirs(folder, exist_ok=True)
            self._lock: IO[str] = open(os.path.join(folder, _LOCK), "a+", opener=_opened)  # noqa: SIM115 - held open.
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._lock.close()
            raise ConflictError(f"{folder}: another node uses this folder; every node needs one of its own") from None
        try:
            self.identity = _identity(folder, ids or RandomIds())
        except BaseException:
            self._lock.close()
            raise

    def close(self) -> None:
        """Give the folder to another process."""
        self._lock.close()

    def __enter__(self) -> NodeFolder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


@contextmanager
def stopped_node(folder: str) -> Iterator[str | None]:
    """The id of the node of a folder, which cannot start before the block is left; None where none was, or one is running."""
    try:
        lock = os.open(os.path.join(folder, _LOCK), os.O_RDWR)
    except FileNotFoundError:
        yield None
        return
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield None
            return
        id, _ = _read(os.path.join(folder, _NAME), os.stat(folder).st_ino)
        yield id
    finally:
        os.close(lock)


def _identity(folder: str, ids: Ids) -> NodeIdentity:
    path = os.path.join(folder, _NAME)
    inode = os.stat(folder).st_ino
    id, tokens = _read(path, inode)
    made = NodeIdentity(id or f"node-{ids.uuid().replace('-', '')[:12]}", ids.uuid(), tokens)
    kept = [*tokens, made.token][-_KEPT_TOKENS:]
    text = json.dumps({"id": made.id, "folder": inode, "tokens": kept})
    with SystemErrors(path):
        _replace(path, text)
    return made


def _read(path: str, inode: int) -> tuple[str | None, tuple[str, ...]]:
    try:
        with SystemErrors(path), open(path, encoding="utf-8") as file:
            found = json.load(file)
        id, tokens = str(found["id"]), tuple(str(token) for token in found["tokens"])
        return id, tokens if found["folder"] == inode else ()
    except NotFoundError:
        return None, ()
    except (ValueError, KeyError, TypeError) as error:
        # A new id would leave the rows of the old one to nobody.
        raise CorruptionError(f"{path}: expected the identity of a node, found {error!r}") from None


def _replace(path: str, text: str) -> None:
    temporary = f"{path}.tmp"
    with open(temporary, "w", encoding="utf-8", opener=_opened) as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
    folder = os.open(os.path.dirname(path), os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _opened(path: str, flags: int) -> int:
    return os.open(path, flags, _PRIVATE)
