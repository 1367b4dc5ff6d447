"""Open DuckDB instances with the same settings everywhere: UTC, no automatic extensions, a spill folder of their own.

A text without a zone that is compared with a TIMESTAMP_LTZ is read in the time zone of the connection. DuckDB's is the machine's
unless it is set, and a setting of one connection is not one of its cursors: it is set for the whole instance. No extension is
installed because a query would need it. Rows that do not fit into memory go to a folder of the instance's own, below the one that
TMPDIR names, which DuckDB makes when it needs it and removes.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from typing import TYPE_CHECKING

from lakelet.ids import RandomIds

if TYPE_CHECKING:
    import duckdb

ZONE = "UTC"
_SETTINGS = {"autoinstall_known_extensions": "false"}


def open_instance(path: str = ":memory:", settings: Mapping[str, str] | None = None) -> duckdb.DuckDBPyConnection:
    """Open a DuckDB instance in UTC that installs no extension; `settings` are added to that."""
    import duckdb  # noqa: PLC0415 - most processes do without, and all would wait for it to load.

    chosen: dict[str, str | bool | int | float | list[str]] = {**_SETTINGS, **(settings or {})}
    if chosen.get("enable_external_access") != "false":
        chosen.setdefault("temp_directory", f"{tempfile.gettempdir()}/lakelet-{RandomIds().uuid()}")
    database = duckdb.connect(path, config=chosen)
    # Not in the configuration: the setting belongs to an extension that is loaded behind it.
    database.execute(f"SET GLOBAL TimeZone = '{ZONE}'")
    return database
