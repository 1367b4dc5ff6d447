"""What a writer hands to the committer: picklable, so that executors can send it to a driver."""

from __future__ import annotations

from dataclasses import dataclass

from lakelet.model.data_file import DataFile


@dataclass(frozen=True, slots=True)
class CommitMessage:
    """The files one writer added to and removed from one bucket of one partition.

    `base_snapshot` is the version the removed files were read from (None for a pure append): a file in
    `deleted_files` must still be live when the commit happens. `table_uuid` says for which table the files were written, so
    that they never end up in another one of the same name.
    """

    partition: bytes
    bucket: int
    total_buckets: int
    new_files: tuple[DataFile, ...]
    deleted_files: tuple[DataFile, ...] = ()
    base_snapshot: int | None = None
    table_uuid: str | None = None
