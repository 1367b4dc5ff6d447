"""Write changelog files: rows with the kinds of their changes, for those who follow a table.

    changelog-<uuid>-<n>.parquet     like a data file (`lsm.sorted_file`), but a key may have several rows, oldest first

They lie beside data files, in the format of their level unless `changelog-file.*` says otherwise, and are named by
the changelog manifest list of one snapshot. With `changelog-producer` = `input` they are made here, of the rows as they were
written; with `lookup` and `full-compaction` by compaction.
"""

from __future__ import annotations

import pyarrow as pa

from lakelet.format.data.file_settings import FileSettings
from lakelet.format.data.new_files import NewFiles
from lakelet.lsm.sorted_file import SortedFileSpec, SortedFileWriter
from lakelet.lsm.write_buffer import BufferedRows
from lakelet.model.bucket_mode import Place
from lakelet.model.data_file import DataFile
from lakelet.model.schema import TableSchema
from lakelet.storage.home import TableHome


def changelog_spec(schema: TableSchema, *, level: int = 0) -> SortedFileSpec:
    """The settings of changelog files that are made beside data files of a level."""
    return SortedFileSpec.of(schema, FileSettings.of_changelog(schema, level=level), level=level)


class InputChangelog:
    """The changelog files of one write: every row that came in, those that others of their key replace included.

    A bucket's rows are sorted whenever the buffer is full, so that of several files of a bucket the first tells of what came
    first. Threads may add to different buckets at the same time.
    """

    def __init__(self, home: TableHome, schema: TableSchema) -> None:
        self._home = home
        self._spec = changelog_spec(schema)
        self._files = NewFiles(home, self._spec.settings)
        self._writers: dict[Place, SortedFileWriter] = {}

    def add(self, place: Place, folder: str, rows: BufferedRows, group_rows: int) -> None:
        """Writes the drained rows of a bucket, which has this folder."""
        writer = self._writers.setdefault(place, SortedFileWriter(self._spec, self._home, self._files, folder))
        writer.expect_nans(rows.nan_columns)
        for batch in rows.in_order(place, group_rows):
            writer.write(pa.Table.from_batches([batch]))
        writer.roll()

    def finish(self, place: Place) -> tuple[DataFile, ...]:
        """The files of a bucket, oldest changes first."""
        return self._writers[place].finish() if place in self._writers else ()

    def remove(self) -> None:
        """Removes the files."""
        self._writers.clear()
        self._files.remove()
