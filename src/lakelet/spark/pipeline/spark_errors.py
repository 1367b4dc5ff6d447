"""Errors of Spark about a pipeline's queries, as one line with the file and the line of the query."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.errors import AnalysisException, ParseException, PySparkException

from lakelet.errors import InvalidError, LakeletError, NotFoundError
from lakelet.pipeline.place import Place
from lakelet.spark.failures import readable

_MISSING = ("TABLE_OR_VIEW_NOT_FOUND", "PATH_NOT_FOUND", "SCHEMA_NOT_FOUND", "DATA_SOURCE_NOT_FOUND")
_LINE = re.compile(r"\bline (\d+)[, ]+pos \d+")
_CONDITION = re.compile(r"^\[([A-Z0-9_.]+)\]\s*")
_SQLSTATE = re.compile(r"\s*SQLSTATE: \w+.*", re.DOTALL)
_LONGEST = 600
# What a plan raises for rows that must not be written: of an expectation, and of a sequence.
_RAISED = re.compile(r"(expectation '.*|sequence_by \(.*)", re.DOTALL)


@contextmanager
def at_place(place: Place, what: str, *, sql: bool = False) -> Iterator[None]:
    """Errors within a block name the place; lines of a query count from it."""
    try:
        with readable(what):
            yield
    except LakeletError as error:
        raised = _raised(str(error))
        if raised is not None:
            raise InvalidError(f"{place}: {what}: {raised}; nothing of it was written") from None
        if str(error).startswith(place.file):
            raise
        raise type(error)(f"{place}: {what}: {error}") from None
    except PySparkException as error:
        raised = _raised(str(error))
        if raised is not None:
            raise InvalidError(f"{place}: {what}: {raised}; nothing of it was written") from None
        raise _converted(error, place, what, sql) from None


def _raised(text: str) -> str | None:
    """The message of a row that must not be written, from an error of the job that met it."""
    if "USER_RAISED_EXCEPTION" not in text:
        return None
    found = _RAISED.search(text.split("USER_RAISED_EXCEPTION", 1)[1])
    return None if found is None else _SQLSTATE.sub("", found[1].splitlines()[0]).strip()


def _converted(error: PySparkException, place: Place, what: str, sql: bool) -> LakeletError:
    text = str(error)
    line = _LINE.search(text) if sql else None
    if line is not None and place.line is not None:
        place = Place(place.file, place.line + int(line[1]) - 1)
    condition = _CONDITION.match(text)
    shown = " ".join(_SQLSTATE.sub("", _CONDITION.sub("", text), count=1).split())[:_LONGEST]
    missing = condition is not None and condition[1].startswith(_MISSING)
    kind = NotFoundError if missing else InvalidError
    if not isinstance(error, AnalysisException | ParseException) and not condition:
        kind = InvalidError
    return kind(f"{place}: {what}: {shown}")
