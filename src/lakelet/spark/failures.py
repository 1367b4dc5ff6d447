"""Convert the failure of a Spark job into an error of one line: the last of the Python traceback, or the first of the JVM's.

Errors that Lakelet raised in a task keep their kind. Errors of the caller's own DataFrame (an unknown column, a
division by zero) are left as Spark raises them.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module

from pyspark.errors import PySparkException, PythonException

from lakelet import errors
from lakelet.errors import InvalidError, LakeletError, UnavailableError

_LOG = logging.getLogger(__name__)
_OURS = re.compile(r"^(?P<module>lakelet(?:\.\w+)*)\.(?P<kind>\w+Error): (?P<text>.*)$")
_ABORTED = "Job aborted due to stage failure"
_TRACEBACK = "Traceback (most recent call last)"
_LONGEST = 500


@contextmanager
def readable(what: str) -> Iterator[None]:
    """Turns failures of tasks into errors of Lakelet; `what` says what the job was doing."""
    try:
        yield
    except Exception as error:
        text = _of_a_task(error)
        if text is None:
            raise
        _LOG.debug("%s failed", what, exc_info=True)
        raise (from_worker(text, what) if _TRACEBACK in text else _from_jvm(text, what)) from None


def _of_a_task(error: Exception) -> str | None:
    """Spark's message about a failed task; None for errors of another kind."""
    if isinstance(error, PythonException):
        return str(error)
    if isinstance(error, PySparkException):
        text = str(error)
        return text if _ABORTED in text or _TRACEBACK in text else None
    # JVM exceptions that PySpark has no class for; the library that raises it is not there on a client of Spark Connect.
    raised = getattr(error, "java_exception", None)
    return None if raised is None else str(raised)


def from_worker(text: str, what: str) -> LakeletError:
    """The error that a task raised, parsed from the traceback that Spark passes on."""
    shown = text.split("Driver stacktrace:", maxsplit=1)[0]
    lines = [line.strip() for line in shown.splitlines() if line.strip()]
    for line in reversed(lines):
        ours = _OURS.match(line)
        if ours is not None:
            return _kind(ours["module"], ours["kind"])(f"{what}: {ours['text']}")
    if any(line.startswith("ModuleNotFoundError: No module named 'lakelet") for line in lines):
        return InvalidError(
            f"{what}: executors have no Lakelet; docs/spark.md, 'On a cluster', tells how it gets there"
        )
    last = next(
        (line for line in reversed(lines) if re.match(r"^[\w.]+(Error|Exception|Exit|Interrupt)\b", line)), None
    )
    return UnavailableError(f"{what}: a task failed on every attempt: {(last or lines[-1])[:_LONGEST]}")


def _kind(module: str, name: str) -> type[LakeletError]:
    """The public error kind of a subclass that a task raised."""
    raised = getattr(import_module(module), name, errors.InternalError)
    kinds = (kind for kind in raised.__mro__ if kind.__module__ == errors.__name__)
    return next(kinds, errors.InternalError)


def _from_jvm(text: str, what: str) -> LakeletError:
    first = next((line for line in text.splitlines() if line.strip()), "no reason given")
    return UnavailableError(f"{what}: {first[:_LONGEST]}")
