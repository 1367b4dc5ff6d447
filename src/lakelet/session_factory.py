"""The factory of SQL sessions: `lake.sql` opens a session without knowing the package above that runs it.

    lakelet/__init__    provides the factory, which loads `lakelet.sql` when the first session is opened
    catalog/lake        opens a session of its lake

Nothing is loaded with it, so that `import lakelet` stays quick.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lakelet.errors import InternalError

_FACTORY: list[Callable[[Any], Any]] = []


def provide_sessions(factory: Callable[[Any], Any]) -> None:
    """Makes a function of a lake the one that opens its sessions."""
    _FACTORY[:] = [factory]


def open_session(lake: object) -> Any:
    """A new SQL session of a lake."""
    if not _FACTORY:
        raise InternalError("no package provides SQL sessions: expected lakelet.sql, found none")
    return _FACTORY[0](lake)
