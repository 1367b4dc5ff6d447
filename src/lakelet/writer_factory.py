"""The factory of row writers: `table.writer()` opens one without knowing the package above that runs it.

    lakelet/__init__    provides the factory, which loads `lakelet.realtime` when the first writer is opened
    table/table         opens a writer of its table

Nothing is loaded with it, so that `import lakelet` stays quick.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lakelet.errors import InternalError

_FACTORY: list[Callable[..., Any]] = []


def provide_writers(factory: Callable[..., Any]) -> None:
    """Make a function the one that opens writers: of whether it is for asyncio, a table's home, a folder of logs and options."""
    _FACTORY[:] = [factory]


def open_row_writer(
    home: object, wal_folder: object, options: Mapping[str, str] | None, *, for_asyncio: bool = False
) -> Any:
    """A new writer of a table."""
    if not _FACTORY:
        raise InternalError("no package provides row writers: expected lakelet.realtime, found none")
    return _FACTORY[0](for_asyncio, home, wal_folder, options)
