"""The requests that make a table of a REST catalog what the metadata of a published table says. Pure: nothing is sent here.

    the catalog has no such table       all of it, if there is still none
    it shows an older version           the snapshots since, main moved to the newest, tags and expired snapshots
    that cannot be continued            None: the sequence numbers of Iceberg only rise, and those of a table start again after a
                                        rollback; the same where somebody else has written to the table in the catalog

A schema gets the number that the catalog gives it, so that a table is altered back and forth without new ones. The first has no
columns, as Java Paimon leaves one there: schema N of a table is N + 1 in the catalog for both.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import MAIN_BRANCH
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
from pyiceberg.table.update import (
    AddPartitionSpecUpdate,
    AddSchemaUpdate,
    AddSnapshotUpdate,
    AddSortOrderUpdate,
    AssignUUIDUpdate,
    RemoveSnapshotRefUpdate,
    RemoveSnapshotsUpdate,
    SetCurrentSchemaUpdate,
    SetDefaultSortOrderUpdate,
    SetDefaultSpecUpdate,
    SetLocationUpdate,
    SetPropertiesUpdate,
    SetSnapshotRefUpdate,
    TableUpdate,
    UpgradeFormatVersionUpdate,
)
from pyiceberg.typedef import IcebergBaseModel

# Catalogs refuse a snapshot that is older by more than this than the last change of its table.
_CLOCK_SKEW_MS = 60_000
_ROWS_NUMBERED = 3
_LAST_ADDED = -1


def created(metadata: Mapping[str, Any], staged: TableMetadata, properties: Mapping[str, str]) -> list[TableUpdate]:
    """The updates that create the table, under the identity and the location that the catalog has staged for it."""
    schemas = _Schemas([Schema(schema_id=0)])
    added = [_snapshot(one, metadata, schemas) for one in metadata["snapshots"]]
    current = schemas.number(_schema(metadata, metadata["current-schema-id"]))
    return [
        AssignUUIDUpdate(uuid=staged.table_uuid),
        _update(UpgradeFormatVersionUpdate, format_version=metadata["format-version"]),
        _update(AddSchemaUpdate, schema=Schema(schema_id=0)),
        *schemas.added,
        _update(SetCurrentSchemaUpdate, schema_id=current),
        AddPartitionSpecUpdate(spec=_spec(metadata)),
        _update(SetDefaultSpecUpdate, spec_id=_LAST_ADDED),
        _update(AddSortOrderUpdate, sort_order=UNSORTED_SORT_ORDER),
        _update(SetDefaultSortOrderUpdate, sort_order_id=_LAST_ADDED),
        SetLocationUpdate(location=staged.location),
        SetPropertiesUpdate(updates=dict(properties)),
        *(AddSnapshotUpdate(snapshot=one) for one in added),
        _main(metadata),
        *_tags(metadata["refs"], {}),
    ]


def continued(
    there: TableMetadata, metadata: Mapping[str, Any], properties: Mapping[str, str]
) -> list[TableUpdate] | None:
    """The updates that bring the table on, none if it is there; None where it cannot be brought on."""
    if there.format_version != metadata["format-version"]:
        return None
    if there.default_spec_id != 0 or there.spec() != _spec(metadata):
        return None
    added = _added(there, metadata)
    if added is None:
        return None
    schemas = _Schemas(there.schemas)
    snapshots = [_snapshot(one, metadata, schemas) for one in added]
    current = schemas.number(_schema(metadata, metadata["current-schema-id"]))
    kept = {one["snapshot-id"] for one in metadata["snapshots"] if _is_there(one, there)} | {
        one.snapshot_id for one in snapshots
    }
    gone = [one.snapshot_id for one in there.snapshots if one.snapshot_id not in kept]
    updates: list[TableUpdate] = list(schemas.added)
    if current != there.current_schema_id:
        updates.append(_update(SetCurrentSchemaUpdate, schema_id=current))
    changed = {key: value for key, value in properties.items() if there.properties.get(key) != value}
    if changed:
        updates.append(SetPropertiesUpdate(updates=changed))
    updates += [AddSnapshotUpdate(snapshot=one) for one in snapshots]
    if snapshots:
        updates.append(_main(metadata))
    before = {
        name: ref.model_dump(by_alias=True, exclude_none=True)
        for name, ref in there.refs.items()
        if name != MAIN_BRANCH
    }
    wanted = {name: ref for name, ref in metadata["refs"].items() if ref["snapshot-id"] in kept}
    updates += [_update(RemoveSnapshotRefUpdate, ref_name=name) for name in before if name not in wanted]
    updates += _tags(wanted, before)
    if gone:
        updates.append(_update(RemoveSnapshotsUpdate, snapshot_ids=gone))
    return updates


def is_current(there: TableMetadata, metadata: Mapping[str, Any]) -> bool:
    """Whether the catalog's table shows the newest snapshot of the metadata."""
    newest = metadata["snapshots"][-1]
    return there.current_snapshot_id == newest["snapshot-id"] and _is_there(newest, there)


def _added(there: TableMetadata, metadata: Mapping[str, Any]) -> list[Mapping[str, Any]] | None:
    """The snapshots to add, of which the last is the newest; None where the catalog would not take it."""
    if is_current(there, metadata):
        return []
    newest, last = metadata["snapshots"][-1], there.next_sequence_number() - 1
    since = there.last_updated_ms - _CLOCK_SKEW_MS
    if newest["sequence-number"] <= last:
        return None
    added = [
        one
        for one in metadata["snapshots"]
        if one["sequence-number"] > last and (one["timestamp-ms"] >= since or one is newest)
    ]
    numbered = metadata["format-version"] >= _ROWS_NUMBERED
    if numbered and any(one["first-row-id"] < (getattr(there, "next_row_id", None) or 0) for one in added):
        return None
    return added


_Update = TypeVar("_Update", bound=IcebergBaseModel)


def _update(kind: type[_Update], **fields: object) -> _Update:
    """An update with these fields, whose names in the library have hyphens."""
    return kind.model_validate({name.replace("_", "-"): value for name, value in fields.items()})


class _Schemas:
    """The schemas of the catalog's table, by the numbers that it gives them: a new one the number behind the greatest."""

    def __init__(self, known: Iterable[Schema]) -> None:
        self._known = list(known)
        self.added: list[TableUpdate] = []

    def number(self, schema: Schema) -> int:
        """The number of a schema, which is added if it is new."""
        for one in self._known:
            if one == schema:
                return one.schema_id
        number = max((one.schema_id for one in self._known), default=_LAST_ADDED) + 1
        numbered = Schema(*schema.fields, schema_id=number)
        self._known.append(numbered)
        self.added.append(_update(AddSchemaUpdate, schema=numbered))
        return number


def _schema(metadata: Mapping[str, Any], number: int) -> Schema:
    found = next(one for one in metadata["schemas"] if one["schema-id"] == number)
    return Schema.model_validate(found)


def _spec(metadata: Mapping[str, Any]) -> PartitionSpec:
    return PartitionSpec.model_validate(metadata["partition-specs"][0])


def _snapshot(one: Mapping[str, Any], metadata: Mapping[str, Any], schemas: _Schemas) -> Snapshot:
    return Snapshot.model_validate({**one, "schema-id": schemas.number(_schema(metadata, one["schema-id"]))})


def _is_there(one: Mapping[str, Any], there: TableMetadata) -> bool:
    found = there.snapshot_by_id(one["snapshot-id"])
    return found is not None and found.manifest_list == one["manifest-list"]


def _main(metadata: Mapping[str, Any]) -> SetSnapshotRefUpdate:
    ref = {"ref-name": MAIN_BRANCH, "type": "branch", "snapshot-id": metadata["current-snapshot-id"]}
    return SetSnapshotRefUpdate.model_validate(ref)


def _tags(wanted: Mapping[str, Any], before: Mapping[str, Any]) -> Sequence[TableUpdate]:
    """The updates for tags that are new or name another snapshot."""
    return [
        SetSnapshotRefUpdate.model_validate({**ref, "ref-name": name})
        for name, ref in wanted.items()
        if before.get(name, {}).get("snapshot-id") != ref["snapshot-id"] or before[name].get("type") != ref["type"]
    ]
