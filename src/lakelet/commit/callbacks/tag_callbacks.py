"""Tag callbacks: user code that is called when tags are created and deleted.

    class Release:
        def __init__(self, argument=None): ...                 # `tag.callback.<class>.param`, where it is set
        def open(self, home): ...                              # optional: the table, before the call
        def notify_creation(self, tag_name, snapshot_id): ...
        def notify_deletion(self, tag_name): ...
        def close(self): ...                                   # optional

They are called once the tag is created, or deleted. That is best effort: after a crash right after a tag was made nobody
calls them later, and whatever they raise is logged and ignored. Nothing here fails the caller, but what interrupts a
program from outside (KeyboardInterrupt) is raised again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Protocol, cast

from lakelet.commit.callbacks.callback_classes import TAG_METHODS, make, tag_classes
from lakelet.options import TableOptions
from lakelet.storage.home import TableHome

_LOG = logging.getLogger(__name__)


class TagCallback(Protocol):
    """The interface of a class named by `tag.callbacks`."""

    def notify_creation(self, tag_name: str, snapshot_id: int) -> None: ...
    def notify_deletion(self, tag_name: str) -> None: ...


def notify_creation(home: TableHome, options: TableOptions, name: str, snapshot_id: int) -> None:
    """Call the table's callbacks for a tag that was created, or now points to another snapshot."""
    _tell(home, options, f"the creation of tag {name!r}", lambda callback: callback.notify_creation(name, snapshot_id))


def notify_deletion(home: TableHome, options: TableOptions, name: str) -> None:
    """Call the table's callbacks for a deleted tag."""
    _tell(home, options, f"the deletion of tag {name!r}", lambda callback: callback.notify_deletion(name))


def _tell(home: TableHome, options: TableOptions, what: str, tell: Callable[[TagCallback], None]) -> None:
    for named in tag_classes(options):
        try:
            callback = make(named, TAG_METHODS, home.callback_modules)
            try:
                if hasattr(callback, "open"):
                    callback.open(home)
                tell(cast(TagCallback, callback))
            finally:
                if hasattr(callback, "close"):
                    callback.close()
        except BaseException as error:
            _LOG.warning(
                "tag callback %s failed on %s in %s: %s: %s",
                named.spelling,
                what,
                home.where(home.paths.branch_root),
                type(error).__name__,
                error,
            )
            if not isinstance(error, (Exception, SystemExit)):
                raise
