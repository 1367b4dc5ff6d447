"""Log lines as JSON objects, one a line, with the id of the request they belong to."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import TextIO

_FURTHER = ("request_id", "status", "ms", "audit")


class JsonLines(logging.Formatter):
    """Formats records as JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """One record as one line."""
        moment = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        line: dict[str, object] = {
            "time": moment,
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line.update({name: getattr(record, name) for name in _FURTHER if hasattr(record, name)})
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


def log_as_json(level: str, stream: TextIO | None = None) -> None:
    """Write the log of this process to standard error."""
    handler = logging.StreamHandler(sys.stderr if stream is None else stream)
    handler.setFormatter(JsonLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("lakelet").setLevel(level.upper())
    logging.getLogger("lakelet.service").setLevel(level.upper())
