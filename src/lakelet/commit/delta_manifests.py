"""The manifests of a commit's delta and changelog, written once for all attempts with the same changes.

An attempt that lost the race for its id is retried on another snapshot, but an append adds the same files wherever it
is committed. Its manifest and manifest list are then reused, so that a retry writes little, ends
sooner, and is less likely to lose once more.
"""

from __future__ import annotations

from lakelet.commit.changes import Changes
from lakelet.commit.metadata.manifests import ManifestFiles, ManifestSettings
from lakelet.format.manifest.manifest_columns import entries_to_columns
from lakelet.model.manifest import ManifestFile
from lakelet.model.schema import TableSchema
from lakelet.storage.home import TableHome


class DeltaManifests:
    """Write the delta of one commit, and reuse it from one attempt to the next."""

    def __init__(self, home: TableHome) -> None:
        self._home = home
        self._changes: Changes | None = None
        self._list = ("", 0)
        self._changelog: tuple[str, int] | None = None
        self._files: ManifestFiles | None = None

    def write(self, changes: Changes, schema: TableSchema, settings: ManifestSettings) -> tuple[str, int]:
        """The name and size of a manifest list of the entries of these changes."""
        if self._files is None or self._changes is None or not _same_entries(self._changes, changes):
            self.remove()
            self._files = ManifestFiles(self._home, settings, schema.partition_types, schema.id)
            self._list = self._files.write_list(_write_entries(self._files, changes))
            self._changelog = _write_changelog(self._files, changes)
            self._changes = changes
        return self._list

    @property
    def changelog(self) -> tuple[str, int] | None:
        """The name and size of the manifest list of the changelog files that were written last; None where there are none."""
        return self._changelog

    @property
    def written(self) -> list[str]:
        """The paths of the files."""
        return [] if self._files is None else self._files.written

    def keep(self) -> None:
        """Keep the files: a snapshot names them, or may."""
        self._files = self._changes = None

    def remove(self) -> None:
        """Delete the files, which no snapshot names."""
        if self._files is not None:
            self._files.remove()
        self.keep()


def _same_entries(one: Changes, other: Changes) -> bool:
    return one.added == other.added and one.changelog == other.changelog and one.removed.equals(other.removed)


def _write_entries(files: ManifestFiles, changes: Changes) -> list[ManifestFile]:
    few = files.write_few(changes.added) if changes.removed.num_rows == 0 else None
    return files.write_entries(changes.entries) if few is None else few


def _write_changelog(files: ManifestFiles, changes: Changes) -> tuple[str, int] | None:
    if not changes.changelog:
        return None
    few = files.write_few(changes.changelog)
    return files.write_list(files.write_entries(entries_to_columns(changes.changelog)) if few is None else few)
