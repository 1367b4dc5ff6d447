"""Conflict checks: what concurrent commits may have changed between a writer's read of the table and its commit.

    rule 5   a bucket gained rows with sequence numbers as great as ours      SequenceConflictError: restamp and try again
    rule 6   the indexes behind an assignment of buckets were replaced        AssignmentConflictError: assign and write again
    schema   the layout that files were written for has changed since         ConflictError
    changes  buckets that rows were looked up in were written to              ConflictError: look again
    keeps    buckets that values were kept from were written to               KeptValuesConflictError: look again
    reads    rows were written since all of them were read                    ConflictError: look again
    levels   files of one level of a bucket would overlap in keys             ConflictError
    writers  two writers of one commit wrote the same keys of a bucket        ConflictError
    twice    a file is in the table already, where a commit asks for the check ConflictError

Three kinds have errors of their own, for writers that still have their rows; for all others they are conflicts like any
other. Each check reads as little as it can: nothing where the writer's snapshot is still the newest, else only entries of its
buckets.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import combinations, pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lakelet.commit.index_changes import DELETION_VECTORS, read_index_entries
from lakelet.commit.metadata.manifests import live_entries, read_entries, read_manifest_list
from lakelet.commit.metadata.schemas import read_schema
from lakelet.commit.metadata.snapshots import snapshots_backwards, try_snapshot
from lakelet.errors import ConflictError
from lakelet.format.index.hash_index import HASH_INDEX
from lakelet.format.partition_folders import PartitionFolders
from lakelet.format.rows.binary_row_columns import decode_bounds, decode_rows
from lakelet.model.bucket_mode import POSTPONE_BUCKET, Place
from lakelet.model.commit_message import CommitMessage
from lakelet.model.data_file import DataFile
from lakelet.model.manifest import ManifestFile
from lakelet.model.schema import TableSchema
from lakelet.model.snapshot import CommitKind, Snapshot
from lakelet.model.types import DataType
from lakelet.options import (
    BUCKET,
    CHANGELOG_PRODUCER,
    DEFAULT_AGGREGATE_FUNCTION,
    DELETION_VECTORS_ENABLED,
    FUNCTION_OPTIONS,
    IGNORE_DELETE,
    MERGE_ENGINE,
    ROWKIND_FIELD,
    SEQUENCE_FIELD,
    SEQUENCE_FIELD_SORT_ORDER,
    SEQUENCE_GROUP,
    TableOptions,
)
from lakelet.storage.home import TableHome

PartitionFilter = Callable[[pa.Array], NDArray[np.bool_]]
# Snapshots of these kinds show the same rows as the one before.
_SAME_ROWS = (CommitKind.COMPACT, CommitKind.ANALYZE)


class SequenceConflictError(ConflictError):
    """Another writer's rows got sequence numbers as great as ours. Restamped above `above`, ours can be committed."""

    def __init__(self, message: str, above: Mapping[Place, int]) -> None:
        super().__init__(message)
        self.above = dict(above)

    def __reduce__(self) -> tuple[type[SequenceConflictError], tuple[str, dict[Place, int]]]:
        return type(self), (str(self), self.above)


class AssignmentConflictError(ConflictError):
    """Keys got their buckets from a version that is no longer the newest. Assigned anew, the rows can be written again."""


class KeptValuesConflictError(ConflictError):
    """Stored values that rows keep may have changed since. Looked up anew, the rows can be written again."""


def check_one_writer(messages: Sequence[CommitMessage], schema: TableSchema) -> None:
    """Reject a commit in which two writers wrote one bucket so that the newer row of a key is undefined."""
    by_place: dict[Place, list[CommitMessage]] = {}
    for message in _numbered(messages):
        by_place.setdefault((message.partition, message.bucket), []).append(message)
    types = [field.type for field in schema.trimmed_key_fields]
    for (_, bucket), several in by_place.items():
        for one, other in combinations(several, 2):
            if one.new_hash_index is not None and other.new_hash_index is not None:
                raise ConflictError(
                    f"two writers of this commit gave new keys to bucket {bucket}: assign the keys of a partition in one "
                    "writer, or in several with numbers of their own"
                )
            if any(_clash(file, against, types) for file in one.new_files for against in other.new_files):
                raise ConflictError(
                    f"two writers of this commit wrote the same keys of bucket {bucket}, with no order between their rows: use "
                    "one writer per bucket"
                )


def check_sequences(
    home: TableHome,
    messages: Sequence[CommitMessage],
    latest: Snapshot | None,
    previous: Sequence[ManifestFile],
    replaced: PartitionFilter,
    schema: TableSchema,
    *,
    threads: int = 1,
) -> None:
    """Rule 5: rows of this commit must be newer than all rows of their buckets, unless those are replaced."""
    if latest is None:
        return
    newest = (latest.id, latest.delta_manifest_list)
    ours: dict[Place, int] = {}
    for message in _numbered(_outside(messages, replaced)):
        numbers = [file.min_sequence for file in message.new_files if file.level == 0]
        if numbers and message.sequenced_at != newest:
            place = (message.partition, message.bucket)
            ours[place] = min(*numbers, ours.get(place, numbers[0]))
    if not ours:
        return
    live = live_in(home, previous, ours, schema.partition_types, columns=["_MAX_SEQUENCE_NUMBER"], threads=threads)
    greatest = live.group_by(["_PARTITION", "_BUCKET"]).aggregate([("_MAX_SEQUENCE_NUMBER", "max")])
    places = zip(greatest.column("_PARTITION").to_pylist(), greatest.column("_BUCKET").to_pylist(), strict=True)
    numbers_there = greatest.column("_MAX_SEQUENCE_NUMBER_max").to_pylist()
    above = {
        place: number
        for place, number in zip(places, numbers_there, strict=True)
        if place in ours and number >= ours[place]
    }
    if above:
        raise SequenceConflictError(
            f"another writer put rows into {len(above)} of {len(ours)} buckets of {home.where(home.paths.branch_root)} since "
            f"this one began, up to sequence number {max(above.values())}: write again",
            above,
        )


def check_levels(
    home: TableHome,
    messages: Sequence[CommitMessage],
    removed: pa.Table,
    previous: Sequence[ManifestFile],
    schema: TableSchema,
    *,
    threads: int = 1,
) -> None:
    """Reject a commit after which files of one level of a bucket, above level 0, would overlap in keys."""
    added: dict[tuple[bytes, int, int], list[tuple[str, bytes, bytes]]] = {}
    for message in messages:
        for file in message.new_files:
            if file.level > 0:
                place = (message.partition, message.bucket, file.level)
                added.setdefault(place, []).append((file.name, file.min_key, file.max_key))
    if not added:
        return
    places = {(partition, bucket) for partition, bucket, _ in added}
    live = live_in(home, previous, places, schema.partition_types, columns=["_MIN_KEY", "_MAX_KEY"], threads=threads)
    names = ("_PARTITION", "_BUCKET", "_LEVEL", "_FILE_NAME")
    gone = set(zip(*(removed.column(name).to_pylist() for name in names), strict=True))
    columns = (live.column(name).to_pylist() for name in (*names, "_MIN_KEY", "_MAX_KEY"))
    for partition, bucket, level, name, low, high in zip(*columns, strict=True):
        if (partition, bucket, level) in added and (partition, bucket, level, name) not in gone:
            added[partition, bucket, level].append((name, low, high))
    types = [field.type for field in schema.trimmed_key_fields]
    for (partition, bucket, level), files in added.items():
        ranges = sorted((comparable_key(low, types), comparable_key(high, types), name) for name, low, high in files)
        for (_, before, one), (after, _, other) in pairwise(ranges):
            if after <= before:
                folder = PartitionFolders(home.paths, schema).bucket_folder(partition, bucket)
                raise ConflictError(
                    f"{home.where(folder)}: {one} and {other} would hold the same keys on level {level}; another writer "
                    "compacted this bucket first"
                )


def check_settled(
    home: TableHome,
    messages: Sequence[CommitMessage],
    latest: Snapshot | None,
    previous: Sequence[ManifestFile],
    schema: TableSchema,
    *,
    threads: int = 1,
) -> None:
    """Rule 6: rows were found superseded by searching all files above level 0, and these must still be all."""
    resting = {(m.partition, m.bucket): m for m in messages if m.settled is not None}
    if not resting:
        return
    live = live_in(home, previous, resting, schema.partition_types, columns=(), threads=threads)
    above: dict[Place, set[str]] = {place: set() for place in resting}
    names = ("_PARTITION", "_BUCKET", "_LEVEL", "_FILE_NAME")
    for partition, bucket, level, name in zip(*(live.column(column).to_pylist() for column in names), strict=True):
        if level > 0 and (partition, bucket) in above:
            above[partition, bucket].add(name)
    vectors: dict[Place, set[str]] = {place: set() for place in resting}
    for entry in read_index_entries(home, latest) if latest is not None else ():
        place = (entry.partition, entry.bucket)
        if entry.file.index_type != DELETION_VECTORS or place not in vectors:
            continue
        # Java leaves vectors of removed files behind, and nobody reads these.
        if any(vector.data_file in above[place] for vector in entry.file.deletion_vectors or ()):
            vectors[place].add(entry.file.name)
    for (partition, bucket), message in resting.items():
        if frozenset(above[partition, bucket]) != message.settled or vectors[partition, bucket] != set(
            message.old_vectors or ()
        ):
            folder = PartitionFolders(home.paths, schema).bucket_folder(partition, bucket)
            raise ConflictError(f"{home.where(folder)}: another writer compacted this bucket first")


def check_assignments(home: TableHome, messages: Sequence[CommitMessage], latest: Snapshot | None) -> None:
    """Rule 6: the indexes by which buckets were assigned to new rows must still be current."""
    assigned = [message for message in messages if message.hash_indexes is not None]
    if assigned:
        standing: dict[bytes, set[str]] = {}
        for entry in read_index_entries(home, latest) if latest is not None else ():
            if entry.file.index_type == HASH_INDEX:
                standing.setdefault(entry.partition, set()).add(entry.file.name)
        for message in assigned:
            if set(message.hash_indexes or ()) != standing.get(message.partition, set()):
                raise AssignmentConflictError(
                    f"{home.where(home.paths.branch_root)}: another writer changed which keys the dynamic buckets of a "
                    "partition hold, since this one assigned its rows: write again"
                )
    looked = [message for message in messages if message.assigned_at is not None]
    if len({message.assigner for message in looked}) > 1:
        raise ConflictError(
            "two writers of this commit assigned rows across partitions, and may have put one key into two: use one writer"
        )
    if looked and not _same_rows_since(home, _looked_at(looked[0]), latest):
        raise AssignmentConflictError(
            f"{home.where(home.paths.branch_root)}: rows were written since this writer looked up the buckets of keys, in "
            f"snapshot {looked[0].assigned_at}: write again"
        )


def check_unread(
    home: TableHome, messages: Sequence[CommitMessage], read_at: int | None, latest: Snapshot | None
) -> None:
    """Rows that were looked up to be changed must be unchanged: no commit has written to their buckets since.

    The sequence numbers of the buckets do not show it: a delete may be compacted away by now, and its row would come back.
    """
    if read_at is None:
        return
    newest = (0, "") if latest is None else (latest.id, latest.delta_manifest_list)
    bases = {message.sequenced_at for message in messages if message.sequenced_at is not None}
    if newest[0] == read_at and bases <= {newest}:
        return
    places = {(message.partition, message.bucket) for message in messages}
    oldest = newest[0] + 1
    for snapshot in snapshots_backwards(home, newest[0]):
        if snapshot.id <= read_at:
            break
        oldest = snapshot.id
        if snapshot.commit_kind is CommitKind.OVERWRITE or (
            snapshot.commit_kind is CommitKind.APPEND and places & _touched(home, snapshot)
        ):
            raise ConflictError(
                f"{home.where(home.paths.branch_root)}: snapshot {snapshot.id} changed rows since they were looked up in "
                f"snapshot {read_at}: look again"
            )
    if oldest != read_at + 1 or newest[0] == read_at:
        raise ConflictError(
            f"{home.where(home.paths.branch_root)}: snapshots since {read_at} are gone, so that it is unknown "
            "whether rows that were looked up there have changed: look again"
        )


def check_kept(home: TableHome, messages: Sequence[CommitMessage], latest: Snapshot | None) -> None:
    """Values that rows keep must still be the stored ones: no commit has written to their buckets since they were looked up."""
    by_version: dict[tuple[int, str], list[CommitMessage]] = {}
    for message in messages:
        if message.kept_from is not None:
            by_version.setdefault(message.kept_from, []).append(message)
    for (number, delta_manifest_list), kept in by_version.items():
        found = try_snapshot(home, number) if number else None
        if found is not None and found.delta_manifest_list != delta_manifest_list:
            raise KeptValuesConflictError(
                f"{home.where(home.paths.branch_root)}: snapshot {number}, in which values to keep were looked up, was rolled "
                "back: look again"
            )
        try:
            check_unread(home, kept, number, latest)
        except ConflictError as conflict:
            raise KeptValuesConflictError(str(conflict)) from conflict


def _touched(home: TableHome, snapshot: Snapshot) -> set[Place]:
    """The buckets that a snapshot added files to."""
    manifests = read_manifest_list(home, snapshot.delta_manifest_list)
    entries = read_entries(home, manifests, columns=["_PARTITION", "_BUCKET"])
    return set(zip(*(entries.column(name).to_pylist() for name in ("_PARTITION", "_BUCKET")), strict=True))


def check_same_rows(home: TableHome, read: tuple[int, str] | None, latest: Snapshot | None) -> None:
    """ConflictError if a commit that depends on all rows of a version would not find the same rows."""
    if read is not None and not _same_rows_since(home, read, latest):
        raise ConflictError(
            f"{home.where(home.paths.branch_root)}: rows were written since they were looked at in snapshot {read[0]}: look again"
        )


def check_added_once(
    home: TableHome,
    messages: Sequence[CommitMessage],
    previous: Sequence[ManifestFile],
    schema: TableSchema,
    *,
    threads: int = 1,
) -> None:
    """Reject files that are live already, and files that are named twice: their rows would be duplicated."""
    added: list[tuple[Place, str]] = []
    for message in messages:
        moved = {file.name for file in message.deleted_files}
        place = (message.partition, message.bucket)
        added += [(place, file.name) for file in message.new_files if file.name not in moved]
    if not added:
        return
    live = live_in(home, previous, {place for place, _ in added}, schema.partition_types, columns=(), threads=threads)
    seen = set(live.column("_FILE_NAME").to_pylist())
    for (partition, bucket), name in added:
        if name in seen:
            folder = PartitionFolders(home.paths, schema).bucket_folder(partition, bucket)
            raise ConflictError(f"{home.where(folder)}/{name} is in the table already: its rows would be there twice")
        seen.add(name)


def check_schemas(home: TableHome, messages: Sequence[CommitMessage], schema: TableSchema) -> None:
    """Files of an older schema must have been laid out as the newest one asks: the columns and options that decide where rows go
    and which of them is visible are the same."""
    ours = _layout(schema)
    for schema_id in {file.schema_id for message in messages for file in message.new_files} - {schema.id}:
        theirs = _layout(read_schema(home, schema_id))
        changed = sorted(key for key in ours if ours[key] != theirs[key])
        if changed:
            raise ConflictError(
                f"{home.where(home.paths.branch_root)}: files were written under schema {schema_id}, and schema {schema.id} has "
                f"another '{changed[0]}': write them again"
            )


def _layout(schema: TableSchema) -> dict[str, object]:
    """What files rely on, columns by their field ids, which survive renames."""
    options = TableOptions(schema.options)
    kept = (
        BUCKET,
        MERGE_ENGINE,
        SEQUENCE_FIELD_SORT_ORDER,
        DELETION_VECTORS_ENABLED,
        CHANGELOG_PRODUCER,
        IGNORE_DELETE,
        DEFAULT_AGGREGATE_FUNCTION,
    )
    columns = {
        "bucket-key": schema.bucket_keys,
        "primary-key": schema.primary_keys,
        "sequence.field": options.get(SEQUENCE_FIELD) or (),
        "rowkind.field": [name for name in (options.get(ROWKIND_FIELD),) if name],
    }
    return {
        **{key: [schema.field(name).id for name in names if name in schema.names] for key, names in columns.items()},
        **_column_rules(schema, options),
        **{option.name: options.get(option) for option in kept},  # type: ignore[misc]
    }


def _column_rules(schema: TableSchema, options: TableOptions) -> dict[str, object]:
    """How rows of one key are merged, column by column; of the columns that there are."""
    ids = {field.name: field.id for field in schema.fields}
    rules: dict[str, object] = {}
    for family in FUNCTION_OPTIONS:
        rules[family.name] = {ids[name]: value for name, value in options.get_family(family).items() if name in ids}
    groups = options.get_family(SEQUENCE_GROUP).items()
    rules[SEQUENCE_GROUP.name] = {
        tuple(ids.get(name.strip()) for name in key.split(",")): tuple(ids.get(name) for name in members or ())
        for key, members in groups
    }
    return rules


def live_in(
    home: TableHome,
    manifests: Sequence[ManifestFile],
    places: Collection[Place],
    types: Sequence[DataType],
    *,
    columns: Sequence[str] | None,
    threads: int = 1,
) -> pa.Table:
    """The live files of a few buckets, of partitions of these types; only manifests that may mention them are read, and only
    these columns."""
    partitions = {partition for partition, _ in places}
    buckets = {bucket for _, bucket in places}
    partition_set = pa.array(list(partitions), pa.binary())
    bucket_set = pa.array(list(buckets), pa.int32())

    def keep(entries: pa.Table) -> pa.Table:
        near = pc.and_(
            pc.is_in(entries.column("_BUCKET"), value_set=bucket_set),
            pc.is_in(entries.column("_PARTITION"), value_set=partition_set),
        )
        return entries.filter(near)

    chosen = [manifest for manifest in manifests if _may_hold(manifest, partitions, buckets, types)]
    return live_entries(home, chosen, columns=columns, keep=keep, threads=threads)


def _may_hold(
    manifest: ManifestFile, partitions: Collection[bytes], buckets: Collection[int], types: Sequence[DataType]
) -> bool:
    low, high = manifest.min_bucket, manifest.max_bucket
    if low is not None and high is not None and not any(low <= bucket <= high for bucket in buckets):
        return False
    stats = manifest.partition_stats
    # A manifest of a single partition names it; NULLs beside values are not in the bounds, so that these must not be there.
    if not types or not stats.null_counts or any(count != 0 for count in stats.null_counts):
        return True
    if stats.min_values != stats.max_values:
        return True
    if any(bound.null_count for bound in decode_bounds(pa.array([stats.min_values], pa.binary()), types)):
        return True
    return comparable_key(stats.min_values, types) in {comparable_key(partition, types) for partition in partitions}


def _numbered(messages: Iterable[CommitMessage]) -> list[CommitMessage]:
    """The messages about rows that have sequence numbers; postponed rows have none yet."""
    return [message for message in messages if message.bucket != POSTPONE_BUCKET]


def _outside(messages: Iterable[CommitMessage], replaced: PartitionFilter) -> list[CommitMessage]:
    """The messages about partitions that the commit does not replace."""
    messages = list(messages)
    mask = replaced(pa.array([message.partition for message in messages], pa.binary()))
    return [message for message, gone in zip(messages, mask.tolist(), strict=True) if not gone]


def _looked_at(message: CommitMessage) -> tuple[int, str]:
    """The snapshot that the message's keys were looked up in, and its delta manifest list where that is known."""
    base = message.assigned_at or 0
    is_known = message.sequenced_at is not None and message.sequenced_at[0] == base
    return base, message.sequenced_at[1] if is_known and message.sequenced_at is not None else ""


def _same_rows_since(home: TableHome, looked_at: tuple[int, str], latest: Snapshot | None) -> bool:
    """Whether only compactions were committed since a snapshot, compared by id where its manifest list is not known."""
    base, delta_manifest_list = looked_at
    if latest is None:
        return base == 0
    next_id = latest.id + 1
    for snapshot in snapshots_backwards(home, latest.id):
        if snapshot.id <= base:
            break
        if snapshot.commit_kind not in _SAME_ROWS:
            return False
        next_id = snapshot.id
    if next_id != base + 1:
        return False
    if not delta_manifest_list or base == 0:
        return True
    found = try_snapshot(home, base)
    return found is None or found.delta_manifest_list == delta_manifest_list


def _clash(one: DataFile, other: DataFile, types: Sequence[DataType]) -> bool:
    """Whether two files overlap both in sequence numbers and in keys."""
    if one.level or other.level or one.max_sequence < other.min_sequence or other.max_sequence < one.min_sequence:
        return False
    return comparable_key(one.min_key, types) <= comparable_key(other.max_key, types) and comparable_key(
        other.min_key, types
    ) <= comparable_key(one.max_key, types)


def comparable_key(row: bytes, types: Sequence[DataType]) -> tuple[object, ...]:
    """A key that compares as keys of the table do: NaN is the greatest number, and -0.0 is less than 0.0."""
    columns = decode_rows(pa.array([row], pa.binary()), types)
    return tuple(_ordered(column) for column in columns)


def _ordered(column: pa.Array) -> object:
    if pa.types.is_temporal(column.type):
        # As numbers, for Python's own times end earlier and have no nanoseconds.
        column = column.cast(pa.int32() if column.type.bit_width == 32 else pa.int64())
    value = column[0].as_py()
    if isinstance(value, float):
        is_nan = math.isnan(value)
        return is_nan, 0.0 if is_nan else value, math.copysign(1.0, value)
    return value
