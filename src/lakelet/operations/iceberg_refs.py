"""Branch, tag and rollback operations of Iceberg tables."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from lakelet.iceberg import branches
from lakelet.iceberg.table import IcebergTable
from lakelet.operations.iceberg_maintenance import MAIN


@dataclass(frozen=True, slots=True)
class CreateRef:
    """A branch or tag at a snapshot, by default the newest of main; `keep` None keeps it for good."""

    name: str
    snapshot_id: int | None = None
    keep: timedelta | None = None
    if_not_exists: bool = False


def create_iceberg_branch(table: IcebergTable, request: CreateRef) -> int:
    """Create a branch; returns the id of its snapshot."""
    return branches.create_branch(
        table,
        request.name,
        snapshot_id=request.snapshot_id,
        if_not_exists=request.if_not_exists,
        keep=request.keep,
    )


def create_iceberg_tag(table: IcebergTable, request: CreateRef) -> int:
    """Create a tag; returns the id of its snapshot."""
    return branches.create_tag(
        table,
        request.name,
        snapshot_id=request.snapshot_id,
        if_not_exists=request.if_not_exists,
        keep=request.keep,
    )


def drop_iceberg_branch(table: IcebergTable, name: str, *, if_exists: bool = False) -> bool:
    """Drop a branch; whether it existed."""
    return branches.drop_branch(table, name, if_exists=if_exists)


def drop_iceberg_tag(table: IcebergTable, name: str, *, if_exists: bool = False) -> bool:
    """Drop a tag; whether it existed."""
    return branches.drop_tag(table, name, if_exists=if_exists)


def fast_forward_iceberg_branch(table: IcebergTable, branch: str, to: str) -> int:
    """Fast-forward a branch to a ref that descends from it; returns the id of the snapshot."""
    return branches.fast_forward(table, branch, to)


def roll_back_iceberg_table(table: IcebergTable, snapshot_id: int, branch: str | None = None) -> int | None:
    """Make an earlier snapshot a branch's newest; returns the id of the one before."""
    return branches.rollback_to_snapshot(table, snapshot_id, branch=branch or MAIN)
