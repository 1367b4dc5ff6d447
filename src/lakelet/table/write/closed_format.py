"""Warn that a table gets data files which only Lakelet can open: SST files (decision 0062)."""

from __future__ import annotations

import logging

from lakelet.model.schema import TableSchema
from lakelet.options import FILE_FORMAT, FILE_FORMAT_PER_LEVEL, TableOptions

_LOG = logging.getLogger(__name__)
_SST = "sst"


def warn_of_closed_format(where: str, new: TableSchema, old: TableSchema | None = None) -> None:
    """Warn if new files of a table at `where` may be SST files under this schema, and were none under the one before."""
    if not _writes_sst(new) or (old is not None and _writes_sst(old)):
        return
    _LOG.warning(
        "%s has data files in the format 'sst' from now on, which other engines cannot open; set '%s' to 'parquet', reset '%s' "
        "and run a full compaction to make the table open to them again",
        where,
        FILE_FORMAT.name,
        FILE_FORMAT_PER_LEVEL.name,
    )


def _writes_sst(schema: TableSchema) -> bool:
    options = TableOptions(schema.options)
    return _SST in (options.get(FILE_FORMAT), *options.get(FILE_FORMAT_PER_LEVEL).values())
