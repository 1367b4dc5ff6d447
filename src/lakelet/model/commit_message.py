"""The commit message: the files that a writer reports to the committer; picklable, so that executors can send it to a driver."""

from __future__ import annotations

from dataclasses import dataclass

from lakelet.model.data_file import DataFile, IndexFile


@dataclass(frozen=True, slots=True)
class CommitMessage:
    """The files one writer added to and removed from one bucket of one partition.

    `base_snapshot` is the version the removed files were read from (None for a pure append): a file in
    `deleted_files` must still be live when the commit happens. `table_uuid` says for which table the files were written, so
    that they never end up in another one of the same name.

    Tables with dynamic buckets add what the assignment of keys to buckets depends on. `new_hash_index` is the index of this
    bucket with the new keys; it replaces the previous one. `hash_indexes` names the hash indexes of the
    whole partition that were read: the commit conflicts unless exactly these are live. `assigned_at` is the snapshot
    (0: none) in which keys were looked up over all partitions: the commit conflicts if rows were written since, or if another
    `assigner`, a name unique to one write, assigned rows of the same commit.

    `kept_from` is the snapshot, named like in `sequenced_at`, in which stored values of these rows were looked up to be written
    again: the commit conflicts if their bucket was written to since.

    `sequenced_at` is the snapshot whose sequence numbers those of the new files continue, as its id and its delta manifest
    list (for a rollback frees ids), and (0, "") for none. While it is the newest, no committed rows can be newer than these. For
    compaction it is the snapshot that the removed files were found in.

    Compaction of a table that hides level 0 decides which rows of a bucket are superseded, and so depends on all files above
    level 0: `settled` names these files, `old_vectors` the index files that held the bucket's deletion vectors. The commit
    conflicts unless exactly these are live. `new_vectors` replaces the old ones; None keeps them.

    A message with `marked_files` deletes rows of files that stay, in a table without a primary key: `new_vectors` has the vectors
    of these files and those of other files that were in the index files `old_vectors`, which it replaces. The commit conflicts
    unless the marked files are live and no other index file holds a vector of theirs. `sequenced_at` is the snapshot that they
    were found in.

    `changelog_files` tell of the same rows to those who follow the table, in the order of their changes: they belong to the
    snapshot that the message makes, not to the table's rows, and an overwrite has none.
    """

    partition: bytes
    bucket: int
    total_buckets: int
    new_files: tuple[DataFile, ...]
    deleted_files: tuple[DataFile, ...] = ()
    base_snapshot: int | None = None
    table_uuid: str | None = None
    new_hash_index: IndexFile | None = None
    hash_indexes: tuple[str, ...] | None = None
    assigned_at: int | None = None
    assigner: str | None = None
    sequenced_at: tuple[int, str] | None = None
    settled: frozenset[str] | None = None
    old_vectors: tuple[str, ...] | None = None
    new_vectors: IndexFile | None = None
    kept_from: tuple[int, str] | None = None
    changelog_files: tuple[DataFile, ...] = ()
    marked_files: tuple[str, ...] = ()
