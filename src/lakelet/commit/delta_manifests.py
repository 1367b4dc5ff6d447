"""The delta manifests of a commit, written once for all attempts with the same changes.

An attempt that lost the race for its id is retried on another snapshot, but an append adds the same files wherever it
is committed. Its manifest and manifest list are then reused, so that a retry writes little, ends
sooner, and is less likely to lose once more.
"""

from __future__ import annotations

import pyarrow as pa

from lakelet.commit.metadata.manifests import ManifestFiles, ManifestSettings
from lakelet.model.schema import TableSchema
from lakelet.storage.home import TableHome


class DeltaManifests:
    """Write the delta of one commit, and reuse it from one attempt to the next."""

    def __init__(self, home: TableHome) -> None:
        self._home = home
        self._entries: pa.Table | None = None
        self._list = ("", 0)
        self._files: ManifestFiles | None = None

    def write(self, entries: pa.Table, schema: TableSchema, settings: ManifestSettings) -> tuple[str, int]:
        """The name and size of a manifest list of these entries."""
        if self._files is None or self._entries is None or not self._entries.equals(entries):
            self.remove()
            self._files = ManifestFiles(self._home, settings, schema.partition_types, schema.id)
            self._list = self._files.write_list(self._files.write_entries(entries))
            self._entries = entries
        return self._list

    @property
    def written(self) -> list[str]:
        """The paths of the files."""
        return [] if self._files is None else self._files.written

    def keep(self) -> None:
        """Keep the files: a snapshot names them, or may."""
        self._files = self._entries = None

    def remove(self) -> None:
        """Delete the files, which no snapshot names."""
        if self._files is not None:
            self._files.remove()
        self.keep()
