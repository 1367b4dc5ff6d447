"""Branches as operations."""

import pytest

from lakelet.errors import NotFoundError
from lakelet.operations.branches import CreateBranch, create_branch, delete_branches, fast_forward, rename_branch
from lakelet.table import Table
from tests.unit.versioned_table import ids, put


def test_a_branch_is_made_renamed_and_followed(table: Table) -> None:
    create_branch(table, CreateBranch("dev", snapshot_id=2))
    create_branch(table, CreateBranch("dev", snapshot_id=2, if_not_exists=True))
    rename_branch(table, "dev", "next")
    assert table.branch_names() == ["next"]
    put(table.on_branch("next"), 9)
    assert fast_forward(table, "next") == 3
    assert ids(table) == [1, 2, 9]


def test_all_branches_are_there_or_none_is_deleted(table: Table) -> None:
    create_branch(table, CreateBranch("dev"))
    with pytest.raises(NotFoundError, match=r"d\.t has no branch 'dex'; did you mean dev"):
        delete_branches(table, ("dev", "dex"))
    assert table.branch_names() == ["dev"]
    delete_branches(table, ("dev",))
    assert table.branch_names() == []
