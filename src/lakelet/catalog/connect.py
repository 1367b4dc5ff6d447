"""Opening a lake by its address."""

from __future__ import annotations

from collections.abc import Mapping

from lakelet.catalog.lake import Lake
from lakelet.options import check_connection
from lakelet.storage.open import open_store


def connect(location: str, options: Mapping[str, str] | None = None) -> Lake:
    """The lake at a folder (`./warehouse`) or in a bucket (`s3://bucket/prefix`, with options such as `s3.endpoint`)."""
    check_connection(options or {})
    return Lake(open_store(str(location), dict(options or {})))
