"""Build the writer that a table needs; all its stages use one and the same snapshot.

append table      AppendWriter
HASH_FIXED,       KeyValueWriter; rows alone decide their bucket
  POSTPONE_MODE
HASH_DYNAMIC      KeyValueWriter, buckets from the hash indexes of the snapshot
KEY_DYNAMIC       KeyValueWriter, places of keys from the keys that the snapshot shows
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lakelet.commit.changes import replaced_partitions
from lakelet.commit.conflict.conflicts import PartitionFilter
from lakelet.commit.metadata.manifests import live_entries, snapshot_manifests
from lakelet.commit.metadata.missing_file import SnapshotExpiredError
from lakelet.commit.metadata.schemas import SchemaVersions
from lakelet.commit.metadata.snapshots import latest_snapshot
from lakelet.commit.request import Overwrite
from lakelet.errors import InvalidError
from lakelet.format.rows.binary_row_columns import hash_rows
from lakelet.model.bucket_mode import BucketMode, Place, bucket_mode
from lakelet.model.commit_message import CommitMessage
from lakelet.model.manifest import ManifestFile
from lakelet.model.row_arrays import Kinds
from lakelet.model.schema import TableSchema
from lakelet.model.snapshot import Snapshot
from lakelet.model.split import Split
from lakelet.options import CHANGELOG_PRODUCER, TableOptions
from lakelet.predicate.row_filter import row_filter
from lakelet.predicate.tree import And, Comparison
from lakelet.read.table_reader import TableReader
from lakelet.scan.plan import Planner, Where
from lakelet.sink.bucket.cross_partition import CrossPartitionAssigner, LiveKeys
from lakelet.sink.bucket.dynamic_buckets import DynamicBucketAssigner
from lakelet.sink.bucket.placers import ExtractedPlacer, RowPlacer
from lakelet.sink.rows.refused_rows import keys_of_unlike_rows
from lakelet.sink.write.append_writer import AppendWriter
from lakelet.sink.write.key_value_writer import KeyValueWriter
from lakelet.sink.write.sequences import CommittedSequences
from lakelet.storage.home import TableHome


class Writer(Protocol):
    """Writes the rows of one commit, cast to the table's columns."""

    def announce(self, keys: Iterable[pa.RecordBatch]) -> None:
        """Announce the primary keys of all rows to come, where knowing them together saves work; otherwise optional."""
        ...

    def write(self, batch: pa.RecordBatch, kinds: Kinds | None) -> None:
        """Write rows with their kinds."""
        ...

    def refuse_unlike_rows(self) -> None:
        """Make several rows of one key an error, for some of them would keep stored values that others change."""
        ...

    def prepare_commit(self) -> tuple[CommitMessage, ...]:
        """Close the files and return messages about them."""
        ...

    def abort(self) -> None:
        """Remove everything written."""
        ...

    def runs(self, place: Place) -> int:
        """How many sorted runs a bucket had before, for buckets that rows were written to."""
        ...


@dataclass(frozen=True, slots=True)
class PinnedVersion:
    """The version that a write is based on. Writers in many processes share one that was looked up once: then `sequences` holds
    all its numbers, and what is pickled is all that they need. `table_uuid` says for which table they write."""

    snapshot: Snapshot | None
    sequences: CommittedSequences | None = None
    table_uuid: str | None = None

    @staticmethod
    def shared(
        home: TableHome,
        schema: TableSchema,
        snapshot: Snapshot | None,
        replaces: Overwrite | None,
        *,
        table_uuid: str | None,
    ) -> PinnedVersion:
        """For writers elsewhere."""
        manifests = [] if snapshot is None else snapshot_manifests(home, snapshot)
        sequences = CommittedSequences.all_of(home, schema, manifests, replaces=replaces is not None)
        return PinnedVersion(snapshot, sequences, table_uuid)


@dataclass(frozen=True, slots=True)
class WriterSettings:
    """How a writer differs from the default one of its table: a placer with assignments made elsewhere, one row per key, or room
    for the sequence numbers of rows that are committed before its own."""

    placer: RowPlacer | None = None
    one_row_per_key: bool = False
    sequence_room: int = 0


def open_writer(
    home: TableHome,
    schema: TableSchema,
    replaces: Overwrite | None,
    *,
    base: PinnedVersion | None = None,
    settings: WriterSettings | None = None,
) -> Writer:
    """A writer of rows on top of `base`, by default the newest snapshot; the commit will overwrite what `replaces` says."""
    if not schema.primary_keys:
        sequences = None if base is None else base.sequences
        return _Appending(AppendWriter(home, schema, replaces=replaces is not None, sequences=sequences))
    while True:
        pinned = base or PinnedVersion(latest_snapshot(home))
        try:
            return _Keyed(home, schema, pinned, replaces, settings or WriterSettings())
        except SnapshotExpiredError:
            # No row has been written yet: a newer version serves as well, unless it was pinned for others too.
            if base is not None:
                raise


@dataclass(frozen=True, slots=True)
class _Appending:
    writer: AppendWriter

    def announce(self, keys: Iterable[pa.RecordBatch]) -> None:
        """There are no keys."""

    def write(self, batch: pa.RecordBatch, kinds: Kinds | None) -> None:
        if kinds is not None and (kinds & 1).any():
            place = int((kinds & 1).argmax())
            raise InvalidError(
                f"row {place} takes a row away, but the table has no primary key by which to find it: use delete(where=…)"
            )
        self.writer.write(batch)

    def refuse_unlike_rows(self) -> None:
        """There are no keys."""

    def prepare_commit(self) -> tuple[CommitMessage, ...]:
        return self.writer.prepare_commit()

    def abort(self) -> None:
        self.writer.abort()

    def runs(self, place: Place) -> int:
        return 0


class _Keyed:
    """The writer of a primary-key table: its messages name the snapshot that sequence numbers continue from."""

    def __init__(
        self,
        home: TableHome,
        schema: TableSchema,
        base: PinnedVersion,
        replaces: Overwrite | None,
        settings: WriterSettings,
    ) -> None:
        snapshot = base.snapshot
        self._base = (0, "") if snapshot is None else (snapshot.id, snapshot.delta_manifest_list)
        manifests = _Manifests(home, snapshot)
        self._placer = settings.placer or _placer(home, schema, snapshot, manifests, replaces)
        sequences = base.sequences or CommittedSequences(home, schema, manifests(), replaces=replaces is not None)
        self._sequences = sequences
        self._writer = KeyValueWriter(
            home,
            schema,
            placer=self._placer,
            first_sequence=lambda place: sequences.first_free(place) + settings.sequence_room,
            one_row_per_key=settings.one_row_per_key,
            logs=replaces is None and TableOptions(schema.options).get(CHANGELOG_PRODUCER) == "input",
        )

    def announce(self, keys: Iterable[pa.RecordBatch]) -> None:
        if isinstance(self._placer, CrossPartitionAssigner):
            self._placer.announce(keys)

    def write(self, batch: pa.RecordBatch, kinds: Kinds | None) -> None:
        self._writer.write(batch, kinds)

    def refuse_unlike_rows(self) -> None:
        self._writer.refuse_repeated_keys(keys_of_unlike_rows)

    def prepare_commit(self) -> tuple[CommitMessage, ...]:
        return tuple(replace(message, sequenced_at=self._base) for message in self._writer.prepare_commit())

    def abort(self) -> None:
        self._writer.abort()

    def runs(self, place: Place) -> int:
        return self._sequences.runs(place)


class _Manifests:
    """The manifests of a snapshot, read when they are first asked for."""

    def __init__(self, home: TableHome, snapshot: Snapshot | None) -> None:
        self._home = home
        self._snapshot = snapshot
        self._read: list[ManifestFile] | None = None

    def __call__(self) -> list[ManifestFile]:
        if self._read is None:
            self._read = [] if self._snapshot is None else snapshot_manifests(self._home, self._snapshot)
        return self._read


def _placer(
    home: TableHome,
    schema: TableSchema,
    snapshot: Snapshot | None,
    manifests: _Manifests,
    replaces: Overwrite | None,
) -> RowPlacer:
    mode = bucket_mode(schema)
    stored = StoredKeys(home, schema, snapshot, replaced_partitions(replaces, schema))
    if mode is BucketMode.HASH_DYNAMIC:
        fresh = replaces is not None
        live = {} if fresh else row_counts(home, manifests())
        return DynamicBucketAssigner(home, schema, snapshot, live=live, keys_of=stored.hashes, fresh=fresh)
    if mode is BucketMode.KEY_DYNAMIC:
        fresh = replaces is not None and replaces.partition is not None and not replaces.partition
        counts = {} if fresh else row_counts(home, manifests())
        return CrossPartitionAssigner(home, schema, snapshot, scan=stored.places, counts=counts, fresh=fresh)
    return ExtractedPlacer(schema)


def row_counts(home: TableHome, manifests: list[ManifestFile]) -> dict[tuple[bytes, int], int]:
    """About how many rows the buckets of a snapshot hold, by partition and bucket."""
    entries = live_entries(home, manifests, columns=["_ROW_COUNT"])
    sums = entries.group_by(["_PARTITION", "_BUCKET"]).aggregate([("_ROW_COUNT", "sum")])
    columns = (sums.column(name).to_pylist() for name in ("_PARTITION", "_BUCKET", "_ROW_COUNT_sum"))
    return {(partition, bucket): count for partition, bucket, count in zip(*columns, strict=True)}


class StoredKeys:
    """The visible keys of a snapshot, without those of partitions that are about to be replaced."""

    def __init__(
        self, home: TableHome, schema: TableSchema, snapshot: Snapshot | None, replaced: PartitionFilter | None
    ) -> None:
        self._home = home
        self._schema = schema
        self._snapshot = snapshot
        self._replaced = replaced
        self._schema_of = SchemaVersions(home, {schema.id: schema})

    def hashes(self, partition: bytes, bucket: int) -> NDArray[np.int32]:
        """The hashes of all keys in one bucket."""
        fields = self._schema.trimmed_key_fields
        names, types = [field.name for field in fields], [field.type for field in fields]
        splits = [split for split in self._splits(None) if (split.partition, split.bucket) == (partition, bucket)]
        found = [
            hash_rows([batch.column(name) for name in names], types)
            for batch in self._reader(None, names).batches(splits)
        ]
        return np.unique(np.concatenate(found)) if found else np.empty(0, np.int32)

    def places(self, keys: pa.Table) -> Iterator[LiveKeys]:
        """The keys of the snapshot within the range of these keys, by bucket."""
        where = self._range(keys)
        reader = self._reader(where, self._schema.primary_keys)
        for split in self._splits(where):
            for batch in reader.batches([split]):
                yield LiveKeys(split.partition, split.bucket, batch)

    def _range(self, keys: pa.Table) -> Where:
        """Between the least and the greatest value of the first key column; None where it has no value or is a float."""
        name = self._schema.trimmed_primary_keys[0]
        column = keys.column(name)
        if not len(column) or pa.types.is_floating(column.type):
            return None
        bounds = pc.min_max(column)
        return And((Comparison(name, ">=", bounds["min"]), Comparison(name, "<=", bounds["max"])))

    def _splits(self, where: Where) -> list[Split]:
        if self._snapshot is None:
            return []
        planner = Planner(self._home, self._schema, self._schema_of, TableOptions(self._schema.options))
        splits = planner.plan(self._snapshot, where).splits
        if self._replaced is None or not splits:
            return list(splits)
        gone = self._replaced(pa.array([split.partition for split in splits], pa.binary()))
        return [split for split, out in zip(splits, gone.tolist(), strict=True) if not out]

    def _reader(self, where: Where, names: Iterable[str]) -> TableReader:
        return TableReader(
            self._home, self._schema, list(names), row_filter(where, self._schema.fields), self._schema_of
        )
