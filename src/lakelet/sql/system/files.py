"""`$files` and `$file_key_ranges`: the live data files of a version, one row each.

Everything is computed on the columns of the manifests: a table of 100,000 files is a few arrays here, not as many objects.
Column bounds, which cost most, are decoded only where a query reads them. Files of postponed buckets are left out, as in
Paimon, until compaction assigns their rows to a bucket.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakelet.commit.metadata.schemas import SchemaVersions
from lakelet.format.partition_folders import PartitionFolders
from lakelet.format.rows.binary_row_columns import decode_bounds
from lakelet.model.data_file import FILE_SOURCE_APPEND, FILE_SOURCE_COMPACT
from lakelet.model.types import Atomic, Field
from lakelet.read.evolve import evolve_array
from lakelet.scan.file_ranges import list_element, of_arity, stats_groups
from lakelet.sql.query.relation import Rows
from lakelet.sql.system.built_rows import MILLIS, built_rows, required, table_from
from lakelet.sql.system.java_text import key_texts, named_texts, value_texts
from lakelet.sql.system.live_files import partition_text_of, version_entries
from lakelet.sql.system.version import TableVersion, Version
from lakelet.table import Table

_SHARED = [
    pa.field("partition", pa.string()),
    required("bucket", pa.int32()),
    required("file_path", pa.string()),
    required("file_format", pa.string()),
    required("schema_id", pa.int64()),
    required("level", pa.int32()),
    required("record_count", pa.int64()),
    required("file_size_in_bytes", pa.int64()),
    pa.field("min_key", pa.string()),
    pa.field("max_key", pa.string()),
]
FILES = pa.schema(
    [
        *_SHARED,
        required("null_value_counts", pa.string()),
        required("min_value_stats", pa.string()),
        required("max_value_stats", pa.string()),
        pa.field("min_sequence_number", pa.int64()),
        pa.field("max_sequence_number", pa.int64()),
        pa.field("creation_time", MILLIS),
        pa.field("deleteRowCount", pa.int64()),
        pa.field("file_source", pa.string()),
        pa.field("first_row_id", pa.int64()),
        pa.field("write_cols", pa.list_(pa.string())),
    ]
)
FILE_KEY_RANGES = pa.schema([*_SHARED, pa.field("first_row_id", pa.int64())])
_SOURCES = {FILE_SOURCE_APPEND: "APPEND", FILE_SOURCE_COMPACT: "COMPACT"}
_PLAIN = {
    "bucket": "_BUCKET",
    "schema_id": "_SCHEMA_ID",
    "level": "_LEVEL",
    "record_count": "_ROW_COUNT",
    "file_size_in_bytes": "_FILE_SIZE",
    "min_sequence_number": "_MIN_SEQUENCE_NUMBER",
    "max_sequence_number": "_MAX_SEQUENCE_NUMBER",
    "deleteRowCount": "_DELETE_ROW_COUNT",
    "first_row_id": "_FIRST_ROW_ID",
    "write_cols": "_WRITE_COLS",
}
_STATS = ("_VALUE_STATS", "_VALUE_STATS_COLS", "_SCHEMA_ID", "_ROW_COUNT")
_NEEDED = {
    "file_path": ("_EXTERNAL_PATH",),
    "creation_time": ("_CREATION_TIME",),
    "file_source": ("_FILE_SOURCE",),
    "min_key": ("_MIN_KEY",),
    "max_key": ("_MAX_KEY",),
    "null_value_counts": _STATS,
    "min_value_stats": _STATS,
    "max_value_stats": _STATS,
    **{name: (column,) for name, column in _PLAIN.items()},
}


def files(table: Table, version: Version) -> Rows:
    """The live files with all metadata of their manifest entries."""
    return _file_rows(version.of(table), FILES)


def file_key_ranges(table: Table, version: Version) -> Rows:
    """The live files with their key ranges only."""
    return _file_rows(version.of(table), FILE_KEY_RANGES)


def _file_rows(version: TableVersion, schema: pa.Schema) -> Rows:
    def build(names: Sequence[str]) -> pa.Table:
        needed = list(dict.fromkeys(column for name in names for column in _NEEDED.get(name, ())))
        entries = version_entries(version, needed, only_placed=True)
        return table_from(_Columns(version, entries).makers(), names)

    return built_rows(schema, build)


class _Columns:
    """The columns of `$files`, from those of live entries."""

    def __init__(self, version: TableVersion, entries: pa.Table) -> None:
        self._version = version
        self._entries = entries
        self._schema_of = SchemaVersions(version.home, {version.schema.id: version.schema})

    def makers(self) -> dict[str, Callable[[], pa.Array]]:
        """The function that computes each column."""
        made: dict[str, Callable[[], pa.Array]] = {
            "partition": lambda: partition_text_of(self._entries, self._version.schema),
            "file_path": self._paths,
            "file_format": lambda: pc.replace_substring_regex(self._one("_FILE_NAME"), r"^.*\.", ""),
            "min_key": lambda: self._keys("_MIN_KEY"),
            "max_key": lambda: self._keys("_MAX_KEY"),
            "null_value_counts": lambda: self._by_column(_null_counts),
            "min_value_stats": lambda: self._by_column(_bounds("_MIN_VALUES")),
            "max_value_stats": lambda: self._by_column(_bounds("_MAX_VALUES")),
            "creation_time": lambda: self._one("_CREATION_TIME").cast(MILLIS),
            "file_source": self._sources,
        }
        return made | {name: _taken(self._entries, column) for name, column in _PLAIN.items()}

    def _one(self, name: str) -> pa.Array:
        return _taken(self._entries, name)()

    def _sources(self) -> pa.Array:
        known = pa.array(list(_SOURCES), pa.int32())
        return pa.array(list(_SOURCES.values())).take(pc.index_in(self._one("_FILE_SOURCE"), known))

    def _paths(self) -> pa.Array:
        folders = PartitionFolders(self._version.home.paths, self._version.schema)
        partitions = self._one("_PARTITION").dictionary_encode()
        buckets = self._one("_BUCKET").to_numpy()
        # The folder is computed once per bucket, however many files it holds.
        pairs = np.stack([partitions.indices.to_numpy().astype(np.int64), buckets])
        different, places = np.unique(pairs, axis=1, return_inverse=True)
        known = partitions.dictionary.to_pylist()
        texts = [
            self._version.home.where(folders.bucket_folder(known[partition], int(bucket)))
            for partition, bucket in different.T.tolist()
        ]
        inside = pa.array(texts, pa.string()).take(pa.array(places.reshape(-1)))
        paths = pc.binary_join_element_wise(inside, self._one("_FILE_NAME"), "/")
        return pc.coalesce(self._one("_EXTERNAL_PATH"), paths)

    def _keys(self, name: str) -> pa.Array:
        types = [field.type for field in self._version.schema.trimmed_key_fields]
        count = self._entries.num_rows
        if not types:
            return pa.nulls(count, pa.string())
        rows = of_arity(self._entries.column(name), len(types))
        texts = key_texts(decode_bounds(rows, types), types, count)
        return pc.if_else(rows.is_valid(), texts, pa.scalar(None, pa.string()))

    def _by_column(self, values: _Values) -> pa.Array:
        """`{column=value}` of each file, for files of different schemas and with statistics of different columns."""
        parts: list[pa.Array] = []
        order: list[np.ndarray[tuple[int], np.dtype[np.int64]]] = []
        for rows, schema_id, stats_columns in stats_groups(self._entries) if self._entries.num_rows else []:
            stored = self._schema_of(schema_id)
            covered = [stored.field(name) for name in stats_columns] if stats_columns is not None else stored.fields
            group = _Group(self._entries.take(pa.array(rows)), covered, frozenset(field.id for field in stored.fields))
            parts.append(named_texts(values(group, self._version.schema.fields), len(rows)))
            order.append(rows)
        if not parts:
            return pa.array([], pa.string())
        return pa.concat_arrays(parts).take(pa.array(np.argsort(np.concatenate(order))))


@dataclass(frozen=True, slots=True)
class _Group:
    """Files of one schema version, whose columns are `stored`, with statistics of the `covered` columns."""

    entries: pa.Table
    covered: Sequence[Field]
    stored: frozenset[int]

    def values(self, member: str) -> list[pa.Array]:
        """The bounds of the covered columns."""
        types = [field.type for field in self.covered]
        rows = self.entries.column("_VALUE_STATS").combine_chunks().field(member)
        return decode_bounds(of_arity(rows, len(types)), types) if types else []


_Values = Callable[[_Group, Sequence[Field]], dict[str, pa.Array]]


def _null_counts(group: _Group, fields: Sequence[Field]) -> dict[str, pa.Array]:
    """The NULL counts of each column; a file written before a column was added counts all rows as NULL."""
    counts = group.entries.column("_VALUE_STATS").combine_chunks().field("_NULL_COUNTS")
    all_rows = group.entries.column("_ROW_COUNT").combine_chunks()
    known = {field.id: list_element(counts, place) for place, field in enumerate(group.covered)}
    unknown = pa.nulls(len(all_rows), pa.int64())
    return {
        field.name: known.get(field.id, unknown if field.id in group.stored else all_rows).cast(pa.string())
        for field in fields
    }


def _bounds(member: str) -> _Values:
    """The minimum or maximum values of each column."""

    def found(group: _Group, fields: Sequence[Field]) -> dict[str, pa.Array]:
        unknown = pa.nulls(group.entries.num_rows, pa.string())
        texts = dict.fromkeys((field.name for field in fields), unknown)
        wanted = {field.id: field for field in fields}
        for stored, values in zip(group.covered, group.values(member), strict=True):
            field = wanted.get(stored.id)
            if field is not None and isinstance(field.type, Atomic) and values.null_count < len(values):
                evolved = evolve_array(values, stored.type, field.type, field.name)
                texts[field.name] = value_texts(evolved, field.type, cast=False)
        return texts

    return found


def _taken(entries: pa.Table, name: str) -> Callable[[], pa.Array]:
    def one_array() -> pa.Array:
        column = entries.column(name)
        return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)

    return one_array
