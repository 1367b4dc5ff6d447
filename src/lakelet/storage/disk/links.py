"""Symbolic links in a warehouse on disk: reads and writes follow them, deletions do not.

    <root>/<db>.db/<table>/bucket-7/data-1.parquet
    └────── places ──────┘└── below: a link leads to files of somebody else ──┘

Whoever keeps a warehouse, a database or a table on another disk links its folder there: those links are places, and the files
behind them are the table's. A link further down may lead anywhere. What is behind it is never deleted; the link itself may be.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from lakelet.errors import InvalidError
from lakelet.storage.paths import database_of_folder


class BehindLinkError(InvalidError):
    """Files were left in place since a symbolic link leads to them; all others of the call are deleted."""

    @staticmethod
    def of(paths: Sequence[str], link: str) -> BehindLinkError:
        """The error for paths, the first of which is behind the link."""
        more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
        return BehindLinkError(
            f"{paths[0]}{more}: not deleted, for {link} is a symbolic link, and deletions follow none"
        )


def link_above(root: str, path: str) -> str | None:
    """The first folder above a path, below the places of the warehouse `root`, that is a symbolic link."""
    *folders, _ = path.split("/")
    places = 2 if folders and database_of_folder(folders[0]) is not None else 0
    for count in range(places + 1, len(folders) + 1):
        folder = os.path.join(root, *folders[:count])
        if os.path.islink(folder):
            return folder
    return None


def deletable(root: str, paths: Sequence[str]) -> tuple[list[str], BehindLinkError | None]:
    """The paths on disk that may be deleted, and the error for those that a link leads to."""
    links: dict[str, str | None] = {}
    fulls: list[str] = []
    behind: list[str] = []
    for path in paths:
        folder = path.rpartition("/")[0]
        if folder not in links:
            links[folder] = link_above(root, path)
        (fulls if links[folder] is None else behind).append(os.path.join(root, path))
    link = next((found for found in links.values() if found is not None), None)
    return fulls, None if link is None else BehindLinkError.of(behind, link)
