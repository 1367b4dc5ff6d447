"""Publish the newest snapshot of a table as an Iceberg snapshot.

    newest snapshot ── is it published? ── the newest published version, and the changes since ── manifests ── list
                                              │ none, or made otherwise: all live files             vN.metadata.json ── hint

Nothing of it is visible before `vN.metadata.json`, which is created only if absent; a reader that follows the hint sees the
version before or this one. Versions that were not published are skipped: each publication brings the table to its newest
snapshot.

Which files are published says `published_levels`; of tables with deletion vectors these are published, too. A table of a REST
catalog is published there after its metadata file, `rest_publication`.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from lakelet.callbacks.iceberg.manifest_files import (
    DELETES,
    ROWS_NUMBERED,
    ManifestCodec,
    PublishedManifest,
    live_counts,
)
from lakelet.callbacks.iceberg.manifest_set import ManifestSet
from lakelet.callbacks.iceberg.older_versions import OlderVersions, kept_snapshots
from lakelet.callbacks.iceberg.published_files import FileDescriber
from lakelet.callbacks.iceberg.published_levels import PublishedLevels
from lakelet.callbacks.iceberg.published_metadata import (
    HINT,
    LEVELS,
    MADE_OF,
    NEXT_ROW_ID,
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
from lakelet.callbacks.iceberg.published_vectors import VectorDescriber
from lakelet.callbacks.iceberg.rest_publication import bring_to_rest, withdraw_from_rest
from lakelet.commit.callbacks.callback_files import delta_files
from lakelet.commit.metadata.manifests import ManifestSettings, live_entries, snapshot_manifests
from lakelet.commit.metadata.schemas import latest_schema
from lakelet.commit.metadata.snapshots import latest_snapshot, try_snapshot
from lakelet.commit.versions.tags import all_tags
from lakelet.errors import CorruptionError, InvalidError, LakeletError, NotFoundError
from lakelet.format.manifest.manifest_columns import columns_to_entries
from lakelet.model.manifest import EntryKind, ManifestEntry
from lakelet.model.schema import TableSchema
from lakelet.model.snapshot import Snapshot
from lakelet.options import (
    ICEBERG_FORMAT_VERSION,
    ICEBERG_MANIFEST_COMPRESSION,
    ICEBERG_MANIFEST_LEGACY,
    TableOptions,
    keeps_iceberg_metadata,
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
    """What an Iceberg snapshot adds to and removes from the one before, which None says there is none.

    `vectors_kept`: no deletion vector has changed since the one before.
    """

    base: Metadata | None
    added: tuple[ManifestEntry, ...]
    removed: frozenset[str]
    levels: str
    vectors_kept: bool


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
    """Remove the Iceberg table of one that is dropped or gets another name: from its REST catalog, and its metadata where it is
    not in the table's folder. What goes wrong is logged."""
    try:
        withdraw_from_rest(home, PublishedFolder.of(home, TableOptions(schema.options)), TableOptions(schema.options))
    except LakeletError as error:
        _LOG.warning("%s stays in its REST catalog: %s", home.where(home.paths.root), error)
    if keeps_iceberg_metadata(schema.options):
        return
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
        self._version = self._options.get(ICEBERG_FORMAT_VERSION)
        self._levels = PublishedLevels.of(schema, self._options)
        self._codec = ManifestCodec(
            schema,
            version=self._version,
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
            self._bring(self._with_tags(there, snapshot.id))
            return
        changes = self._changes(snapshot, versions)
        try:
            attempt, manifests, next_row_id = self._manifests(snapshot, changes)
        except (CorruptionError, NotFoundError) as error:
            if changes.base is None:
                raise
            _LOG.warning("%s is published anew: %s", self._folder.location, error)
            changes = self._afresh(snapshot)
            attempt, manifests, next_row_id = self._manifests(snapshot, changes)
        list_path = attempt.write(manifests, None if changes.base is None else changes.base["current-snapshot-id"])
        metadata = self._metadata(snapshot, changes, manifests, list_path, next_row_id)
        path, data = self._folder.version_path(snapshot.id), encode_metadata(metadata)
        if snapshot.id in versions:
            # It was made of a snapshot that was rolled back, or of a table that was dropped.
            self._home.store.put(path, data)
        elif not self._home.store.put_if_absent(path, data):
            attempt.remove()
            return
        self._point_to(snapshot.id, versions)
        try:
            self._bring(metadata)
        finally:
            # Also where the REST catalog is silent: what expires has no rows in its table's snapshots any more.
            OlderVersions(self._home, self._folder, self._codec, self._options).remove(
                metadata, changes.base, snapshot.id, versions
            )

    def _bring(self, metadata: Metadata) -> None:
        bring_to_rest(self._home, self._folder, self._options, metadata)

    def _manifests(self, snapshot: Snapshot, changes: _Changes) -> tuple[ManifestSet, list[PublishedManifest], int]:
        """The manifests of the snapshot, and the number of the next row, where rows have numbers."""
        attempt = ManifestSet(self._home, self._folder, self._codec, self._options, snapshot.id)
        rows = self._describer.rows(changes.added, snapshot.id)
        found = attempt.manifests(changes.base, rows, changes.removed)
        found += self._vectors(attempt, snapshot, changes)
        if self._version < ROWS_NUMBERED:
            return attempt, found, 0
        return attempt, *attempt.numbered(found, _next_row_id(changes.base))

    def _vectors(self, attempt: ManifestSet, snapshot: Snapshot, changes: _Changes) -> list[PublishedManifest]:
        """The manifests of deletion vectors: those of the version before, if no vector has changed and no file was added."""
        if changes.base is not None and changes.vectors_kept and not changes.added:
            return attempt.kept_vectors(changes.base)
        describer = VectorDescriber(
            self._home, self._describer, attempt.vector_rows(changes.base), place=attempt.puffin_place
        )
        rows = describer.rows(snapshot)
        if rows and self._version < ROWS_NUMBERED:
            raise InvalidError(
                f"{self._home.where(self._home.paths.root)} has deletion vectors, which Iceberg has from version 3 on: expected "
                f"'{ICEBERG_FORMAT_VERSION.name}' = '3', or a full compaction"
            )
        return attempt.new_vectors(rows, describer.puffins)

    def _with_tags(self, metadata: Metadata, number: int) -> Metadata:
        """A version that is published, with the tags that the table has now."""
        refs = self._refs(metadata["snapshots"])
        if refs == metadata.get("refs"):
            return metadata
        tagged = {**metadata, "refs": refs}
        self._home.store.put(self._folder.version_path(number), encode_metadata(tagged))
        return tagged

    # ------------------------------------------------------------------ which files

    def _changes(self, snapshot: Snapshot, versions: list[int]) -> _Changes:
        earlier = [number for number in versions if number < snapshot.id]
        base = self._folder.read(earlier[-1]) if earlier else None
        made_of = None if base is None else self._continued(base)
        if base is not None and made_of is not None:
            found = self._since(base, snapshot)
            if found is not None:
                vectors_kept = made_of.index_manifest == snapshot.index_manifest
                return _Changes(base, *found, self._levels.name, vectors_kept)
        return self._afresh(snapshot)

    def _continued(self, base: Metadata) -> Snapshot | None:
        """The snapshot that a version was made of; None if it cannot be continued.

        It is of another line then, made by another rule, or has bounds of other types.
        """
        published = current_snapshot(base)
        if (
            published is None
            or published.get("summary", {}).get(LEVELS) != self._levels.name
            or base.get("format-version") != self._version
            or (self._version >= ROWS_NUMBERED and not isinstance(base.get(NEXT_ROW_ID), int))
        ):
            return None
        made_of = try_snapshot(self._home, int(published["snapshot-id"]))
        if made_of is None or not is_made_of(published, made_of):
            return None
        schemas = {one["schema-id"]: one for one in base["schemas"]}
        then = column_types(schemas[base["current-schema-id"]]["fields"])
        now = column_types(iceberg_schema(self._schema)["fields"])
        return made_of if all(then[number] == now[number] for number in then.keys() & now.keys()) else None

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
                elif self._levels.shows(entry.file.level):
                    added[path] = entry
                elif self._levels.hides_others(entry.file.level):
                    return None
        return tuple(added.values()), frozenset(removed)

    def _afresh(self, snapshot: Snapshot) -> _Changes:
        manifests = snapshot_manifests(self._home, snapshot)
        live = live_entries(self._home, manifests, threads=ManifestSettings.of(self._options).threads)
        live = live.filter(pa.array(live.column("_BUCKET").to_numpy() >= 0))
        chosen, levels = self._levels.choose(live)
        return _Changes(None, tuple(columns_to_entries(chosen)), frozenset(), levels, vectors_kept=False)

    # ------------------------------------------------------------------ the metadata file

    def _metadata(
        self,
        snapshot: Snapshot,
        changes: _Changes,
        manifests: list[PublishedManifest],
        list_path: str,
        next_row_id: int,
    ) -> Metadata:
        base, schema = changes.base, iceberg_schema(self._schema)
        before = [] if base is None else base["snapshots"]
        time_ms = max([snapshot.time_ms, *(one["timestamp-ms"] for one in before[-1:])])
        files, rows = live_counts(manifests)
        vectors, deleted = live_counts(manifests, DELETES)
        first_row_id = _next_row_id(base)
        changed = changes.removed or not (base is None or changes.vectors_kept)
        made = {
            "snapshot-id": snapshot.id,
            "sequence-number": snapshot.id,
            **({} if base is None else {"parent-snapshot-id": base["current-snapshot-id"]}),
            "timestamp-ms": time_ms,
            "summary": {
                "operation": "overwrite" if changed else "append",
                "total-data-files": str(files),
                "total-records": str(rows),
                "total-delete-files": str(vectors),
                "total-position-deletes": str(deleted),
                "total-equality-deletes": "0",
                MADE_OF: snapshot.delta_manifest_list,
                LEVELS: changes.levels,
            },
            "manifest-list": self._home.where(list_path),
            "schema-id": self._schema.id,
            **self._numbers({"first-row-id": first_row_id, "added-rows": next_row_id - first_row_id}),
        }
        kept = kept_snapshots(self._home, self._options, [*before, made])
        known = [] if base is None else [one for one in base["schemas"] if one["schema-id"] != self._schema.id]
        used = {one["schema-id"] for one in kept}
        spec = partition_spec(self._schema)
        return {
            "format-version": self._version,
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
            **self._numbers({NEXT_ROW_ID: next_row_id}),
            "refs": self._refs(kept),
            "snapshots": kept,
            "snapshot-log": [{"snapshot-id": one["snapshot-id"], "timestamp-ms": one["timestamp-ms"]} for one in kept],
        }

    def _numbers(self, fields: dict[str, int]) -> dict[str, int]:
        """Fields of versions whose rows have numbers; none in others."""
        return fields if self._version >= ROWS_NUMBERED else {}

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


def _next_row_id(base: Metadata | None) -> int:
    return 0 if base is None else int(base.get(NEXT_ROW_ID, 0))
