"""What procedures for Iceberg tables do: each calls one function of `lakelet.iceberg`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from lakelet.clock import SystemClock
from lakelet.errors import InvalidError
from lakelet.iceberg.branches import (
    create_branch,
    create_tag,
    drop_branch,
    drop_tag,
    fast_forward,
    rollback_to_snapshot,
)
from lakelet.iceberg.maintenance.data_file_rewrite import rewrite_data_files
from lakelet.iceberg.maintenance.expiry import expire_snapshots
from lakelet.iceberg.maintenance.manifest_rewrite import rewrite_manifests
from lakelet.iceberg.maintenance.orphans import remove_orphan_files
from lakelet.iceberg.table import IcebergTable
from lakelet.sql.iceberg.names import IcebergName, iceberg_name, open_iceberg
from lakelet.sql.procedures.procedure import Call, Done, split_parts
from lakelet.table.time_arguments import past_ms

_MAIN = "main"
_MIN_INPUT_FILES = 5


def _table(call: Call, *, with_branch: bool = False) -> tuple[IcebergTable, IcebergName]:
    text = call.values["table"]
    name = iceberg_name(call.context, split_parts(text))
    if name.system is not None:
        raise InvalidError(f"{text!r}: expected a table, found a system table")
    if name.branch is not None and not with_branch:
        raise InvalidError(f"{text!r}: expected a table without a branch")
    return open_iceberg(call.context, name), name


def _older_than(call: Call) -> int | None:
    age = call.age("older_than")
    return None if age is None else past_ms(age, SystemClock().now_ms(), "older_than")


def _expire_snapshots(call: Call) -> Done:
    table, _ = _table(call)
    chosen = call.number("snapshot_id")
    done = expire_snapshots(
        table,
        older_than_ms=_older_than(call),
        retain_last=call.number("retain_last"),
        snapshot_ids=() if chosen is None else (chosen,),
    )
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
    dry = call.flag("dry_run")
    done = remove_orphan_files(table, older_than_ms=_older_than(call), dry_run=dry)
    verb = "would remove" if dry else "removed"
    return Done(f"{verb} {len(done.paths)} files of {table.full_name}", [(path,) for path in done.paths])


def _rewrite_data_files(call: Call) -> Done:
    table, name = _table(call, with_branch=True)
    fewest = call.number("min_input_files")
    done = rewrite_data_files(
        table,
        target_bytes=call.number("target_file_bytes"),
        min_input_files=_MIN_INPUT_FILES if fewest is None else fewest,
        where=call.text("where"),
        branch=name.branch or _MAIN,
    )
    number = done.snapshot.id if done.snapshot is not None else None
    return Done(
        f"rewrote {done.rewritten_files} files of {table.full_name} into {done.added_files}",
        [(number, done.rewritten_files, done.added_files, done.rewritten_bytes)],
    )


def _rewrite_manifests(call: Call) -> Done:
    table, name = _table(call, with_branch=True)
    done = rewrite_manifests(table, branch=name.branch or _MAIN)
    number = done.snapshot.id if done.snapshot is not None else None
    return Done(f"rewrote {done.manifests} manifests of {table.full_name}", [(number, done.manifests)])


def _create_branch(call: Call) -> Done:
    return _created(call, "branch", create_branch)


def _create_tag(call: Call) -> Done:
    return _created(call, "tag", create_tag)


def _created(call: Call, kind: str, create: Callable[..., int]) -> Done:
    table, _ = _table(call)
    name = call.values["name"]
    number = create(
        table,
        name,
        snapshot_id=call.number("snapshot_id"),
        if_not_exists=call.flag("if_not_exists"),
        keep=call.length("time_retained"),
    )
    return Done(f"{kind} {name!r} of {table.full_name} is at snapshot {number}", [(name, number)])


def _drop_branch(call: Call) -> Done:
    return _dropped(call, "branch", drop_branch)


def _drop_tag(call: Call) -> Done:
    return _dropped(call, "tag", drop_tag)


def _dropped(call: Call, kind: str, drop: Callable[..., bool]) -> Done:
    table, _ = _table(call)
    name = call.values["name"]
    if not drop(table, name, if_exists=call.flag("if_exists")):
        return Done(f"{table.full_name} has no {kind} {name!r}", [])
    return Done(f"dropped {kind} {name!r} of {table.full_name}", [(name,)])


def _fast_forward(call: Call) -> Done:
    table, _ = _table(call)
    branch, to = call.values["branch"], call.values["to"]
    number = fast_forward(table, branch, to)
    return Done(f"branch {branch!r} of {table.full_name} is at snapshot {number}, as {to!r} is", [(branch, number)])


def _rollback_to_snapshot(call: Call) -> Done:
    table, name = _table(call, with_branch=True)
    number = call.values["snapshot_id"]
    before = rollback_to_snapshot(table, number, branch=name.branch or _MAIN)
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
