"""The fallback branch: partitions that a table lacks are read from the branch named by 'scan.fallback-branch'.

    main      dt=01   dt=02
    branch            dt=02   dt=03        a scan gives 01 and 02 of main, 03 of the branch

A partition exists as soon as main has a live file of it; then nothing of the branch's is read, whatever rows of main's a
condition leaves. Without partitions, the branch is read while main is empty. Writes, changes and lists of files are of main
alone.

Each side is planned and read with its own schema: keys, merge engine and buckets may differ, columns and partition keys must not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakelet.commit.metadata.manifests import live_entries, snapshot_manifests
from lakelet.commit.metadata.schemas import latest_schema, read_schema
from lakelet.commit.metadata.snapshots import latest_snapshot, snapshot_at
from lakelet.commit.metadata.source import metadata
from lakelet.commit.versions.branches import branch_home
from lakelet.commit.versions.tags import try_tag
from lakelet.errors import InvalidError, NotFoundError
from lakelet.format.rows.binary_row_columns import encode_rows
from lakelet.model.schema import TableSchema
from lakelet.model.snapshot import Snapshot
from lakelet.model.split import Split
from lakelet.model.types import with_nullable
from lakelet.options import SCAN_FALLBACK_BRANCH, TableOptions
from lakelet.scan.plan import Plan
from lakelet.storage.home import TableHome
from lakelet.table.read.kept_lookup import find_kept_row, find_kept_rows, kept_lookup
from lakelet.table.read.point_read import chosen_columns, find_rows, get_row, key_table
from lakelet.table.usable import check_usable


@dataclass(frozen=True, slots=True)
class Fallback:
    """The version of the fallback branch that a read uses."""

    home: TableHome
    schema: TableSchema
    snapshot: Snapshot | None


def fallback_of(
    home: TableHome, schema: TableSchema, snapshot: Snapshot | None, *, newest: bool, tag: str | None = None
) -> Fallback | None:
    """The fallback of a version of a table, None where there is none.

    An older version falls back to the branch's version at its time, a tag to the branch's tag of the same name if there
    is one.
    """
    name = TableOptions(schema.options).get(SCAN_FALLBACK_BRANCH)
    if not name or not name.strip() or name == home.paths.branch:
        return None
    other = branch_home(home, name)
    found = latest_snapshot(other) if newest else _beside(other, snapshot, tag)
    theirs = latest_schema(other)
    if not newest and found is not None and found.schema_id != theirs.id:
        theirs = replace(read_schema(other, found.schema_id), options=theirs.options)
    _check_same_columns(home, schema, name, theirs)
    return Fallback(other, theirs, found)


def missing_splits(home: TableHome, snapshot: Snapshot | None, other: Fallback, plan: Plan) -> tuple[Split, ...]:
    """The splits of the fallback's plan whose partitions this version lacks."""
    there = partitions_among(home, snapshot, {split.partition for split in plan.splits})
    branch = other.home.paths.branch
    return tuple(replace(split, branch=branch) for split in plan.splits if split.partition not in there)


def partitions_among(home: TableHome, snapshot: Snapshot | None, partitions: set[bytes]) -> set[bytes]:
    """Those of the partitions (BinaryRow bytes) that a version has live files of."""
    if snapshot is None or not partitions:
        return set()
    wanted = pa.array(sorted(partitions), pa.binary())
    entries = live_entries(
        home,
        snapshot_manifests(home, snapshot),
        columns=(),
        keep=lambda table: table.filter(pc.is_in(table.column("_PARTITION"), value_set=wanted)),
    )
    return set(entries.column("_PARTITION").unique().to_pylist())


def get_newest_row(home: TableHome, key: Mapping[str, Any], columns: Sequence[str] | None) -> dict[str, Any] | None:
    """The row of the newest version with this key, from either branch; None where there is none."""
    snapshot, schema = metadata(home).newest(home)
    kept = None if snapshot is None else kept_lookup(home, schema, snapshot)
    if kept is not None:
        found_row = kept.get(key, columns)
        return get_row(home, schema, snapshot, key, columns) if found_row is None else found_row[0]
    check_usable(schema)
    other = fallback_of(home, schema, snapshot, newest=True)
    if other is None:
        return find_kept_row(home, schema, snapshot, key, columns)
    wanted, names = key_table([dict(key)], schema), chosen_columns(columns, schema)
    found = _rows_of_both(home, schema, snapshot, other, wanted, names).to_pylist()
    return found[0] if found else None


def get_newest_rows(home: TableHome, keys: Any, columns: Sequence[str] | None) -> pa.Table:
    """The rows of the newest version with these keys, in the order of the keys, from both branches."""
    snapshot, schema = metadata(home).newest(home)
    check_usable(schema)
    other = fallback_of(home, schema, snapshot, newest=True)
    wanted, names = key_table(keys, schema), chosen_columns(columns, schema)
    if other is None:
        return find_kept_rows(home, schema, snapshot, wanted, names)[0]
    return _rows_of_both(home, schema, snapshot, other, wanted, names)


def _rows_of_both(
    home: TableHome,
    schema: TableSchema,
    snapshot: Snapshot | None,
    other: Fallback,
    keys: pa.Table,
    columns: tuple[str, ...],
) -> pa.Table:
    """The rows with these keys, in their order; keys of missing partitions are looked up in the fallback branch."""
    if other.schema.primary_keys != schema.primary_keys:
        raise InvalidError(
            f"rows cannot be found by key: branch {other.home.paths.branch!r}, which fills in, has the primary key "
            f"{', '.join(other.schema.primary_keys) or 'none'} and not {', '.join(schema.primary_keys)}"
        )
    rows, places = find_rows(home, schema, snapshot, keys, columns)
    lacking = np.setdiff1d(np.arange(keys.num_rows), places)
    if not len(lacking):
        return rows
    needed = tuple(dict.fromkeys([*columns, *schema.partition_keys]))
    wanted = keys.take(pa.array(lacking))
    more, at = find_rows(other.home, other.schema, other.snapshot, wanted, needed)
    fills_in = _lacks(home, schema, snapshot, more)
    more, at = more.filter(pa.array(fills_in)).select(list(columns)), at[fills_in]
    together = pa.concat_tables([rows, more.cast(rows.schema)])
    order = np.argsort(np.concatenate([places, lacking[at]]), kind="stable")
    return together.take(pa.array(order))


def _lacks(home: TableHome, schema: TableSchema, snapshot: Snapshot | None, rows: pa.Table) -> npt.NDArray[np.bool_]:
    """For each row whether the version lacks its partition."""
    if not rows.num_rows or snapshot is None:
        return np.ones(rows.num_rows, bool)
    if not schema.partition_keys:
        files = live_entries(home, snapshot_manifests(home, snapshot), columns=())
        return np.full(rows.num_rows, files.num_rows == 0)
    columns = [rows.column(name).combine_chunks() for name in schema.partition_keys]
    partitions = encode_rows(columns, schema.partition_types)
    there = partitions_among(home, snapshot, set(partitions.unique().to_pylist()))
    found = pc.is_in(partitions, value_set=pa.array(sorted(there), pa.binary()))
    lacking: npt.NDArray[np.bool_] = ~found.to_numpy(zero_copy_only=False)
    return lacking


def _beside(other: TableHome, snapshot: Snapshot | None, tag: str | None) -> Snapshot | None:
    known = None if tag is None else try_tag(other, tag)
    if known is not None:
        return known.snapshot
    try:
        return None if snapshot is None else snapshot_at(other, snapshot.time_ms)
    except NotFoundError:
        return None


def _check_same_columns(home: TableHome, ours: TableSchema, branch: str, theirs: TableSchema) -> None:
    def columns(schema: TableSchema) -> list[tuple[str, str]]:
        return [(field.name, str(with_nullable(field.type, True))) for field in schema.fields]

    if columns(ours) == columns(theirs) and ours.partition_keys == theirs.partition_keys:
        return
    raise InvalidError(
        f"branch {branch!r} cannot fill in for branch {home.paths.branch!r} of {home.where(home.paths.root)}: columns and "
        f"partition keys must be the same; found {_shown(ours)} and {_shown(theirs)}. "
        f"Reset '{SCAN_FALLBACK_BRANCH.name}' or change the branch"
    )


def _shown(schema: TableSchema) -> str:
    columns = ", ".join(f"{field.name} {field.type}" for field in schema.fields)
    return f"({columns}) partitioned by ({', '.join(schema.partition_keys)})"
