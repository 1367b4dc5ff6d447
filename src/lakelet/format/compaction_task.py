"""Serialise compaction tasks of append tables, for a queue or another process: version 2 for one table, 1 for many.

    version         int32, big-endian: 2 for a task of one table, 1 for one that says of which table
    partition       int32, big-endian, the length of what follows; then a BinaryRow with its arity in front
    file count      int32, big-endian
    files           one after another, as `data_file_bytes` draws them
    table           only in a task of many tables: int32, big-endian, the length of the body; then the body of a row of
                    two fields, database STRING and table STRING (with `$branch_NAME` behind it on a branch)

Behind the version these are the bytes of Java Paimon 1.4.2's AppendCompactTaskSerializer and
MultiTableCompactionTaskSerializer, which leave the version to the sender. Paimon guarantees no compatibility between
versions, and neither does this: a task of another version is refused, and must be planned again. Truncated or trailing bytes
are a `CorruptionError`.

A task names files, which may have been removed when it arrives; the worker looks them up in the newest snapshot.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from lakelet.errors import CorruptionError, InvalidError
from lakelet.format.data_file_bytes import decode_data_file, encode_data_file, with_length
from lakelet.format.rows.nested_rows import Fields, encode_body, text_cell
from lakelet.model.data_file import DataFile

APPEND_TASK_VERSION = 2
MULTI_TABLE_TASK_VERSION = 1
_INT = struct.Struct(">i")
_IDENTIFIER_ARITY = 2


@dataclass(frozen=True, slots=True)
class AppendTask:
    """Files of one partition of an append table that are to be rewritten together; the partition with its arity."""

    partition: bytes
    files: tuple[DataFile, ...]


@dataclass(frozen=True, slots=True)
class MultiTableTask:
    """The same, of the table that it names."""

    partition: bytes
    files: tuple[DataFile, ...]
    database: str
    table: str


def encode_append_task(task: AppendTask) -> bytes:
    """The bytes of a task of one table."""
    return _INT.pack(APPEND_TASK_VERSION) + _encode_files(task.partition, task.files)


def decode_append_task(data: bytes, *, where: str = "a compaction task") -> AppendTask:
    """The inverse; errors name `where`."""
    reader = _Reader(data, where)
    reader.version("append compaction task", APPEND_TASK_VERSION)
    task = AppendTask(*_decode_files(reader))
    reader.end()
    return task


def encode_multi_table_task(task: MultiTableTask) -> bytes:
    """The bytes of a task that names its table."""
    identifier = encode_body([text_cell(task.database), text_cell(task.table)])
    return _INT.pack(MULTI_TABLE_TASK_VERSION) + _encode_files(task.partition, task.files) + with_length(identifier)


def decode_multi_table_task(data: bytes, *, where: str = "a compaction task") -> MultiTableTask:
    """The inverse; errors name `where`."""
    reader = _Reader(data, where)
    reader.version("multi-table compaction task", MULTI_TABLE_TASK_VERSION)
    partition, files = _decode_files(reader)
    identifier = Fields.of_body(reader.piece("table identifier"), _IDENTIFIER_ARITY, where=f"{where}: table identifier")
    if identifier.is_null(0) or identifier.is_null(1):
        raise CorruptionError(f"{where}: the table identifier has no database or no table")
    task = MultiTableTask(partition, files, identifier.text_at(0), identifier.text_at(1))
    reader.end()
    return task


def _encode_files(partition: bytes, files: tuple[DataFile, ...]) -> bytes:
    return b"".join((with_length(partition), _INT.pack(len(files)), *map(encode_data_file, files)))


def _decode_files(reader: _Reader) -> tuple[bytes, tuple[DataFile, ...]]:
    partition = reader.piece("partition")
    if len(partition) < _INT.size:
        raise CorruptionError(f"{reader.where}: a partition cannot be {len(partition)} bytes long")
    Fields.of_body(partition[_INT.size :], max(0, _INT.unpack_from(partition)[0]), where=f"{reader.where}: partition")
    count = reader.number("file count")
    # Every file has its length in front: a count beyond that is refused before anything is made of it.
    if not 0 <= count <= reader.left // _INT.size:
        raise CorruptionError(f"{reader.where}: {count} files cannot be in the {reader.left} bytes that are left")
    files = tuple(
        decode_data_file(reader.piece(f"file {index}"), where=f"{reader.where}: file {index}") for index in range(count)
    )
    return partition, files


class _Reader:
    """Reads pieces one after another."""

    def __init__(self, data: bytes, where: str) -> None:
        self.where = where
        self._data = data
        self._at = 0

    @property
    def left(self) -> int:
        """Bytes not read yet."""
        return len(self._data) - self._at

    def version(self, what: str, expected: int) -> None:
        """Reads the version, and refuses any but the expected one."""
        found = self.number("version")
        if found != expected:
            raise InvalidError(
                f"{self.where}: {what} of version {found}, expected version {expected}; "
                "tasks are not kept from one version to another: plan the compaction anew"
            )

    def number(self, what: str) -> int:
        """An int32."""
        return int(_INT.unpack(self._take(_INT.size, what))[0])

    def piece(self, what: str) -> bytes:
        """Bytes with their length in front."""
        length = self.number(f"the length of the {what}")
        if length < 0:
            raise CorruptionError(f"{self.where}: the {what} claims {length} bytes")
        return self._take(length, what)

    def end(self) -> None:
        """Refuses bytes that are left over."""
        if self.left:
            raise CorruptionError(f"{self.where}: {self.left} bytes follow the end of the task")

    def _take(self, length: int, what: str) -> bytes:
        if length > self.left:
            raise CorruptionError(
                f"{self.where}: ends in the {what}: expected {length} bytes at {self._at}, found {self.left}"
            )
        self._at += length
        return self._data[self._at - length : self._at]
