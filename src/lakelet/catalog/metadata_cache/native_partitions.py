"""Level 4 of a native table: the partitions of a snapshot with their manifests, counts and column bounds.

Everything is computed from the live entries of the snapshot, whose manifests are kept decoded: after a commit only its own are
read. Bounds are never updated in place, for a removed file may have held the least value: they are computed again from the live
files, and a column of which one file says nothing has no bound.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakelet.cache.values import PartitionCacheValue, PartitionMetadata
from lakelet.commit.metadata.manifests import drop_removed, read_manifest, snapshot_manifests
from lakelet.commit.metadata.source import metadata
from lakelet.format.manifest.manifest_columns import READ_COLUMNS, STATS_COLUMNS
from lakelet.format.partition_folders import PartitionFolders
from lakelet.format.rows.binary_row_columns import decode_rows
from lakelet.model.manifest import ManifestFile
from lakelet.model.schema import TableSchema
from lakelet.model.snapshot import Snapshot
from lakelet.scan.file_ranges import stats_groups, value_ranges
from lakelet.scan.kept_entries import appended_entries
from lakelet.storage.home import TableHome

Rows = npt.NDArray[np.int64]
_MANIFEST = "_MANIFEST"
_COLUMNS = (*READ_COLUMNS, *STATS_COLUMNS)


def partition_values(
    home: TableHome, snapshot: Snapshot, schema: TableSchema, schema_of: Callable[[int], TableSchema]
) -> PartitionCacheValue:
    """The partitions of a snapshot, in its schema. A table without partition columns has one, of an empty path.

    Where the manifests are those of the version that was computed last and some that add files, only the partitions of these
    files are computed."""
    manifests = snapshot_manifests(home, snapshot)
    kept = metadata(home).kept(home)
    name = ("newest partitions", home.paths.branch_root, schema.id, schema.fields, schema.partition_keys)
    before: tuple[tuple[str, ...], Mapping[str, PartitionMetadata]] | None = None if kept is None else kept.get(name)
    added = None if before is None else appended_entries(home, before[0], manifests, _COLUMNS)
    if before is None or added is None:
        partitions = _partitions(home, manifests, schema, schema_of, None)
    else:
        changed = added.column("_PARTITION").combine_chunks().unique()
        partitions = {**before[1], **_partitions(home, manifests, schema, schema_of, changed)}
    value = PartitionCacheValue(snapshot.id, partitions, snapshot.delta_manifest_list)
    if kept is not None:
        kept.put(name, (tuple(one.name for one in manifests), partitions), value.nbytes)
    return value


def _partitions(
    home: TableHome,
    manifests: Sequence[ManifestFile],
    schema: TableSchema,
    schema_of: Callable[[int], TableSchema],
    only: pa.Array | None,
) -> dict[str, PartitionMetadata]:
    """The partitions by path, in the order in which they came to be; `only` some of them, if they are given."""
    tables = []
    for number, manifest in enumerate(manifests):
        table = read_manifest(home, manifest, _COLUMNS)
        if only is not None:
            table = table.filter(pc.is_in(table.column("_PARTITION"), value_set=only))
        tables.append(table.append_column(_MANIFEST, pa.repeat(pa.scalar(number, pa.int32()), table.num_rows)))
    entries = drop_removed(pa.concat_tables(tables)) if tables else None
    if entries is None or not entries.num_rows:
        return {}
    encoded = entries.column("_PARTITION").combine_chunks().dictionary_encode()
    codes = encoded.indices.to_numpy()
    order = np.argsort(codes, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(codes[order])) + 1)
    names = [manifest.name for manifest in manifests]
    folders = PartitionFolders(home.paths, schema)
    values = [column.to_pylist() for column in decode_rows(encoded.dictionary, schema.partition_types)]
    bounds = _bounds(entries, schema, schema_of)
    numbers, counts, sizes = (_numbers(entries, name) for name in (_MANIFEST, "_ROW_COUNT", "_FILE_SIZE"))
    found: dict[str, PartitionMetadata] = {}
    for rows in groups:
        code = int(codes[rows[0]])
        spec = {
            name: None if column[code] is None else str(column[code])
            for name, column in zip(schema.partition_keys, values, strict=True)
        }
        path = folders.partition_path(encoded.dictionary[code].as_py())
        lower, upper = _partition_bounds(rows, bounds)
        found[path] = PartitionMetadata(
            spec,
            tuple(names[number] for number in np.unique(numbers[rows]).tolist()),
            int(counts[rows].sum()),
            len(rows),
            int(sizes[rows].sum()),
            lower,
            upper,
        )
    return found


def _numbers(entries: pa.Table, name: str) -> Rows:
    found: Rows = entries.column(name).cast(pa.int64()).to_numpy()
    return found


def _partition_bounds(
    rows: Rows, bounds: Mapping[int, tuple[pa.Array, pa.Array, npt.NDArray[np.bool_]]]
) -> tuple[dict[int, str], dict[int, str]]:
    """The least and greatest values of the files in these rows, by field id."""
    lower: dict[int, str] = {}
    upper: dict[int, str] = {}
    places = pa.array(rows)
    for field_id, (lows, highs, empty) in bounds.items():
        least = _bound(lows.take(places), empty[rows], pc.min)
        greatest = _bound(highs.take(places), empty[rows], pc.max)
        if least is not None:
            lower[field_id] = least
        if greatest is not None:
            upper[field_id] = greatest
    return lower, upper


def _bound(values: pa.Array, empty: npt.NDArray[np.bool_], choose: Callable[[pa.Array], pa.Scalar]) -> str | None:
    """The least or greatest of some files' bounds; None where a file that has values has no bound, or there is no value."""
    known = values.is_valid().to_numpy(zero_copy_only=False)
    if not (known | empty).all() or not known.any():
        return None
    if pa.types.is_floating(values.type) and pc.any(pc.is_nan(values)).as_py():
        return None
    try:
        return str(choose(values).as_py())
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid, ValueError, OverflowError):
        return None


def _bounds(
    entries: pa.Table, schema: TableSchema, schema_of: Callable[[int], TableSchema]
) -> dict[int, tuple[pa.Array, pa.Array, npt.NDArray[np.bool_]]]:
    """By field id the bounds of every file, NULL where they are unknown, and whether it holds nothing but NULL there; columns
    without any are left out."""
    parts: dict[str, list[tuple[Rows, pa.Array, pa.Array, npt.NDArray[np.bool_]]]] = {}
    groups = stats_groups(entries)
    for rows, schema_id, stats_columns in groups:
        part = entries.take(pa.array(rows))
        for name, one in value_ranges(part, schema, schema_of(schema_id), stats_columns, None).items():
            nulls = np.zeros(len(rows), bool)
            if one.null_counts is not None:
                nulls = pc.fill_null(pc.equal(one.null_counts, one.row_counts), False).to_numpy(zero_copy_only=False)
            if one.min is None or one.max is None:
                if not nulls.all():
                    continue
                parts.setdefault(name, []).append((rows, pa.nulls(len(rows)), pa.nulls(len(rows)), nulls))
            else:
                parts.setdefault(name, []).append((rows, one.min, one.max, nulls))
    found = {}
    for field in schema.fields:
        pieces = parts.get(field.name, [])
        typed = [low.type for _, low, _, _ in pieces if not pa.types.is_null(low.type)]
        if not typed:
            continue
        unknown = np.setdiff1d(np.arange(entries.num_rows), np.concatenate([rows for rows, *_ in pieces]))
        pieces.append((unknown, pa.nulls(len(unknown)), pa.nulls(len(unknown)), np.zeros(len(unknown), bool)))
        back = np.argsort(np.concatenate([rows for rows, *_ in pieces]))
        lows = pa.concat_arrays([low.cast(typed[0]) for _, low, _, _ in pieces]).take(pa.array(back))
        highs = pa.concat_arrays([high.cast(typed[0]) for _, _, high, _ in pieces]).take(pa.array(back))
        found[field.id] = (lows, highs, np.concatenate([nulls for *_, nulls in pieces])[back])
    return found
