"""A primary-key table made of files that a test writes by hand: no manifests, no snapshots, only what a reader sees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from lakelet.format.data.data_file_format import WriteSettings
from lakelet.format.data.data_file_formats import data_file_format
from lakelet.format.index import deletion_vectors
from lakelet.format.manifest.manifest_columns import EMPTY_ROW
from lakelet.format.rows.binary_row import encode_row
from lakelet.lsm.key_value_columns import SEQUENCE_NUMBER, VALUE_KIND, file_fields
from lakelet.model.arrow.arrow_types import arrow_schema
from lakelet.model.data_file import DataFile, DeletionVectorRange, Stats
from lakelet.model.schema import KEY_PREFIX, TableSchema, new_schema
from lakelet.model.split import DeletionVector, Split
from lakelet.model.type_parser import parse_type
from lakelet.model.types import Field
from lakelet.storage.home import TableHome
from lakelet.storage.memory import MemoryStore
from lakelet.storage.paths import TablePaths
from lakelet.storage.store import ObjectStore

EMPTY_STATS = Stats(EMPTY_ROW, EMPTY_ROW, ())
FOLDER = "d.db/t/bucket-0"
Row = Mapping[str, Any]


def schema_of_columns(
    columns: Mapping[str, str], key: Sequence[str], *, partition: Sequence[str] = (), **options: str
) -> TableSchema:
    """A first schema. Underscores in the names of options stand for dots, two for a dash."""
    fields = [Field(0, name, parse_type(text)) for name, text in columns.items()]
    named = {name.replace("__", "-").replace("_", "."): text for name, text in options.items()}
    return new_schema(
        fields, partition_keys=partition, primary_keys=key, options={"bucket": "1", **named}, comment=None, time_ms=0
    )


@dataclass
class KeyValueTable:
    """One bucket's files, and the versions of the schema under which they were written."""

    schema: TableSchema
    store: ObjectStore = field(default_factory=MemoryStore)
    versions: dict[int, TableSchema] = field(default_factory=dict)
    files: list[DataFile] = field(default_factory=list)
    vectors: dict[str, DeletionVector] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.versions[self.schema.id] = self.schema

    @property
    def home(self) -> TableHome:
        return TableHome(self.store, TablePaths("d.db/t"))

    def schema_of(self, schema_id: int) -> TableSchema:
        return self.versions[schema_id]

    def evolve(self, schema: TableSchema) -> None:
        self.schema = replace(schema, id=len(self.versions))
        self.versions[self.schema.id] = self.schema

    def write(
        self,
        rows: Sequence[tuple[int, int, Row]],
        *,
        thin: bool = False,
        file_format: str = "parquet",
        level: int = 0,
        group_rows: int | None = None,
        deletes_known: bool = True,
    ) -> DataFile:
        """A file of (sequence, kind, row), in key order already."""
        schema = self.schema
        fields = file_fields(schema, thin=thin)
        values: dict[str, list[Any]] = {
            SEQUENCE_NUMBER: [row[0] for row in rows],
            VALUE_KIND: [row[1] for row in rows],
        }
        for column in schema.fields:
            values[column.name] = [row[2].get(column.name) for row in rows]
        for name in schema.trimmed_primary_keys:
            values[f"{KEY_PREFIX}{name}"] = values[name]
        table = pa.table([values[one.name] for one in fields], schema=arrow_schema(fields))
        name = f"data-{len(self.files)}.{file_format}"
        with self.store.open_output(f"{FOLDER}/{name}") as output:
            writer = data_file_format(file_format).open_writer(
                output, fields, WriteSettings(), without_ranges=frozenset()
            )
            for start in range(0, len(rows), group_rows or len(rows)):
                writer.write(table.slice(start, group_rows or len(rows)))
            writer.close()
        return self._add(name, rows, level, deletes_known)

    def _add(self, name: str, rows: Sequence[tuple[int, int, Row]], level: int, deletes_known: bool) -> DataFile:
        keys = self.schema.trimmed_key_fields
        types = [one.type for one in keys]
        ends = [encode_row([row[2][one.name] for one in keys], types) for row in (rows[0], rows[-1])]
        info = self.store.head(f"{FOLDER}/{name}")
        assert info is not None
        file = DataFile(
            name=name,
            size=info.size,
            row_count=len(rows),
            min_key=ends[0],
            max_key=ends[1],
            key_stats=EMPTY_STATS,
            value_stats=EMPTY_STATS,
            min_sequence=min(row[0] for row in rows),
            max_sequence=max(row[0] for row in rows),
            schema_id=self.schema.id,
            level=level,
            delete_row_count=sum(row[1] & 1 for row in rows) if deletes_known else None,
        )
        self.files.append(file)
        return file

    def hide(self, file: DataFile, positions: Sequence[int]) -> None:
        """A deletion vector for a file."""
        vector = deletion_vectors.encode(np.array(positions, np.int64))
        path = f"d.db/t/index/vector-of-{file.name}"
        self.store.put(path, b"\x01" + vector)
        place = DeletionVectorRange(file.name, 1, len(vector) - 8, len(positions))
        self.vectors[file.name] = DeletionVector(path, place)

    def split(self, *, needs_merge: bool = True, files: Sequence[DataFile] | None = None) -> Split:
        """All files, or some, as one split."""
        chosen = tuple(self.files if files is None else files)
        return Split(
            snapshot_id=1,
            partition=EMPTY_ROW,
            bucket=0,
            total_buckets=1,
            files=chosen,
            paths=tuple(f"{FOLDER}/{file.name}" for file in chosen),
            deletion_vectors=tuple(self.vectors.get(file.name) for file in chosen),
            needs_merge=needs_merge,
        )
