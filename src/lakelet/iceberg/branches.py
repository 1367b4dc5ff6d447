"""Create, drop and move branches and tags. Each change is one request that requires the ref to be as it was read, so that no
concurrent change is lost."""

from __future__ import annotations

from datetime import timedelta

from pyiceberg.table.refs import MAIN_BRANCH, SnapshotRef, SnapshotRefType
from pyiceberg.table.update import (
    AssertRefSnapshotId,
    AssertTableUUID,
    RemoveSnapshotRefUpdate,
    SetSnapshotRefUpdate,
    TableUpdate,
)

from lakelet.errors import AlreadyExistsError, ConflictError, InvalidError, NotFoundError
from lakelet.iceberg.commit.attempts import head_of, moved_ref
from lakelet.iceberg.commit.metadata_changes import Request, change_metadata
from lakelet.iceberg.table import IcebergTable
from lakelet.storage.paths import check_name


def create_branch(
    table: IcebergTable,
    name: str,
    *,
    snapshot_id: int | None = None,
    if_not_exists: bool = False,
    keep: timedelta | None = None,
) -> int:
    """Creates a branch at a snapshot, by default the newest of main; returns the snapshot's id. `keep`: when the branch, not
    its snapshots, expires."""
    return _create(table, name, SnapshotRefType.BRANCH, snapshot_id, if_not_exists, keep)


def create_tag(
    table: IcebergTable,
    name: str,
    *,
    snapshot_id: int | None = None,
    if_not_exists: bool = False,
    keep: timedelta | None = None,
) -> int:
    """Creates a tag at a snapshot, by default the newest of main."""
    return _create(table, name, SnapshotRefType.TAG, snapshot_id, if_not_exists, keep)


def drop_branch(table: IcebergTable, name: str, *, if_exists: bool = False) -> bool:
    """Removes a branch; its snapshots stay until they expire. False where there was none."""
    if name == MAIN_BRANCH:
        raise InvalidError(f"table {table.full_name}: branch {MAIN_BRANCH!r} cannot be dropped")
    return _drop(table, name, SnapshotRefType.BRANCH, if_exists)


def drop_tag(table: IcebergTable, name: str, *, if_exists: bool = False) -> bool:
    """Removes a tag; its snapshot stays until it expires. False where there was none."""
    return _drop(table, name, SnapshotRefType.TAG, if_exists)


def fast_forward(table: IcebergTable, branch: str, to: str) -> int:
    """Moves a branch to the snapshot of another branch or a tag, of which it must be an ancestor; returns the snapshot's id."""
    reached = 0

    def request(now: IcebergTable) -> Request | None:
        nonlocal reached
        head = head_of(now, branch)
        reached = _ref(now, to).snapshot_id
        if head is not None:
            if head.snapshot_id == reached:
                return None
            _check_ancestor(now, reached, head.snapshot_id, f"{branch!r} cannot be moved forward to {to!r}")
        return _request(now, branch, moved_ref(branch, reached, now.metadata.refs.get(branch)))

    change_metadata(table, request)
    return reached


def rollback_to_snapshot(table: IcebergTable, snapshot_id: int, *, branch: str = MAIN_BRANCH) -> int:
    """Moves a branch back to a snapshot of its history; returns the id of the former head. Later snapshots stay until they
    expire."""
    left = 0

    def request(now: IcebergTable) -> Request | None:
        nonlocal left
        head = head_of(now, branch)
        _check_known(now, snapshot_id)
        if head is None:
            raise InvalidError(f"table {now.full_name}: branch {branch!r} has no snapshot to go back from")
        left = head.snapshot_id
        if left == snapshot_id:
            return None
        _check_ancestor(now, left, snapshot_id, f"{branch!r} cannot go back to snapshot {snapshot_id}")
        return _request(now, branch, moved_ref(branch, snapshot_id, now.metadata.refs.get(branch)))

    change_metadata(table, request)
    return left


def _create(
    table: IcebergTable,
    name: str,
    kind: SnapshotRefType,
    snapshot_id: int | None,
    if_not_exists: bool,
    keep: timedelta | None,
) -> int:
    check_name(name, kind.value)
    chosen = 0

    def request(now: IcebergTable) -> Request | None:
        nonlocal chosen
        found = now.metadata.refs.get(name)
        if found is not None:
            if if_not_exists and found.snapshot_ref_type == kind:
                chosen = found.snapshot_id
                return None
            raise AlreadyExistsError(f"table {now.full_name}: {found.snapshot_ref_type.value} {name!r} exists")
        number = snapshot_id if snapshot_id is not None else now.metadata.current_snapshot_id
        if number is None:
            raise InvalidError(
                f"table {now.full_name} has no snapshot yet, so that a {kind.value} has nothing to stand for"
            )
        _check_known(now, number)
        chosen = number
        values = {"ref-name": name, "type": kind, "snapshot-id": number}
        if keep is not None:
            values["max-ref-age-ms"] = int(keep / timedelta(milliseconds=1))
        return _request(now, name, SetSnapshotRefUpdate.model_validate(values))

    change_metadata(table, request)
    return chosen


def _drop(table: IcebergTable, name: str, kind: SnapshotRefType, if_exists: bool) -> bool:
    def request(now: IcebergTable) -> Request | None:
        found = now.metadata.refs.get(name)
        if found is None and if_exists:
            return None
        if found is None or found.snapshot_ref_type != kind:
            raise NotFoundError(f"table {now.full_name} has no {kind.value} {name!r}{_known(now, kind)}")
        return _request(now, name, RemoveSnapshotRefUpdate.model_validate({"ref-name": name}))

    return change_metadata(table, request) is not None


def _request(now: IcebergTable, name: str, update: TableUpdate) -> Request:
    found = now.metadata.refs.get(name)
    requirements = (
        AssertTableUUID(uuid=now.metadata.table_uuid),
        AssertRefSnapshotId.model_validate({"ref": name, "snapshot-id": found.snapshot_id if found else None}),
    )
    return requirements, (update,)


def _ref(now: IcebergTable, name: str) -> SnapshotRef:
    found = now.metadata.refs.get(name)
    if found is None:
        known = ", ".join(sorted(now.metadata.refs)) or "none"
        raise NotFoundError(f"table {now.full_name} has no branch or tag {name!r}; there are {known}")
    return found


def _known(now: IcebergTable, kind: SnapshotRefType) -> str:
    names = sorted(name for name, ref in now.metadata.refs.items() if ref.snapshot_ref_type == kind)
    return f"; there are {', '.join(names)}" if names else ""


def _check_known(now: IcebergTable, snapshot_id: int) -> None:
    if now.metadata.snapshot_by_id(snapshot_id) is None:
        raise NotFoundError(f"table {now.full_name} has no snapshot {snapshot_id}")


def _check_ancestor(now: IcebergTable, newer: int, older: int, what: str) -> None:
    by_id = {snapshot.snapshot_id: snapshot for snapshot in now.metadata.snapshots}
    found = by_id.get(newer)
    while found is not None and found.snapshot_id != older:
        found = by_id.get(found.parent_snapshot_id) if found.parent_snapshot_id is not None else None
    if found is None:
        raise ConflictError(f"table {now.full_name}: {what}, for snapshot {newer} did not grow out of snapshot {older}")
