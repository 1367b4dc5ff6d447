"""The Spark of a service: a master, or a Spark Connect server, for queries that are too large for nodes and for compaction.

The session is made by the first work that needs it, and is one for the process. PySpark is loaded then, too.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from lakelet.service.tables.served_table import OpenTable


class ServiceSpark:
    """The Spark at an address; None is none. For any thread."""

    def __init__(self, address: str | None) -> None:
        self.address = address
        self._lock = threading.Lock()
        self._session: Any = None

    def session(self) -> Any:
        """The session. UnavailableError where there is none to be had."""
        from lakelet.spark.service_session import service_session  # noqa: PLC0415 - PySpark is an extra, and takes a second to load.

        with self._lock:
            if self._session is None:
                self._session = service_session(str(self.address))
            return self._session

    def compact(self, opened: OpenTable, stopped: Callable[[], bool]) -> bool:
        """Compact what is due of a table, by a job; whether there is a new snapshot. `stopped`, it commits nothing."""
        from lakelet.spark.jobs.compact import compact_open_table  # noqa: PLC0415 - see above.

        return compact_open_table(self.session(), opened.table.home, stopped) is not None

    def close(self) -> None:
        """Stop the session."""
        with self._lock:
            if self._session is not None:
                self._session.stop()
            self._session = None
