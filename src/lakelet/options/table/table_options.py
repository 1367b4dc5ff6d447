"""All table options, collected from the modules of each theme.

The names that Java Paimon 1.4.2 knows are all here: an option that another engine may have stored is never unknown.
Families come after plain options, so that a key is first looked up by its full name.
"""

from typing import Any

from lakelet.options.option import Option
from lakelet.options.table.compaction import COMPACTION_OPTIONS
from lakelet.options.table.extensions import EXTENSION_OPTIONS
from lakelet.options.table.files import FILE_OPTIONS, SST_OPTIONS
from lakelet.options.table.iceberg import ICEBERG_OPTIONS
from lakelet.options.table.layout import LAYOUT_OPTIONS
from lakelet.options.table.merge import MERGING_OPTIONS
from lakelet.options.table.read import READING_OPTIONS
from lakelet.options.table.realtime import REALTIME_OPTIONS
from lakelet.options.table.retention import RETENTION_OPTIONS
from lakelet.options.table.service import SERVICE_OPTIONS
from lakelet.options.table.stream import STREAMED_TABLE_OPTIONS
from lakelet.options.table.versions import VERSION_OPTIONS
from lakelet.options.table.write import WRITING_OPTIONS

TABLE_OPTIONS: tuple[Option[Any], ...] = tuple(
    sorted(
        LAYOUT_OPTIONS
        + FILE_OPTIONS
        + WRITING_OPTIONS
        + REALTIME_OPTIONS
        + SST_OPTIONS
        + SERVICE_OPTIONS
        + READING_OPTIONS
        + STREAMED_TABLE_OPTIONS
        + VERSION_OPTIONS
        + RETENTION_OPTIONS
        + MERGING_OPTIONS
        + COMPACTION_OPTIONS
        + EXTENSION_OPTIONS
        + ICEBERG_OPTIONS,
        key=lambda option: (option.is_family, option.name),
    )
)
