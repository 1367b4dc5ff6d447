"""Publish the newest snapshot of a table as an Iceberg snapshot.

    newest snapshot ── is it published? ── the newest published version, and the changes since ── manifests ── list
                                              │ none, or made otherwise: all live files             vN.metadata.json ── hint

Nothing of it is visible before `vN.metadata.json`, which is created only if absent; a reader that follows the hint sees the
version before or this one. Versions that were not published are skipped: each publication brings the table to its newest
snapshot.

What is published are the files of which every row is live and shown as it is stored: all files of a table without a primary
key, and the topmost level of one with. A bucket that has files above that level, from when the table had more levels, has no
others published, and then each publication begins anew.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from lakelet.callbacks.iceberg.manifest_files import ManifestCodec, PublishedManifest, live_counts
from lakelet.callbacks.iceberg.manifest_set import ManifestSet
from lakelet.callbacks.iceberg.older_versions import OlderVersions, kept_snapshots
from lakelet.callbacks.iceberg.published_files import FileDescriber
from lakelet.callbacks.iceberg.published_metadata import (
    HINT,
    LEVELS,
    MADE_OF,
    Metadata,
    PublishedFolder,
    current_snapshot,
    encode_metadata,
    is_made_of,
)
from lakelet.callbacks.iceberg.published_schema import (
    FIRST_PARTITION_ID,
    check_published,
    column_types,
    iceberg_schema,
    partition_spec,
)
from lakelet.commit.callbacks.callback_files import delta_files
from lakelet.commit.metadata.manifests import ManifestSettings, live_entries, snapshot_manifests
from lakelet.commit.metadata.schemas import latest_schema
from lakelet.commit.metadata.snapshots import latest_snapshot, try_snapshot
from lakelet.commit.versions.tags import all_tags
from lakelet.errors import CorruptionError, LakeletError, NotFoundError
from lakelet.format.manifest.manifest_columns import columns_to_entries
from lakelet.lsm.universal import UniversalPolicy
from lakelet.model.manifest import EntryKind, ManifestEntry
from lakelet.model.schema import TableSchema
from lakelet.model.snapshot import Snapshot
from lakelet.options import (
    ICEBERG_MANIFEST_COMPRESSION,
    ICEBERG_MANIFEST_LEGACY,
    TableOptions,
    publishes_iceberg,
)
from lakelet.storage.home import TableHome
from lakelet.storage.paths import MAIN_BRANCH

_LOG = logging.getLogger(__name__)
_MAIN_REF = "main"
# Tags expire with those of the table, never by themselves.
_FOR_EVER_MS = 2**63 - 1


@dataclass(frozen=True, slots=True)
class _Changes:
    """What an Iceberg snapshot adds to and removes from the one before, which None says there is none."""

    base: Metadata | None
    added: tuple[ManifestEntry, ...]
    removed: frozenset[str]
    levels: str


def publishes(home: TableHome, options: TableOptions) -> bool:
    """Whether commits to this branch are published: those to the main branch of a table that asks for it."""
    return home.paths.branch == MAIN_BRANCH and publishes_iceberg(options.raw)


def publish(home: TableHome, schema: TableSchema | None = None) -> None:
    """Publish the newest snapshot, if it is not yet."""
    home = home.uncached()
    Publication(home, schema or latest_schema(home)).publish()


def publish_quietly(home: TableHome) -> None:
    """Publish after a change that is no commit; what goes wrong is logged, and made up for by the next commit."""
    try:
        home = home.uncached()
        schema = latest_schema(home)
        if publishes(home, TableOptions(schema.options)):
            Publication(home, schema).publish()
    except LakeletError as error:
        _LOG.warning(
            "%s could not be published as an Iceberg table; the next commit tries again: %s",
            home.where(home.paths.root),
            error,
        )


def withdraw_quietly(home: TableHome, schema: TableSchema) -> None:
    """Remove the Iceberg metadata of a table that is dropped or gets another name; what goes wrong is logged."""
    try:
        folder = PublishedFolder.of(home, TableOptions(schema.options))
        versions = folder.versions()
        if versions and folder.read(versions[-1]) is not None:
            home.store.delete([folder.path(HINT)])
            home.store.delete([*map(folder.version_path, versions), *folder.own_files()])
    except LakeletError as error:
        _LOG.warning("the Iceberg metadata of %s stays: %s", home.where(home.paths.root), error)


class Publication:
    """One publication of a table."""

    def __init__(self, home: TableHome, schema: TableSchema) -> None:
        check_published(schema)
        self._home = home
        self._schema = schema
        self._options = TableOptions(schema.options)
        self._folder = PublishedFolder.of(home, self._options)
        self._codec = ManifestCodec(
            schema,
            compression=self._options.get(ICEBERG_MANIFEST_COMPRESSION),
            legacy=self._options.get(ICEBERG_MANIFEST_LEGACY),
        )
        self._describer = FileDescriber(home, schema)

    def publish(self) -> None:
        """Bring the published table to the newest snapshot, and remove what no version refers to any longer."""
        snapshot = latest_snapshot(self._home)
        if snapshot is None:
            return
        versions = self._folder.versions()
        there = self._folder.read(snapshot.id) if snapshot.id in versions else None
        if there is not None and is_made_of(current_snapshot(there), snapshot):
            self._point_to(snapshot.id, versions)
            self._note_tags(there, snapshot.id)
            return
        changes = self._changes(snapshot, versions)
        try:
            attempt, manifests = self._manifests(snapshot, changes)
        except (CorruptionError, NotFoundError) as error:
            if changes.base is None:
                raise
            _LOG.warning("%s is published anew: %s", self._folder.location, error)
            changes = self._afresh(snapshot)
            attempt, manifests = self._manifests(snapshot, changes)
        list_path = attempt.write(manifests, None if changes.base is None else changes.base["current-snapshot-id"])
        metadata = self._metadata(snapshot, changes, manifests, list_path)
        path, data = self._folder.version_path(snapshot.id), encode_metadata(metadata)
        if snapshot.id in versions:
            # It was made of a snapshot that was rolled back, or of a table that was dropped.
            self._home.store.put(path, data)
        elif not self._home.store.put_if_absent(path, data):
            attempt.remove()
            return
        self._point_to(snapshot.id, versions)
        OlderVersions(self._home, self._folder, self._codec, self._options).remove(
            metadata, changes.base, snapshot.id, versions
        )

    def _manifests(self, snapshot: Snapshot, changes: _Changes) -> tuple[ManifestSet, list[PublishedManifest]]:
        attempt = ManifestSet(self._home, self._folder, self._codec, self._options, snapshot.id)
        rows = self._describer.rows(changes.added, snapshot.id)
        return attempt, attempt.manifests(changes.base, rows, changes.removed)

    def _note_tags(self, metadata: Metadata, number: int) -> None:
        """Give a version that is published the tags that the table has now."""
        refs = self._refs(metadata["snapshots"])
        if refs != metadata.get("refs"):
            self._home.store.put(self._folder.version_path(number), encode_metadata({**metadata, "refs": refs}))

    # ------------------------------------------------------------------ which files

    @cached_property
    def _top_level(self) -> int | None:
        """The level whose files are published; None where all are."""
        return UniversalPolicy.of(self._options).num_levels - 1 if self._schema.primary_keys else None

    @property
    def _levels(self) -> str:
        return "all" if self._top_level is None else str(self._top_level)

    def _changes(self, snapshot: Snapshot, versions: list[int]) -> _Changes:
        earlier = [number for number in versions if number < snapshot.id]
        base = self._folder.read(earlier[-1]) if earlier else None
        if base is not None and self._continues(base):
            found = self._since(base, snapshot)
            if found is not None:
                return _Changes(base, *found, self._levels)
        return self._afresh(snapshot)

    def _continues(self, base: Metadata) -> bool:
        """Whether a version can be continued: it is of the same line, made by the same rule, and has bounds of today's types."""
        published = current_snapshot(base)
        if (
            published is None
            or published.get("summary", {}).get(LEVELS) != self._levels
            or base.get("format-version") != 2
        ):
            return False
        made_of = try_snapshot(self._home, int(published["snapshot-id"]))
        if made_of is None or not is_made_of(published, made_of):
            return False
        schemas = {one["schema-id"]: one for one in base["schemas"]}
        then = column_types(schemas[base["current-schema-id"]]["fields"])
        now = column_types(iceberg_schema(self._schema)["fields"])
        return all(then[number] == now[number] for number in then.keys() & now.keys())

    def _since(self, base: Metadata, snapshot: Snapshot) -> tuple[tuple[ManifestEntry, ...], frozenset[str]] | None:
        """The files that were added and removed since a version; None where that cannot be told any more."""
        added: dict[str, ManifestEntry] = {}
        removed: set[str] = set()
        threads = ManifestSettings.of(self._options).threads
        for number in range(int(base["current-snapshot-id"]) + 1, snapshot.id + 1):
            each = snapshot if number == snapshot.id else try_snapshot(self._home, number)
            if each is None:
                return None
            try:
                entries = list(delta_files(self._home, each, threads))
            except NotFoundError:
                return None
            for entry in entries:
                path = self._describer.path(entry)
                if entry.kind == EntryKind.DELETE:
                    added.pop(path, None)
                    removed.add(path)
                elif self._top_level is None or entry.file.level == self._top_level:
                    added[path] = entry
                elif entry.file.level > self._top_level:
                    return None
        return tuple(added.values()), frozenset(removed)

    def _afresh(self, snapshot: Snapshot) -> _Changes:
        levels = self._levels
        manifests = snapshot_manifests(self._home, snapshot)
        live = live_entries(self._home, manifests, threads=ManifestSettings.of(self._options).threads)
        live = live.filter(pa.array(live.column("_BUCKET").to_numpy() >= 0))
        if self._top_level is not None:
            level = live.column("_LEVEL").to_numpy()
            highest = _highest_levels(live, level)
            live = live.filter(pa.array((level == highest) & (level >= self._top_level)))
            if (highest > self._top_level).any():
                levels = "mixed"
        return _Changes(None, tuple(columns_to_entries(live)), frozenset(), levels)

    # ------------------------------------------------------------------ the metadata file

    def _metadata(
        self, snapshot: Snapshot, changes: _Changes, manifests: list[PublishedManifest], list_path: str
    ) -> Metadata:
        base, schema = changes.base, iceberg_schema(self._schema)
        before = [] if base is None else base["snapshots"]
        time_ms = max([snapshot.time_ms, *(one["timestamp-ms"] for one in before[-1:])])
        files, rows = live_counts(manifests)
        made = {
            "snapshot-id": snapshot.id,
            "sequence-number": snapshot.id,
            **({} if base is None else {"parent-snapshot-id": base["current-snapshot-id"]}),
            "timestamp-ms": time_ms,
            "summary": {
                "operation": "overwrite" if changes.removed else "append",
                "total-data-files": str(files),
                "total-records": str(rows),
                MADE_OF: snapshot.delta_manifest_list,
                LEVELS: changes.levels,
            },
            "manifest-list": self._home.where(list_path),
            "schema-id": self._schema.id,
        }
        kept = kept_snapshots(self._home, self._options, [*before, made])
        known = [] if base is None else [one for one in base["schemas"] if one["schema-id"] != self._schema.id]
        used = {one["schema-id"] for one in kept}
        spec = partition_spec(self._schema)
        return {
            "format-version": 2,
            "table-uuid": self._home.ids.uuid() if base is None else base["table-uuid"],
            "location": self._folder.location,
            "last-sequence-number": snapshot.id,
            "last-updated-ms": time_ms,
            "last-column-id": self._schema.highest_field_id,
            "current-schema-id": self._schema.id,
            "schemas": [*(one for one in known if one["schema-id"] in used), schema],
            "default-spec-id": 0,
            "partition-specs": [{"spec-id": 0, "fields": spec}],
            "last-partition-id": FIRST_PARTITION_ID - 1 + len(spec),
            "default-sort-order-id": 0,
            "sort-orders": [{"order-id": 0, "fields": []}],
            "properties": {},
            "current-snapshot-id": snapshot.id,
            "refs": self._refs(kept),
            "snapshots": kept,
            "snapshot-log": [{"snapshot-id": one["snapshot-id"], "timestamp-ms": one["timestamp-ms"]} for one in kept],
        }

    def _refs(self, kept: list[dict[str, Any]]) -> dict[str, Any]:
        """The tags of snapshots that are published. The main branch is the current snapshot: Java Paimon would make it a tag."""
        refs: dict[str, Any] = {}
        by_id = {one["snapshot-id"]: one for one in kept}
        for tag in all_tags(self._home):
            if tag.name != _MAIN_REF and is_made_of(by_id.get(tag.snapshot_id), tag.snapshot):
                refs[tag.name] = {"snapshot-id": tag.snapshot_id, "type": "tag", "max-ref-age-ms": _FOR_EVER_MS}
        return refs

    def _point_to(self, number: int, versions: list[int]) -> None:
        """Let the hint name this version, unless a newer one was published meanwhile."""
        store, path = self._home.store, self._folder.path(HINT)
        while store.head(self._folder.version_path(number + 1)) is not None and number + 1 not in versions:
            number += 1
        text = str(number).encode()
        try:
            if store.get(path) == text:
                return
        except NotFoundError:
            pass
        store.put(path, text)


def _highest_levels(live: pa.Table, level: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Of each file the highest level of its bucket."""
    keys = live.select(["_PARTITION", "_BUCKET"]).append_column("level", pa.array(level))
    highest = keys.group_by(["_PARTITION", "_BUCKET"], use_threads=False).aggregate([("level", "max")])
    rows = keys.append_column("row", pa.array(np.arange(len(level))))
    joined = rows.join(highest, ["_PARTITION", "_BUCKET"], use_threads=False).sort_by("row")
    found: np.ndarray[Any, Any] = joined.column("level_max").to_numpy()
    return found
