"""The live files of a version as columns of its manifests, and their partitions as text."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from lakelet.commit.metadata.manifests import ManifestSettings, live_entries, snapshot_manifests
from lakelet.format.manifest.manifest_columns import ENTRY_SCHEMA, IDENTITY_COLUMNS
from lakelet.format.rows.binary_row_columns import decode_rows
from lakelet.model.bucket_mode import POSTPONE_BUCKET
from lakelet.model.schema import TableSchema
from lakelet.options import TableOptions
from lakelet.sql.system.java_text import partition_texts
from lakelet.sql.system.version import TableVersion


def version_entries(version: TableVersion, columns: Sequence[str], *, only_placed: bool) -> pa.Table:
    """These columns of the live files, and those that identify them; `only_placed` leaves out postponed buckets."""
    if version.snapshot is None:
        names = dict.fromkeys([*IDENTITY_COLUMNS, *columns])
        return pa.schema([ENTRY_SCHEMA.field(name) for name in names]).empty_table()
    entries = live_entries(
        version.home,
        snapshot_manifests(version.home, version.snapshot),
        columns=columns,
        threads=ManifestSettings.of(TableOptions(version.schema.options)).threads,
    )
    return entries.filter(pc.not_equal(entries.column("_BUCKET"), POSTPONE_BUCKET)) if only_placed else entries


def partition_text_of(entries: pa.Table, schema: TableSchema) -> pa.Array:
    """`{value, value}` of each entry's partition, computed once per partition."""
    encoded = entries.column("_PARTITION").combine_chunks().dictionary_encode()
    return texts_of_partitions(encoded.dictionary, schema).take(encoded.indices)


def texts_of_partitions(partitions: pa.Array, schema: TableSchema) -> pa.Array:
    """`{value, value}` of partitions, which are BinaryRow bytes."""
    types = schema.partition_types
    columns = decode_rows(partitions, types) if types else []
    return partition_texts(columns, types, len(partitions))
