"""Files of postpone tables, which hold rows in arrival order until compaction assigns their buckets.

    <prefix>-u-<user>-s-<number>-w-<uuid>-<n>.avro      in bucket-postpone/

Compaction reads the files of one writer in their order, given by the number between `-s-` and `-w-`. The files hold
`_KEY_` columns, all rows and all kinds; sequence numbers are all -1. They are Avro, which is read from front to back anyway,
and have no statistics; tables with a type that Avro cannot hold use their own format and statistics, or Parquet in place of SST,
whose files hold a key once and in order.
"""

from __future__ import annotations

import zlib
from dataclasses import replace

from lakelet.errors import InvalidError
from lakelet.format.data.avro_file import check_avro_fields
from lakelet.format.data.parquet_file import NAME as PARQUET
from lakelet.format.data.sst_file import NAME as SST
from lakelet.lsm.key_value_columns import file_fields
from lakelet.lsm.sorted_file import SortedFileSpec
from lakelet.options import DATA_FILE_THIN_MODE, TableOptions
from lakelet.storage.home import TableHome

UNNUMBERED = -1


def postponed_spec(spec: SortedFileSpec, home: TableHome) -> SortedFileSpec:
    """The settings of postponed files, derived from those of the table's other files."""
    number = zlib.crc32(home.ids.uuid().encode()) & 0x7FFFFFFF
    settings = replace(spec.settings, prefix=f"{spec.settings.prefix}-u-{home.ids.uuid()}-s-{number}-w-")
    thin = TableOptions(spec.schema.options).get(DATA_FILE_THIN_MODE)
    try:
        check_avro_fields(file_fields(spec.schema, thin=thin))
    except InvalidError:
        settings = settings.in_format(PARQUET) if settings.file_format == SST else settings
        return replace(spec, settings=settings, thin=thin)
    settings = replace(settings.in_format("avro"), stats_mode="none")
    return replace(spec, settings=settings, thin=thin, keeps_key_stats=False)
