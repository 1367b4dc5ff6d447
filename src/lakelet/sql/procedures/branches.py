"""create_branch, delete_branch, rename_branch, fast_forward."""

from __future__ import annotations

import pyarrow as pa

from lakelet.operations import branches
from lakelet.sql.procedures.procedure import TABLE_ARGUMENT, Argument, Call, Column, Done, Procedure
from lakelet.sql.procedures.values import FLAG, NAMES, NUMBER, TEXT

_BRANCH = Argument("branch", TEXT, "The name of the branch.", required=True, aliases=("branch_name",))
_NAMES = (Column("branch_name", pa.string()),)


def create_branch(call: Call) -> Done:
    """Creates a branch from a tag, a snapshot, or empty."""
    table, name = call.table(), call.values["branch"]
    request = branches.CreateBranch(name, call.text("tag"), call.number("snapshot_id"), call.flag("ignore_if_exists"))
    branches.create_branch(table, request)
    return Done(f"{table.name} has a branch {name!r}", [(name,)])


def delete_branch(call: Call) -> Done:
    """Deletes branches."""
    table, names = call.table(), call.values["branch"]
    branches.delete_branches(table, names)
    return Done(f"deleted branches {', '.join(map(repr, names))} of {table.name}", [(name,) for name in names])


def rename_branch(call: Call) -> Done:
    """Renames a branch."""
    table, name, target = call.table(), call.values["from_branch"], call.values["to_branch"]
    branches.rename_branch(table, name, target)
    return Done(f"branch {name!r} of {table.name} is now {target!r}", [(target,)])


def fast_forward(call: Call) -> Done:
    """Fast-forwards the main branch to a branch."""
    table, name = call.table(), call.values["branch"]
    number = branches.fast_forward(table, name)
    return Done(f"{table.name} is as branch {name!r}, at snapshot {number}", [(number,)])


BRANCHING = (
    Procedure(
        "create_branch",
        "Makes a branch that begins with the version of a tag or snapshot, or empty.",
        (
            TABLE_ARGUMENT,
            _BRANCH,
            Argument("tag", TEXT, "The tag that it begins with.", aliases=("tag_name",)),
            Argument(
                "ignore_if_exists", FLAG, "Does nothing if a branch of that name exists.", aliases=("ignoreIfExists",)
            ),
            Argument("snapshot_id", NUMBER, "The snapshot that it begins with.", aliases=("snapshot",)),
        ),
        _NAMES,
        create_branch,
    ),
    Procedure(
        "delete_branch",
        "Deletes branches, and the files that nothing else needs.",
        (TABLE_ARGUMENT, Argument("branch", NAMES, "The branch, or several.", required=True, aliases=("branch_name",))),
        _NAMES,
        delete_branch,
    ),
    Procedure(
        "rename_branch",
        "Gives a branch another name.",
        (
            TABLE_ARGUMENT,
            Argument("from_branch", TEXT, "The name it has.", required=True),
            Argument("to_branch", TEXT, "The new name.", required=True),
        ),
        _NAMES,
        rename_branch,
    ),
    Procedure(
        "fast_forward",
        "Fast-forwards the main branch to a branch.",
        (TABLE_ARGUMENT, _BRANCH),
        (Column("snapshot_id", pa.int64()),),
        fast_forward,
    ),
)
