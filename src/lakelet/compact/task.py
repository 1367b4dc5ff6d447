"""A unit of compaction: files of one bucket that are rewritten together, in this process or another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lakelet.model.data_file import DataFile
from lakelet.model.split import DeletionVector


@dataclass(frozen=True, slots=True)
class CompactionTask:
    """Files to replace, and the target level of their rows. Picklable, so that a driver can send it to an executor.

    In a primary-key table the rows of `files` are merged onto `output_level`, where `drop_deletes` says that nothing older is
    left below, so that deletes need not be kept. With `rewrites_each` every file is rewritten, also one that could stay as it
    is. `beside` are files that stay, but whose rows may be superseded by those of `files`: their deletion vectors are
    rewritten. Where the compaction makes a changelog, it tells of the rows that come from below `reported_level`, compared with
    those on it and above. `older` are files that stay, in which old rows of `files` are looked up. In an append table the level
    is 0. `vectors` are the deletion vectors of `files` and `beside` by file name; `snapshot_id` is the version that they were
    found in.
    """

    snapshot_id: int
    partition: bytes
    bucket: int
    total_buckets: int
    files: tuple[DataFile, ...]
    output_level: int = 0
    drop_deletes: bool = False
    rewrites_each: bool = False
    beside: tuple[DataFile, ...] = ()
    vectors: Mapping[str, DeletionVector] = field(default_factory=dict)
    reported_level: int = 0
    older: tuple[DataFile, ...] = ()

    @property
    def size(self) -> int:
        """Bytes of the input files."""
        return sum(file.size for file in self.files)

    @property
    def row_count(self) -> int:
        """Rows of the input files."""
        return sum(file.row_count for file in self.files)
