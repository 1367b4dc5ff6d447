"""Rows of a folding table in memory: every version of a key in every memtable, folded with what the snapshot's files hold.

    memtable, oldest first     the versions of each key, folded to one row, as its flush will write them
    all memtables and files    these rows beside the files of their buckets, folded by a lookup of their keys

What the writer shows is what the table shows after the flush: rows of files come unfolded into the same fold, and a memtable's
row is newer than all of them and than those of older memtables, unless `sequence.field` says otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from lakelet.commit.metadata.schemas import SchemaVersions
from lakelet.lsm.engine.fold import fold_groups
from lakelet.lsm.engine.key_groups import KeyGroups
from lakelet.lsm.engine.merge_engine import SelectEngine
from lakelet.lsm.key_bytes import encode_key_bytes
from lakelet.lsm.key_value_columns import SEQUENCE_NUMBER, VALUE_KIND
from lakelet.lsm.key_words import encode_versions
from lakelet.lsm.merge_spec import MergeSpec
from lakelet.lsm.source.memory_run import MemoryRun
from lakelet.model.schema import TableSchema
from lakelet.model.snapshot import Snapshot
from lakelet.options import TableOptions
from lakelet.read.lookup.point_reader import PointReader
from lakelet.read.merge.overlaid_split import AnySplit, OverlaidSplit
from lakelet.realtime.read.sequenced_memory import MemoryPart, Places
from lakelet.scan.plan import Planner
from lakelet.storage.home import TableHome

# Above the sequence numbers of all files.
_FIRST_SEQUENCE = 1 << 62


def folded_rows(
    parts: Sequence[MemoryPart], home: TableHome, schema: TableSchema, snapshot: Snapshot | None
) -> tuple[pa.Table, Places]:
    """The visible rows of all keys in the parts, in all columns, and the numbers of these keys, ascending. The parts are given
    oldest first, each with the versions of a key in the order in which they were put; the snapshot has none of them."""
    merge = MergeSpec.of(schema, drop_deletes=False)
    schema_of = SchemaVersions(home, {schema.id: schema})
    reader = PointReader(home, schema, schema.names, schema_of)
    memtables = [_folded(part, merge, _FIRST_SEQUENCE + number) for number, part in enumerate(parts)]
    memtables = [(rows, places) for rows, places in memtables if rows.num_rows]
    if not memtables:
        return reader.schema.empty_table(), np.empty(0, np.int64)
    numbers, firsts = np.unique(np.concatenate([places for _, places in memtables]), return_index=True)
    every = pa.Table.from_batches([rows.select(list(schema.primary_keys)) for rows, _ in memtables])
    keys = every.take(pa.array(firsts))
    lookups: list[tuple[AnySplit, Places]] = []
    rest = np.ones(len(numbers), np.bool_)
    if snapshot is not None:
        for split, at in Planner(home, schema, schema_of, TableOptions(schema.options)).plan_keys(snapshot, keys):
            lookups.append((OverlaidSplit(split, _runs(memtables, numbers[at], schema)), at))
            rest[at] = False
    for at in _by_partition(keys, np.flatnonzero(rest), schema):
        lookups.append((OverlaidSplit(None, _runs(memtables, numbers[at], schema)), at))
    rows, found = reader.get_many(lookups, keys)
    return rows, numbers[found]


def _folded(part: MemoryPart, merge: MergeSpec, sequence: int) -> tuple[pa.RecordBatch, Places]:
    """One row for each key of a part, with its kind, and the numbers of the keys."""
    assert not isinstance(merge.engine, SelectEngine)
    if merge.ignore_delete:
        part = part.kept(~part.retracts)
    kinds = np.zeros(part.rows.num_rows, np.int8) if part.kinds is None else part.kinds
    rows = pa.RecordBatch.from_arrays(
        [pa.array(np.full(part.rows.num_rows, sequence)), pa.array(kinds), *part.rows.columns],
        names=[SEQUENCE_NUMBER, VALUE_KIND, *part.rows.schema.names],
    )
    columns = [[part.rows.column(name) for name, _ in merge.versions]]
    types = [data_type for _, data_type in merge.versions]
    words = encode_versions(columns, types, descending=merge.descending)[0].T[::-1] if types else ()
    # The sort is stable: versions that are equal stay in the order of their arrival.
    order = np.lexsort((*words, part.places))
    places = part.places[order]
    starts = np.flatnonzero(np.append(True, places[1:] != places[:-1])) if len(places) else np.empty(0, np.int64)
    return fold_groups(KeyGroups(rows, order, starts), merge.engine, merge), places[starts]


def _runs(
    memtables: Sequence[tuple[pa.RecordBatch, Places]], numbers: Places, schema: TableSchema
) -> tuple[MemoryRun, ...]:
    """The rows of some keys, a run for each memtable that has any."""
    kept = [rows.filter(pa.array(np.isin(places, numbers))) for rows, places in memtables]
    return tuple(MemoryRun.of(rows, schema) for rows in kept if rows.num_rows)


def _by_partition(keys: pa.Table, places: Places, schema: TableSchema) -> Iterator[Places]:
    """The places of keys, those of each partition apart: runs know keys without their partition."""
    if not len(places) or not schema.partition_keys:
        if len(places):
            yield places
        return
    columns = [keys.column(name).take(pa.array(places)).combine_chunks() for name in schema.partition_keys]
    encoded = encode_key_bytes(columns, [schema.field(name).type for name in schema.partition_keys])
    codes = encoded.dictionary_encode().indices.to_numpy()
    for code in range(int(codes.max()) + 1):
        yield places[codes == code]
