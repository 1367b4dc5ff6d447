"""The files that a commit adds to a branch and removes from it."""

from __future__ import annotations

from dataclasses import dataclass

from pyiceberg.manifest import DataFile
from pyiceberg.table.snapshots import Operation

from lakelet.iceberg.commit.snapshot.live_files import LiveFile
from lakelet.iceberg.commit_data import CommitData


@dataclass(frozen=True, slots=True)
class Change:
    """Added and removed files. Removed files are those of the head that the change is made for."""

    operation: Operation
    added: tuple[DataFile, ...] = ()
    removed: tuple[LiveFile, ...] = ()
    added_deletes: tuple[DataFile, ...] = ()
    removed_deletes: tuple[LiveFile, ...] = ()
    # Manifests that are rewritten with the same files.
    rewritten_manifests: tuple[str, ...] = ()

    @property
    def empty(self) -> bool:
        """Whether nothing is added, removed or rewritten."""
        return not (
            self.added or self.removed or self.added_deletes or self.removed_deletes or self.rewritten_manifests
        )


def added_file(data: CommitData) -> DataFile:
    """A writer's file as a manifest entry of the spec that it was written by."""
    file = data.data_file()
    file.spec_id = data.spec_id
    return file


def operation_of(added: int, removed: int) -> Operation:
    """The operation of a snapshot: incremental readers rely on `append` having removed nothing."""
    if not removed:
        return Operation.APPEND
    return Operation.OVERWRITE if added else Operation.DELETE
