"""The manifests of what a commit changes, written once for all attempts that change the same.

An attempt that lost the race for its id starts again on another snapshot, but an append adds the same files wherever it
lands. Its manifest and manifest list are then used again, so that a repeated attempt writes little, is over
sooner, and is less likely to lose once more.
"""

from __future__ import annotations

import pyarrow as pa

from lakelet.commit.metadata.manifests import ManifestFiles, ManifestSettings
from lakelet.model.schema import TableSchema
from lakelet.storage.home import TableHome


class DeltaManifests:
    """Writes the delta of one commit, and remembers it from one attempt to the next."""

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
        """Lets the files be: a snapshot names them, or may."""
        self._files = self._entries = None

    def remove(self) -> None:
        """Removes the files, which no snapshot names."""
        if self._files is not None:
            self._files.remove()
        self.keep()
