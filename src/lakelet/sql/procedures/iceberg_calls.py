"""The functions of the procedures for Iceberg tables: each passes one request to `lakelet.operations`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from lakelet.errors import InvalidError
from lakelet.iceberg.table import IcebergTable
from lakelet.operations import iceberg_maintenance, iceberg_refs
from lakelet.operations.iceberg_refs import CreateRef
from lakelet.sql.iceberg.names import IcebergName, iceberg_name, open_iceberg
from lakelet.sql.procedures.procedure import Call, Done, split_parts


def _table(call: Call, *, with_branch: bool = False) -> tuple[IcebergTable, IcebergName]:
    text = call.values["table"]
    name = iceberg_name(call.context, split_parts(text))
    if name.system is not None:
        raise InvalidError(f"{text!r}: expected a table, found a system table")
    if name.branch is not None and not with_branch:
        raise InvalidError(f"{text!r}: expected a table without a branch")
    return open_iceberg(call.context, name), name


def _expire_snapshots(call: Call) -> Done:
    table, _ = _table(call)
    request = iceberg_maintenance.ExpireIcebergSnapshots(
        call.age("older_than"), call.number("retain_last"), call.number("snapshot_id")
    )
    done = iceberg_maintenance.expire_iceberg_snapshots(table, request)
    row = (
        len(done.snapshots),
        len(done.refs),
        done.removed_files,
        done.removed_manifests,
        done.removed_manifest_lists,
        done.removed_statistics,
    )
    return Done(f"expired {len(done.snapshots)} snapshots of {table.full_name}", [row])


def _remove_orphan_files(call: Call) -> Done:
    table, _ = _table(call)
    request = iceberg_maintenance.RemoveIcebergOrphans(call.age("older_than"), call.flag("dry_run"))
    done = iceberg_maintenance.remove_iceberg_orphans(table, request)
    verb = "would remove" if request.dry_run else "removed"
    return Done(f"{verb} {len(done.paths)} files of {table.full_name}", [(path,) for path in done.paths])


def _rewrite_data_files(call: Call) -> Done:
    table, name = _table(call, with_branch=True)
    request = iceberg_maintenance.RewriteDataFiles(
        call.text("where"), call.number("target_file_bytes"), call.number("min_input_files"), name.branch
    )
    done = iceberg_maintenance.rewrite_iceberg_data_files(table, request)
    number = done.snapshot.id if done.snapshot is not None else None
    return Done(
        f"rewrote {done.rewritten_files} files of {table.full_name} into {done.added_files}",
        [(number, done.rewritten_files, done.added_files, done.rewritten_bytes)],
    )


def _rewrite_manifests(call: Call) -> Done:
    table, name = _table(call, with_branch=True)
    done = iceberg_maintenance.rewrite_iceberg_manifests(table, name.branch)
    number = done.snapshot.id if done.snapshot is not None else None
    return Done(f"rewrote {done.manifests} manifests of {table.full_name}", [(number, done.manifests)])


def _create_branch(call: Call) -> Done:
    return _created(call, "branch", iceberg_refs.create_iceberg_branch)


def _create_tag(call: Call) -> Done:
    return _created(call, "tag", iceberg_refs.create_iceberg_tag)


def _created(call: Call, kind: str, create: Callable[[IcebergTable, CreateRef], int]) -> Done:
    table, _ = _table(call)
    name = call.values["name"]
    request = CreateRef(
        name, call.number("snapshot_id"), call.length("time_retained"), if_not_exists=call.flag("if_not_exists")
    )
    number = create(table, request)
    return Done(f"{kind} {name!r} of {table.full_name} is at snapshot {number}", [(name, number)])


def _drop_branch(call: Call) -> Done:
    return _dropped(call, "branch", iceberg_refs.drop_iceberg_branch)


def _drop_tag(call: Call) -> Done:
    return _dropped(call, "tag", iceberg_refs.drop_iceberg_tag)


def _dropped(call: Call, kind: str, drop: Callable[..., bool]) -> Done:
    table, _ = _table(call)
    name = call.values["name"]
    if not drop(table, name, if_exists=call.flag("if_exists")):
        return Done(f"{table.full_name} has no {kind} {name!r}", [])
    return Done(f"dropped {kind} {name!r} of {table.full_name}", [(name,)])


def _fast_forward(call: Call) -> Done:
    table, _ = _table(call)
    branch, to = call.values["branch"], call.values["to"]
    number = iceberg_refs.fast_forward_iceberg_branch(table, branch, to)
    return Done(f"branch {branch!r} of {table.full_name} is at snapshot {number}, as {to!r} is", [(branch, number)])


def _rollback_to_snapshot(call: Call) -> Done:
    table, name = _table(call, with_branch=True)
    number = call.values["snapshot_id"]
    before = iceberg_refs.roll_back_iceberg_table(table, number, name.branch)
    return Done(f"{table.full_name} went back from snapshot {before} to {number}", [(before, number)])


CALLS: Mapping[str, Callable[[Call], Done]] = {
    "iceberg_expire_snapshots": _expire_snapshots,
    "iceberg_remove_orphan_files": _remove_orphan_files,
    "iceberg_rewrite_data_files": _rewrite_data_files,
    "iceberg_rewrite_manifests": _rewrite_manifests,
    "iceberg_create_branch": _create_branch,
    "iceberg_drop_branch": _drop_branch,
    "iceberg_fast_forward": _fast_forward,
    "iceberg_create_tag": _create_tag,
    "iceberg_drop_tag": _drop_tag,
    "iceberg_rollback_to_snapshot": _rollback_to_snapshot,
}
