"""Open a lake by its address."""

from __future__ import annotations

import os
from collections.abc import Mapping

from lakelet.catalog.lake import Lake
from lakelet.errors import InvalidError
from lakelet.options import CATALOG_PREFIX, check_connection
from lakelet.storage.open import open_store


def connect(location: str | os.PathLike[str], options: Mapping[str, str] | None = None) -> Lake:
    """The lake at a folder (`./warehouse`) or in a bucket (`s3://bucket/prefix`, with options such as `s3.endpoint`).

    Options `catalog.<name>.<property>` register Iceberg catalogs, with pyiceberg's properties.
    """
    if not isinstance(location, (str, os.PathLike)):
        raise InvalidError(
            f"the warehouse location: expected a path, file://, s3:// or memory://, found {location!r} of type "
            f"{type(location).__name__}"
        )
    check_connection(options or {})
    storage = {key: text for key, text in (options or {}).items() if not key.startswith(CATALOG_PREFIX)}
    return Lake(open_store(os.fspath(location), storage), options=options)
