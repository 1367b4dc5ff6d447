"""The Iceberg metadata files of a published table.

`vN.metadata.json` describes snapshot N of the table, `version-hint.text` names the newest.

    <folder>/vN.metadata.json, version-hint.text
    <folder>/snap-N-<uuid>.avro          manifest lists
    <folder>/<uuid>-mK.avro              manifests
    <folder>/index-….<uuid>.puffin       deletion vectors of the table's index file of that name

The summary of each Iceberg snapshot records which snapshot of the table it was made of, by its delta manifest list, for a
rollback frees ids; and which levels of the table were published. A metadata file of another table is never taken for one's own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lakelet.errors import InvalidError, NotFoundError
from lakelet.format.metadata.stored_json import load_json
from lakelet.model.snapshot import Snapshot
from lakelet.options import ICEBERG_STORAGE, TableOptions, keeps_iceberg_metadata
from lakelet.storage.home import TableHome

HINT = "version-hint.text"
MADE_OF = "lakelet.delta-manifest-list"
LEVELS = "lakelet.published-levels"
NEXT_ROW_ID = "next-row-id"
_VERSION = re.compile(r"v(\d{1,18})\.metadata\.json")
_ID = "[0-9A-Za-z-]{8,36}"
_PUFFIN = re.compile(rf"(index-{_ID}-\d{{1,9}})\.{_ID}\.puffin")
_OWN_FILES = re.compile(rf"(?:snap-\d+-{_ID}|{_ID}-m\d+)\.avro|{_PUFFIN.pattern}")
_METADATA = ".metadata.json"

Metadata = dict[str, Any]


@dataclass(frozen=True, slots=True)
class PublishedFolder:
    """The folder of a table's Iceberg metadata."""

    home: TableHome
    folder: str

    @staticmethod
    def of(home: TableHome, options: TableOptions) -> PublishedFolder:
        """The folder that the table's options choose."""
        folder = home.paths.iceberg_in_table if keeps_iceberg_metadata(options.raw) else home.paths.iceberg_in_catalog
        if folder is None:
            raise InvalidError(
                f"{home.where(home.paths.root)} is in no database of a warehouse, and cannot be published beside one: "
                f"expected '{ICEBERG_STORAGE.name}' = 'table-location'"
            )
        return PublishedFolder(home, folder)

    def path(self, name: str) -> str:
        """The path of a file in it."""
        return f"{self.folder}/{name}"

    def version_path(self, number: int) -> str:
        """The metadata file of a snapshot of the table."""
        return self.path(f"v{number}{_METADATA}")

    def versions(self) -> list[int]:
        """The snapshots that have a metadata file, ascending; InvalidError where another Iceberg table has its metadata there."""
        found = []
        for info in self.home.store.list_folder(self.folder).files:
            name = info.path.rsplit("/", 1)[-1]
            match = _VERSION.fullmatch(name)
            if match is not None:
                found.append(int(match[1]))
            elif name.endswith(_METADATA):
                raise InvalidError(
                    f"{self.home.where(info.path)} belongs to another Iceberg table: its folder is taken"
                )
        return sorted(found)

    def read(self, number: int) -> Metadata | None:
        """The metadata of a version; None where it is missing or unreadable. InvalidError where it is of another table."""
        path = self.version_path(number)
        try:
            found = load_json(self.home.store.get(path))
            location = found["location"]
        except (NotFoundError, ValueError, KeyError, TypeError):
            return None
        if not isinstance(found, dict):
            return None
        if location != self.location and not self._is_of_ours(found):
            raise InvalidError(
                f"{self.home.where(path)} belongs to another Iceberg table: expected the location {self.location}, "
                f"found {location}"
            )
        return found if location == self.location and _is_whole(found) else None

    @property
    def location(self) -> str:
        """The location of the published table: the folder of its data files."""
        return self.home.where(self.home.paths.root)

    def name_of(self, location: object) -> str | None:
        """The path of a manifest, manifest list or Puffin file in this folder, None for one anywhere else."""
        name = str(location).rsplit("/", 1)[-1]
        return self.path(name) if _OWN_FILES.fullmatch(name) and location == self.home.where(self.path(name)) else None

    def own_files(self) -> dict[str, int]:
        """The manifests, manifest lists and Puffin files in the folder, and when each was written; links are not followed."""
        listing = self.home.store.list_folder(self.folder)
        return {
            info.path: info.modified_ms
            for info in listing.files
            if _OWN_FILES.fullmatch(info.path.rsplit("/", 1)[-1]) and info.path not in listing.links
        }

    @staticmethod
    def _is_of_ours(found: Mapping[str, Any]) -> bool:
        """Whether a table of ours, which was renamed since, was published by it."""
        try:
            return any(MADE_OF in one.get("summary", {}) for one in found.get("snapshots", ()))
        except (AttributeError, TypeError):
            return False


def index_file_of(location: str) -> str | None:
    """The index file whose vectors a Puffin file has, by its name; None for any other file."""
    match = _PUFFIN.fullmatch(location.rsplit("/", 1)[-1])
    return None if match is None else match[1]


def _is_whole(found: Mapping[str, Any]) -> bool:
    """Whether metadata has what the next version is made of."""
    try:
        snapshots = found["snapshots"]
        ids = [(int(one["snapshot-id"]), int(one["timestamp-ms"]), str(one["manifest-list"])) for one in snapshots]
        schemas = {
            one["schema-id"]: {int(field["id"]): field["type"] for field in one["fields"]} for one in found["schemas"]
        }
        known = all(isinstance(one.get("summary", {}), dict) and "schema-id" in one for one in snapshots)
        whole = isinstance(found["table-uuid"], str) and found["current-schema-id"] in schemas
        return known and whole and bool(ids) and found["current-snapshot-id"] == ids[-1][0]
    except (KeyError, TypeError, ValueError, AttributeError):
        return False


def encode_metadata(metadata: Mapping[str, Any]) -> bytes:
    """The bytes of a metadata file."""
    return json.dumps(metadata, indent=2, ensure_ascii=False).encode()


def current_snapshot(metadata: Mapping[str, Any]) -> dict[str, Any] | None:
    """The newest Iceberg snapshot of a metadata file."""
    number = metadata.get("current-snapshot-id")
    found = [one for one in metadata.get("snapshots", ()) if one.get("snapshot-id") == number]
    return found[0] if found else None


def is_made_of(published: Mapping[str, Any] | None, snapshot: Snapshot) -> bool:
    """Whether an Iceberg snapshot was made of this snapshot of the table."""
    if published is None or published.get("snapshot-id") != snapshot.id:
        return False
    found: object = published.get("summary", {}).get(MADE_OF)
    return found == snapshot.delta_manifest_list
