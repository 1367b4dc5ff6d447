"""Which Iceberg snapshots stay, and removal of the metadata files that no version refers to any longer.

Snapshots are kept as the table keeps its own, and as long as a tag names them. Files are deleted by their exact names in the
folder of the published table, and never through a symbolic link: the store refuses to follow one. What cannot be deleted stays,
which costs room and nothing else.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from lakelet.callbacks.iceberg.manifest_files import DELETES, ManifestCodec, PublishedManifest
from lakelet.callbacks.iceberg.published_metadata import Metadata, PublishedFolder, is_made_of
from lakelet.commit.metadata.snapshots import try_snapshot
from lakelet.commit.metadata.version_ids import latest_id
from lakelet.commit.versions.tags import all_tags
from lakelet.errors import LakeletError
from lakelet.options import (
    ICEBERG_DELETE_AFTER_COMMIT,
    ICEBERG_PREVIOUS_VERSIONS_MAX,
    SNAPSHOT_NUM_RETAINED_MAX,
    SNAPSHOT_NUM_RETAINED_MIN,
    SNAPSHOT_TIME_RETAINED,
    TableOptions,
)
from lakelet.storage.home import TableHome

_LOG = logging.getLogger(__name__)
# A file without a reference may belong to a publication that is under way.
_SAFE_MS = 15 * 60 * 1000


def kept_snapshots(home: TableHome, options: TableOptions, snapshots: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The Iceberg snapshots that stay, of which the last is the newest."""
    newest = snapshots[-1]["snapshot-id"]
    least, most = options.get(SNAPSHOT_NUM_RETAINED_MIN), options.get(SNAPSHOT_NUM_RETAINED_MAX)
    since_ms = home.clock.now_ms() - int(options.get(SNAPSHOT_TIME_RETAINED).total_seconds() * 1000)
    first = 0
    for place, one in enumerate(snapshots[:-1]):
        number = one["snapshot-id"]
        too_old = number <= newest - most or (number <= newest - least and one["timestamp-ms"] < since_ms)
        # Its data files may be gone with the snapshot of the table.
        if not too_old and try_snapshot(home, number) is not None:
            break
        first = place + 1
    if not first:
        return list(snapshots)
    tags = all_tags(home)
    held = [one for one in snapshots[:first] if any(is_made_of(one, tag.snapshot) for tag in tags)]
    return [*held, *snapshots[first:]]


@dataclass(frozen=True, slots=True)
class OlderVersions:
    """Removes metadata files of older versions of one published table."""

    home: TableHome
    folder: PublishedFolder
    codec: ManifestCodec
    options: TableOptions

    def remove(self, metadata: Metadata, base: Metadata | None, newest: int, versions: Sequence[int]) -> None:
        """Remove what the newest version leaves behind; errors are logged."""
        try:
            self._remove_versions(newest, versions)
            if base is None:
                self._remove_unnamed(metadata)
            else:
                self._remove_expired(metadata, base)
        except LakeletError as error:
            _LOG.warning("older Iceberg metadata of %s stays: %s", self.home.where(self.folder.folder), error)

    def _remove_versions(self, newest: int, versions: Sequence[int]) -> None:
        """Those before the ones to keep, and those of snapshots that a rollback took back."""
        gone = []
        if any(number > newest for number in versions):
            latest = latest_id(self.home) or newest
            gone = [number for number in versions if number > latest]
        if self.options.get(ICEBERG_DELETE_AFTER_COMMIT):
            first = newest - self.options.get(ICEBERG_PREVIOUS_VERSIONS_MAX)
            gone += [number for number in versions if number < first]
        self.home.store.delete([self.folder.version_path(number) for number in gone])

    def _remove_expired(self, metadata: Metadata, base: Metadata) -> None:
        """The files of Iceberg snapshots that are in the older version and not in the newer one.

        A file that a snapshot does not name, and the one before it names, no later snapshot names again.
        """
        kept = {one["snapshot-id"] for one in metadata["snapshots"]}
        line = [*base["snapshots"], metadata["snapshots"][-1]]
        expired = [place for place, one in enumerate(line) if one["snapshot-id"] not in kept]
        if not expired:
            return
        held = [one for place, one in enumerate(line[: expired[-1]]) if one["snapshot-id"] in kept]
        used = set(self._named(held))
        gone: list[str] = []
        for place in expired:
            following = set(self._named([line[place + 1]]))
            gone += [path for path in self._named([line[place]]) if path not in following and path not in used]
            gone += self._own([line[place]["manifest-list"]])
        self.home.store.delete(gone)

    def _remove_unnamed(self, metadata: Metadata) -> None:
        """All files that the version does not name, unless they are new."""
        used = {*self._own(one["manifest-list"] for one in metadata["snapshots"])}
        used.update(self._named(metadata["snapshots"]))
        before = self.home.clock.now_ms() - _SAFE_MS
        found = self.folder.own_files().items()
        self.home.store.delete([path for path, time_ms in found if path not in used and time_ms < before])

    def _named(self, snapshots: Iterable[dict[str, Any]]) -> list[str]:
        """The manifests of these snapshots, and the Puffin files that they name."""
        found: list[str] = []
        for path in self._own(one["manifest-list"] for one in snapshots):
            data = self.home.store.get(path)
            for manifest in self.codec.decode_list(data, path=self.home.where(path)):
                found += self._own([manifest.path])
                if manifest.content == DELETES:
                    found += self._puffins(manifest)
        return found

    def _puffins(self, manifest: PublishedManifest) -> list[str]:
        """The Puffin files that a manifest of deletion vectors names."""
        own = self.folder.name_of(manifest.path)
        if own is None:
            return []
        _, paths = self.codec.decode_paths(self.home.store.get(own), path=self.home.where(own))
        return self._own(paths.unique().to_pylist())

    def _own(self, locations: Iterable[str]) -> list[str]:
        return [path for location in locations if (path := self.folder.name_of(location)) is not None]
