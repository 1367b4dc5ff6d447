"""Check that a schema can be written, by writing empty data files to memory before a table has it.

What a file format refuses (names, types, compressions, settings of its own) is decided by the format alone, when it begins a
file: so no second list of rules has to be maintained. Every level may have a format and a compression of its own, and postponed
rows have another.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from lakelet.errors import InvalidError
from lakelet.format.data.file_settings import FileSettings
from lakelet.format.data.new_files import NewFiles
from lakelet.lsm.key_value_columns import file_fields
from lakelet.lsm.sorted_file import SortedFileSpec
from lakelet.model.bucket_mode import BucketMode, bucket_mode
from lakelet.model.schema import TableSchema
from lakelet.model.types import Field
from lakelet.options import (
    FILE_COMPRESSION_PER_LEVEL,
    FILE_FORMAT_PER_LEVEL,
    TableOptions,
)
from lakelet.sink.write.postponed import postponed_spec
from lakelet.storage.home import TableHome
from lakelet.storage.memory import MemoryStore
from lakelet.storage.paths import TablePaths

_PATHS = TablePaths("trial")


def check_files(schema: TableSchema) -> None:
    """InvalidError if the files of a table with this schema cannot be written."""
    home = TableHome(MemoryStore(), _PATHS)
    for settings, fields in _files(schema, home):
        try:
            NewFiles(home, settings).begin(_PATHS.root, fields, without_ranges=frozenset()).close()
        except (pa.ArrowException, ValueError, OSError) as error:
            raise InvalidError(f"{settings.file_format} files cannot be written for this table: {error}") from error


def _files(schema: TableSchema, home: TableHome) -> list[tuple[FileSettings, Sequence[Field]]]:
    """The distinct settings under which new files of the table are written, and the columns of such a file."""
    options = TableOptions(schema.options)
    levels = {0}
    if schema.primary_keys:
        levels |= {*options.get(FILE_FORMAT_PER_LEVEL), *options.get(FILE_COMPRESSION_PER_LEVEL)}
        # Where some levels are named, the others have what holds for the table.
        levels.add(max(levels) + 1)
    found = [FileSettings.of(schema, level=level) for level in sorted(levels)]
    if not schema.primary_keys:
        return [(settings, schema.fields) for settings in found]
    specs = [SortedFileSpec.of(schema, settings) for settings in found]
    if bucket_mode(schema) is BucketMode.POSTPONE_MODE:
        specs.append(postponed_spec(specs[0], home))
    distinct = {(spec.settings.file_format, spec.settings.encoding.compression): spec for spec in specs}
    return [(spec.settings, file_fields(schema, thin=spec.thin)) for spec in distinct.values()]
