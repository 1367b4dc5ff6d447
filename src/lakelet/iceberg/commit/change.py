"""What a commit does to the files of a branch."""

from __future__ import annotations

from dataclasses import dataclass

from pyiceberg.manifest import DataFile
from pyiceberg.table.snapshots import Operation

from lakelet.iceberg.commit.snapshot.live_files import LiveFile
from lakelet.iceberg.commit_data import CommitData


@dataclass(frozen=True, slots=True)
class Change:
    """Files that come and files that go. Those that go were found in the head that the change is made for."""

    operation: Operation
    added: tuple[DataFile, ...] = ()
    removed: tuple[LiveFile, ...] = ()
    added_deletes: tuple[DataFile, ...] = ()
    removed_deletes: tuple[LiveFile, ...] = ()
    # Manifests that are written anew with the files they have.
    rewritten_manifests: tuple[str, ...] = ()

    @property
    def empty(self) -> bool:
        """Whether nothing comes, goes or moves."""
        return not (
            self.added or self.removed or self.added_deletes or self.removed_deletes or self.rewritten_manifests
        )


def added_file(data: CommitData) -> DataFile:
    """A writer's file as an entry of the spec that it was written by."""
    file = data.data_file()
    file.spec_id = data.spec_id
    return file


def operation_of(added: int, removed: int) -> Operation:
    """The kind of a snapshot that adds or removes rows: readers of appended rows rely on `append` having removed nothing."""
    if not removed:
        return Operation.APPEND
    return Operation.OVERWRITE if added else Operation.DELETE
