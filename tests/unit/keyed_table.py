"""A primary-key table in memory, from the inside: its writer, and what its data files hold."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from lakelet.commit.committer import commit
from lakelet.commit.metadata.schemas import create_first_schema
from lakelet.commit.request import CommitRequest
from lakelet.format.data.data_file_formats import format_of_file
from lakelet.format.partition_folders import PartitionFolders
from lakelet.lsm.key_value_columns import file_fields
from lakelet.model.arrow.arrow_types import arrow_schema
from lakelet.model.commit_message import CommitMessage
from lakelet.model.data_file import DataFile
from lakelet.model.schema import new_schema
from lakelet.model.type_parser import parse_type
from lakelet.model.types import Field
from lakelet.options import DATA_FILE_THIN_MODE, TableOptions
from lakelet.sink.write.key_value_writer import KeyValueWriter
from lakelet.storage.home import TableHome
from lakelet.storage.memory import MemoryStore
from lakelet.storage.paths import TablePaths
from lakelet.storage.store import ObjectStore

KINDS = ("+I", "-U", "+U", "-D")


class KeyedTable:
    """A table `d.t`."""

    def __init__(
        self,
        columns: Mapping[str, str],
        key: Sequence[str] = ("id",),
        *,
        partitions: Sequence[str] = (),
        store: ObjectStore | None = None,
        **options: str,
    ) -> None:
        self.store = store or MemoryStore()
        self.home = TableHome(self.store, TablePaths.of("d", "t"))
        fields = [Field(0, name, parse_type(text)) for name, text in columns.items()]
        self.schema = new_schema(
            fields,
            partition_keys=partitions,
            primary_keys=key,
            options={"bucket": "1"} | options,
            comment=None,
            time_ms=0,
        )
        create_first_schema(self.home, self.schema)

    @property
    def thin(self) -> bool:
        return TableOptions(self.schema.options).get(DATA_FILE_THIN_MODE)

    def writer(self, **more: Any) -> KeyValueWriter:
        return KeyValueWriter(self.home, self.schema, **more)

    def batch(self, rows: Sequence[Mapping[str, object]]) -> pa.RecordBatch:
        return pa.RecordBatch.from_pylist(list(rows), schema=arrow_schema(self.schema.fields))

    def write(self, *batches: Sequence[Mapping[str, object]], **more: Any) -> tuple[CommitMessage, ...]:
        """One commit of rows, whose kind is their `_kind`."""
        writer = self.writer(**more)
        for rows in batches:
            writer.write(self.batch([without_kind(row) for row in rows]), kinds_of(rows))
        return writer.prepare_commit()

    def commit(self, messages: Sequence[CommitMessage]) -> None:
        commit(self.home, CommitRequest(self.home.ids.uuid(), tuple(messages)))

    def read(self, message: CommitMessage, file: DataFile) -> pa.Table:
        """All columns of a data file."""
        folder = PartitionFolders(self.home.paths, self.schema).bucket_folder(message.partition, message.bucket)
        fields = file_fields(self.schema, thin=self.thin)
        names = [field.name for field in fields]
        batches = format_of_file(file.name).read(self.store, f"{folder}/{file.name}", fields, names, batch_rows=1000)
        return pa.Table.from_batches(batches)

    def rows(self, messages: Sequence[CommitMessage]) -> list[dict[str, Any]]:
        """The rows of all new files, file by file."""
        return [
            row for message in messages for file in message.new_files for row in self.read(message, file).to_pylist()
        ]

    def data_files(self) -> list[str]:
        return sorted(info.path for info in self.store.list("d.db/t") if "/bucket-" in info.path)


def without_kind(row: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in row.items() if name != "_kind"}


def kinds_of(rows: Sequence[Mapping[str, object]]) -> np.ndarray[Any, np.dtype[np.int8]] | None:
    if not any("_kind" in row for row in rows):
        return None
    return np.array([KINDS.index(str(row.get("_kind", "+I"))) for row in rows], np.int8)
