"""All table options, collected from the modules of each theme.

The names that Java Paimon 1.4.2 knows are all here: an option that another engine may have stored is never unknown.
Families come after plain options, so that a key is first looked up by its full name.
"""

from typing import Any

from lakelet.options.compaction import COMPACTION_OPTIONS
from lakelet.options.extensions import EXTENSION_OPTIONS
from lakelet.options.files import FILE_OPTIONS, SST_OPTIONS
from lakelet.options.iceberg import ICEBERG_OPTIONS
from lakelet.options.layout import LAYOUT_OPTIONS
from lakelet.options.merge import MERGING_OPTIONS
from lakelet.options.option import Option
from lakelet.options.read import READING_OPTIONS
from lakelet.options.realtime import REALTIME_OPTIONS
from lakelet.options.retention import RETENTION_OPTIONS
from lakelet.options.service import SERVICE_OPTIONS
from lakelet.options.stream import STREAMED_TABLE_OPTIONS
from lakelet.options.versions import VERSION_OPTIONS
from lakelet.options.write import WRITING_OPTIONS

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
