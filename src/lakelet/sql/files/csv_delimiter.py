"""Detect the delimiter of a CSV file from its header, if that names columns of the table.

DuckDB guesses from a whole sample, in which texts may hold more semicolons than there are commas between them. A header that
has nothing but columns of the table is unambiguous.
"""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Callable, Sequence
from typing import Any

_CANDIDATES = (",", "\t", ";", "|")
_READ_CHARACTERS = 1 << 20


def detected_delimiter(
    path: str, is_record: Callable[[Sequence[str]], bool], *, quote: str, encoding: str
) -> str | None:
    """The delimiter with which `is_record` accepts the first record; None without one, or if the file cannot be read."""
    if "://" in path:
        return None
    try:
        with _opened(path) as file:
            text = io.TextIOWrapper(file, encoding, newline="").read(_READ_CHARACTERS)
    except (OSError, ValueError, LookupError):
        # Errors of the file are reported when its rows are read.
        return None
    for sign in _CANDIDATES:
        try:
            record = next(
                csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline=""), delimiter=sign, quotechar=quote), []
            )
        except csv.Error:
            continue
        if record and is_record(record):
            return sign
    return None


def _opened(path: str) -> Any:
    if path.lower().endswith(".gz"):
        return gzip.open(path, "rb")
    if path.lower().endswith(".zst"):
        import zstandard  # noqa: PLC0415 - only such files need it.

        return zstandard.open(path, "rb")
    return open(path, "rb")
