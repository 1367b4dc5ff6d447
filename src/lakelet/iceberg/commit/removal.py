"""Remove files that no snapshot has. A file that is missing already, or cannot be removed now, is left to the removal of orphans:
it is not visible, and the error that led here is the one to report."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from pyiceberg.io import FileIO

_LOG = logging.getLogger(__name__)


def remove_paths(io: FileIO, paths: Iterable[str]) -> int:
    """Removes the files as far as possible, and returns how many were removed."""
    removed = 0
    for path in paths:
        try:
            io.delete(path)
            removed += 1
        except FileNotFoundError:
            continue
        except Exception as error:
            _LOG.warning("%s could not be removed and is left to the removal of orphan files: %s", path, error)
    return removed
