"""Open the lake of a Spark job with the connection options among the job's options."""

from __future__ import annotations

import os
from collections.abc import Mapping

from lakelet.catalog import connect
from lakelet.catalog.lake import Lake
from lakelet.options.connection import CATALOG_PREFIX, CONNECTION_OPTIONS

_CONNECTION = frozenset(option.name for option in CONNECTION_OPTIONS)


def open_lake(warehouse: str | os.PathLike[str], options: Mapping[str, str] | None = None) -> Lake:
    """The lake that the tables of a job are in."""
    given = {str(key): str(value) for key, value in (options or {}).items()}
    own = {key: value for key, value in given.items() if key in _CONNECTION or key.startswith(CATALOG_PREFIX)}
    return connect(os.fspath(warehouse), own)
