"""Create the data files of one writer for one commit, and remove them on abort.

    name    <prefix><uuid>-<n><suffix>        data-6d2c…-0.parquet

Names are unique, and every file is recorded: a writer that aborts removes its uncommitted files. Those of a crash are left to
orphan removal.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from itertools import count

import pyarrow as pa

from lakelet.errors import LakeletError
from lakelet.format.data.data_file_format import FormatWriter
from lakelet.format.data.data_file_formats import data_file_format
from lakelet.format.data.file_settings import FileSettings
from lakelet.format.data.sst_file import NAME as SST
from lakelet.format.index.file.writer import SUFFIX as INDEX_SUFFIX
from lakelet.format.index.file.writer import FileIndexWriter
from lakelet.model.types import Field
from lakelet.storage.home import TableHome
from lakelet.storage.sequential_output import SequentialOutput
from lakelet.storage.store import OutputFile

_LOG = logging.getLogger(__name__)
_GATHERED_BYTES = 1 << 16


class NewFiles:
    """Begins files and removes them again. Threads may share one."""

    def __init__(self, home: TableHome, settings: FileSettings) -> None:
        self._home = home
        self._settings = settings
        self._prefix = f"{settings.prefix}{home.ids.uuid()}"
        self._numbers = count()
        self._open: set[NewFile] = set()
        self._paths: list[str] = []

    def begin(self, folder: str, fields: Sequence[Field], *, without_ranges: frozenset[str]) -> NewFile:
        """A file of these columns, open for writing; its footer has no ranges of the columns in `without_ranges`."""
        name = f"{self._prefix}-{next(self._numbers)}{self._settings.suffix}"
        path = f"{folder}/{name}"
        output = _Output(self._home.open_new(path))
        try:
            encoding = self._settings.encoding
            if self._settings.file_format == SST:
                encoding = replace(encoding, create_ms=self._home.clock.now_ms())
            writer = data_file_format(self._settings.file_format).open_writer(
                output, fields, encoding, without_ranges=without_ranges
            )
        except BaseException:
            output.abort()
            raise
        file = NewFile(self, name, path, output, writer)
        self._open.add(file)
        return file

    def remove(self) -> None:
        """Removes every file, finished or not."""
        while self._open:
            self._open.pop().discard()
        try:
            self._home.store.delete(self._paths)
        except LakeletError as error:
            where = self._home.where(self._home.paths.root)
            _LOG.warning("%d uncommitted files stay behind in %s: %s", len(self._paths), where, error)

    def put_beside(self, file: NewFile, suffix: str, data: bytes) -> str:
        """Write a file beside another; its name."""
        self._paths.append(f"{file.path}{suffix}")
        self._home.put_new(f"{file.path}{suffix}", data)
        return f"{file.name}{suffix}"

    def note_closed(self, file: NewFile) -> None:
        """Record that the file exists under its name."""
        self._open.discard(file)
        self._paths.append(file.path)


class NewFile:
    """One file being written."""

    def __init__(self, owner: NewFiles, name: str, path: str, output: _Output, writer: FormatWriter) -> None:
        self._owner = owner
        self.name = name
        self.path = path
        self._output = output
        self._writer = writer

    def write(self, table: pa.Table) -> None:
        """Appends rows as a row group, stripe or block of their own."""
        self._writer.write(table)

    def size(self) -> int:
        """Bytes written so far, about."""
        return self._writer.size()

    def close(self) -> int:
        """Ends the file; returns its size in bytes."""
        self._writer.close()
        size = self._output.tell()
        # From here on the file may be there, even if closing it fails.
        self._owner.note_closed(self)
        self._output.close()
        return size

    def put_index(self, writer: FileIndexWriter | None, embedded_bytes: int) -> tuple[bytes | None, tuple[str, ...]]:
        """End the indexes of the file, which is closed: their bytes, or the names of the files beside it that they are in where
        they have more than `embedded_bytes`."""
        data = None if writer is None else writer.finish()
        if data is None or len(data) <= embedded_bytes:
            return data, ()
        return None, (self._owner.put_beside(self, INDEX_SUFFIX, data),)

    def discard(self) -> None:
        """Gives the file up."""
        self._output.abort()


class _Output(SequentialOutput):
    """The output of a file, which ignores writes after it was discarded: Arrow's writers finish their file when they
    are garbage-collected, also after an abort. Short writes are gathered: Parquet has a dozen for a file of one row."""

    def __init__(self, output: OutputFile) -> None:
        self._to = output
        self._given_up = False
        self._gathered = bytearray()

    @property
    def closed(self) -> bool:
        return not self._given_up and self._to.closed

    def write(self, data: bytes) -> int:
        if self._given_up:
            return len(data)
        if len(data) + len(self._gathered) <= _GATHERED_BYTES:
            self._gathered += data
            return len(data)
        self._pass_on()
        self._to.write(data)
        return len(data)

    def flush(self) -> None:
        if not self._given_up:
            self._pass_on()
            self._to.flush()

    def tell(self) -> int:
        return 0 if self._given_up else self._to.tell() + len(self._gathered)

    def close(self) -> None:
        if self._given_up:
            return
        try:
            self._pass_on()
        except BaseException:
            self.abort()
            raise
        self._to.close()

    def abort(self) -> None:
        self._given_up = True
        self._gathered.clear()
        self._to.abort()

    def _pass_on(self) -> None:
        """Write what was gathered."""
        if self._gathered:
            gathered, self._gathered = bytes(self._gathered), bytearray()
            self._to.write(gathered)
