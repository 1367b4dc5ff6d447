"""Plan a rescale: the partitions that have another number of buckets. Pure: live entries in, tasks out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lakelet.model.bucket_mode import POSTPONE_BUCKET
from lakelet.model.data_file import DataFile
from lakelet.model.manifest import ManifestEntry
from lakelet.model.split import DeletionVector


@dataclass(frozen=True, slots=True)
class OldBucket:
    """All files of a bucket that is replaced."""

    bucket: int
    total_buckets: int
    files: tuple[DataFile, ...]


@dataclass(frozen=True, slots=True)
class RescaleTask:
    """A partition whose rows are rewritten into `buckets` buckets. Picklable.

    `vectors` are the deletion vectors of its files by file name; `snapshot_id` is the version that all of it was found in.
    """

    snapshot_id: int
    partition: bytes
    buckets: int
    old: tuple[OldBucket, ...]
    vectors: Mapping[str, DeletionVector] = field(default_factory=dict)

    @property
    def files(self) -> tuple[DataFile, ...]:
        """The files of all old buckets."""
        return tuple(file for bucket in self.old for file in bucket.files)

    @property
    def size(self) -> int:
        """Bytes of the files."""
        return sum(file.size for file in self.files)

    @property
    def row_count(self) -> int:
        """Rows of the files."""
        return sum(file.row_count for file in self.files)


def rescale_tasks(
    entries: Sequence[ManifestEntry], buckets: int, *, snapshot_id: int, vectors: Mapping[str, DeletionVector]
) -> list[RescaleTask]:
    """The partitions among these live entries that have files of another number of buckets. Postponed rows stay."""
    partitions: dict[bytes, dict[tuple[int, int], list[DataFile]]] = {}
    for entry in entries:
        if entry.bucket != POSTPONE_BUCKET:
            places = partitions.setdefault(entry.partition, {})
            places.setdefault((entry.bucket, entry.total_buckets), []).append(entry.file)
    tasks: list[RescaleTask] = []
    for partition, places in partitions.items():
        if {total for _, total in places} == {buckets}:
            continue
        old = tuple(OldBucket(*place, tuple(files)) for place, files in sorted(places.items()))
        own = {file.name: vectors[file.name] for one in old for file in one.files if file.name in vectors}
        tasks.append(RescaleTask(snapshot_id, partition, buckets, old, own))
    return tasks
