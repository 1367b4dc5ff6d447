"""Spark's recording of call sites, turned off while Lakelet builds frames and expressions of its own.

PySpark notes the line of the calling program for every function of a column or frame, for messages of errors: per call it asks
the JVM for the session, a setting and a class, looks for IPython and walks the stack. That is five times the cost of building
the expression (2 ms of processor against 0.35), for lines that would be Lakelet's own. Expressions that a
user's program builds keep theirs, unless it builds them in another thread meanwhile: then an error lacks the line, nothing else.
"""

from __future__ import annotations

import threading
from contextlib import ContextDecorator
from types import TracebackType

from pyspark.errors import utils as recorder

# PySpark's own memory of `spark.python.sql.dataFrameDebugging.enabled`; None until it is first asked for.
_FLAG = "_enable_debugging_cache"


class UnrecordedCallSites(ContextDecorator):
    """A block, or a decorated function, whose calls of PySpark are not recorded. Blocks may be nested and in several threads."""

    _lock = threading.Lock()
    _blocks = 0
    _before: bool | None = None

    def __enter__(self) -> UnrecordedCallSites:
        kind = UnrecordedCallSites
        with kind._lock:
            if kind._blocks == 0 and hasattr(recorder, _FLAG):
                kind._before = getattr(recorder, _FLAG)
                setattr(recorder, _FLAG, False)
            kind._blocks += 1
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        owner = UnrecordedCallSites
        with owner._lock:
            owner._blocks -= 1
            if owner._blocks == 0 and hasattr(recorder, _FLAG):
                setattr(recorder, _FLAG, owner._before)
