"""Data files and index files as manifests describe them."""

from __future__ import annotations

from dataclasses import dataclass

FILE_SOURCE_APPEND = 0
FILE_SOURCE_COMPACT = 1


@dataclass(frozen=True, slots=True)
class Stats:
    """Minimum and maximum of each column as BinaryRow bytes (with the arity prefix), and how many NULLs it has.

    A NULL in both minimum and maximum together with a null count of 0 or None means unknown, not "no values".
    """

    min_values: bytes
    max_values: bytes
    null_counts: tuple[int | None, ...] | None


@dataclass(frozen=True, slots=True)
class DataFile:
    """One immutable data file: its name, size, key range, statistics and level in the tree.

    `min_key`, `max_key` and the key statistics are those of an empty row in append tables.
    `value_stats_columns` names the columns the value statistics cover; None means all columns of the
    file's schema. `write_columns` likewise for the columns stored in the file.
    """

    name: str
    size: int
    row_count: int
    min_key: bytes
    max_key: bytes
    key_stats: Stats
    value_stats: Stats
    min_sequence: int
    max_sequence: int
    schema_id: int
    level: int
    extra_files: tuple[str, ...] = ()
    creation_ms: int | None = None
    delete_row_count: int | None = None
    embedded_index: bytes | None = None
    source: int | None = FILE_SOURCE_APPEND
    value_stats_columns: tuple[str, ...] | None = None
    external_path: str | None = None
    first_row_id: int | None = None
    write_columns: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class DeletionVectorRange:
    """The byte range of one data file's deletion vector in an index file."""

    data_file: str
    offset: int
    length: int
    cardinality: int | None


@dataclass(frozen=True, slots=True)
class IndexFile:
    """An index file as the index manifest describes it: a hash index or deletion vectors."""

    index_type: str
    name: str
    size: int
    row_count: int
    deletion_vectors: tuple[DeletionVectorRange, ...] | None = None
    external_path: str | None = None
