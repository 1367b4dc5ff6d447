"""All files of a partition stand in one number of buckets, whatever is committed."""

from __future__ import annotations

import pytest

from lakelet import ConflictError, Table
from lakelet.commit.committer import commit
from lakelet.commit.request import CommitRequest
from lakelet.compact.rescale import Rescale
from lakelet.compact.running import Scope
from lakelet.model.commit_message import CommitMessage
from tests.unit.compact.keyed_tables import keyed_table, rows, values


def rewritten(table: Table, buckets: int) -> tuple[CommitMessage, ...]:
    """The messages of a partition that is rewritten for another number of buckets."""
    rescale = Rescale(table.home, buckets, lambda schema: Scope())
    groups = rescale.rewrite(table.schema, rescale.plan(table.schema))
    return tuple(message for group in groups for message in group)


def placed(*, write_only: bool = False) -> Table:
    options = {"bucket": "-2", "postpone.default-bucket-num": "2", "write-only": str(write_only).lower()}
    table = keyed_table(options)
    table.write(rows(range(10), "x"))
    table.compact()
    return table


def test_a_file_that_would_stay_behind_is_a_conflict() -> None:
    table = placed()
    messages = rewritten(table, 3)
    table.write(rows([3], "new"))
    table.compact()
    with pytest.raises(ConflictError, match=r"put rows into 2 buckets of p=a .*rewritten for 3"):
        commit(table.home, CommitRequest("u", messages))
    assert values(table)["a", 3] == "new3"


def test_waiting_rows_and_other_partitions_may_stay() -> None:
    table = placed()
    messages = rewritten(table, 3)
    table.write(rows([3], "waits"))
    table.write(rows(range(5), "x", "b"))
    table.compact(partition={"p": "b"})
    assert commit(table.home, CommitRequest("u", messages)) is not None
    assert len(values(table)) == 15
    table.compact()
    assert values(table)["a", 3] == "waits3"
