"""A commit callback that registers every partition that files are added to, if it is not registered yet.

    commit.callbacks = lakelet.callbacks.partition_registration.PartitionRegistration
    commit.callback.lakelet.callbacks.partition_registration.PartitionRegistration.param = registry/orders

Place in the data path: after a commit. From the entries of the delta it takes the distinct partitions that files were
added to, and adds each to a `PartitionRegistry`. Adding a registered one again does nothing: calls are idempotent.
Partitions are never removed from the registry: an empty one has no rows, as readers see from its manifests.

`MarkerFiles`, the registry it uses unless a subclass hands in another, needs no service: one small object per partition,
created only if absent, in the folder of the warehouse that the argument names. Without an argument that is
`callback/partitions` of the branch, where no engine looks for orphans.

    <folder>/dt=2026-01-01/region=eu/PARTITION     {"partition": {"dt": "2026-01-01", "region": "eu"}, "snapshotId": 7}

The path is that of the partition's data, as a Hive metastore would have it, so that NULL and '' are one there.
A registry of another kind is a class with `add_partition_if_absent`:

    class HiveRegistration(PartitionRegistration):
        def __init__(self, uri):
            super().__init__(registry=HiveMetastore(uri))
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import pyarrow.compute as pc

from lakelet.commit.callbacks.callback_files import CommitFiles
from lakelet.commit.callbacks.commit_callbacks import CommitIdentifier
from lakelet.errors import InternalError
from lakelet.format.partition_folders import PartitionFolders
from lakelet.format.rows.binary_row import decode_row
from lakelet.model.manifest import EntryKind
from lakelet.model.partition_path import partition_text
from lakelet.model.schema import TableSchema
from lakelet.model.snapshot import Snapshot
from lakelet.options import PARTITION_LEGACY_NAME, TableOptions
from lakelet.storage.home import TableHome
from lakelet.storage.store import ObjectStore, checked_folder

_MARKER = "PARTITION"


@dataclass(frozen=True, slots=True)
class RegisteredPartition:
    """A partition in a registry: its folder `k=v/k=v`, its values as text, and a snapshot that has files in it."""

    path: str
    values: Mapping[str, str | None]
    snapshot_id: int


class PartitionRegistry(Protocol):
    """A registry of partitions, such as a metastore."""

    def add_partition_if_absent(self, partition: RegisteredPartition) -> bool:
        """Adds the partition; False where it is there already."""
        ...


@dataclass(frozen=True, slots=True)
class MarkerFiles:
    """A registry of one object per partition below a folder of a store."""

    store: ObjectStore
    folder: str

    def add_partition_if_absent(self, partition: RegisteredPartition) -> bool:
        """Creates the object; False where it is there already."""
        value = {"partition": dict(partition.values), "snapshotId": partition.snapshot_id}
        data = json.dumps(value, ensure_ascii=False).encode()
        return self.store.put_if_absent(f"{self.folder}/{partition.path}/{_MARKER}", data)

    def partitions(self) -> list[str]:
        """The folders of all partitions that were added, sorted."""
        end = f"/{_MARKER}"
        found = [info.path for info in self.store.list(self.folder) if info.path.endswith(end)]
        return [path[len(self.folder) + 1 : -len(end)] for path in found]


class PartitionRegistration:
    """The callback. `argument` is a folder of the warehouse for its marker files, unless a `registry` is given."""

    def __init__(self, argument: str | None = None, *, registry: PartitionRegistry | None = None) -> None:
        self._folder = None if argument is None else checked_folder(argument.strip("/"))
        self._registry = registry
        self._table: tuple[TableHome, TableSchema] | None = None

    def open(self, home: TableHome, schema: TableSchema) -> None:
        """Takes the table, by whose schema partitions are spelled."""
        self._table = (home, schema)
        if self._registry is None:
            self._registry = MarkerFiles(home.store, self._folder or f"{home.paths.callback_folder}/partitions")

    def call(
        self, base_files: CommitFiles, delta_files: CommitFiles, identifier: CommitIdentifier, snapshot: Snapshot
    ) -> None:
        """Adds the partitions that the commit put files into."""
        if self._table is None or self._registry is None:
            raise InternalError("a partition registration was called before it was opened")
        home, schema = self._table
        if not schema.partition_keys:
            return
        entries = delta_files.columns(["_KIND", "_PARTITION"])
        added = entries.filter(pc.equal(entries.column("_KIND"), int(EntryKind.ADD)))
        folders = PartitionFolders(home.paths, schema)
        legacy = TableOptions(schema.options).get(PARTITION_LEGACY_NAME)
        for partition in pc.unique(added.column("_PARTITION")).to_pylist():
            values = zip(
                schema.partition_keys,
                schema.partition_types,
                decode_row(partition, schema.partition_types),
                strict=True,
            )
            texts = {
                name: None if value is None else partition_text(data_type, value, legacy=legacy)
                for name, data_type, value in values
            }
            self._registry.add_partition_if_absent(
                RegisteredPartition(folders.partition_path(partition), texts, snapshot.id)
            )
