"""Refuse local output paths inside a lake, where only the lake's own writers may write."""

from __future__ import annotations

import os

from lakelet.errors import InvalidError
from lakelet.storage.paths import VIEW_FOLDER, database_of_folder

_FOLDERS = (VIEW_FOLDER, "catalogs")


def check_outside(location: str, path: str, what: str) -> None:
    """Refuse a file among those of the lake: it could take the place of a snapshot, or be taken for one."""
    if "://" in location.removeprefix("file://"):
        return
    root = os.path.realpath(location.removeprefix("file://"))
    target = os.path.realpath(os.path.expanduser(path.removeprefix("file://").removeprefix("file:")))
    inside = os.path.relpath(target, root).split(os.sep)[0]
    if inside in _FOLDERS or database_of_folder(inside) is not None:
        raise InvalidError(f"{what} {path}: it is among the files of the lake in {location}; expected another folder")
