"""Branch operations of a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lakelet.errors import NotFoundError
from lakelet.model.near_names import nearest
from lakelet.table import Table


@dataclass(frozen=True, slots=True)
class CreateBranch:
    """A branch to create, which begins with the version of a tag or a snapshot, or empty."""

    name: str
    tag: str | None = None
    snapshot_id: int | None = None
    if_not_exists: bool = False


def create_branch(table: Table, request: CreateBranch) -> None:
    """Create a branch."""
    table.branches.create(request.name, request.tag, request.snapshot_id, if_not_exists=request.if_not_exists)


def delete_branches(table: Table, names: Sequence[str]) -> None:
    """Delete branches; NotFoundError before the first is deleted where one does not exist."""
    there = table.branches.list()
    for name in names:
        if name not in there:
            raise NotFoundError(f"{table.name} has no branch {name!r}{nearest(name, there)}")
    for name in names:
        table.branches.delete(name)


def rename_branch(table: Table, name: str, new_name: str) -> None:
    """Renames a branch."""
    table.branches.rename(name, new_name)


def fast_forward(table: Table, name: str) -> int:
    """Fast-forward the main branch to a branch; returns the id of its newest snapshot."""
    return table.branches.fast_forward(name).id
