"""All files of a partition have the same number of buckets, whatever is committed."""

from __future__ import annotations

import pytest

from lakelet import ConflictError, Table
from lakelet.commit.committer import commit
from lakelet.commit.metadata.snapshots import latest_snapshot
from lakelet.commit.request import CommitRequest
from lakelet.compact.buckets.rescale import Rescale, set_buckets
from lakelet.compact.compaction import Scope
from lakelet.model.commit_message import CommitMessage
from lakelet.storage.memory import MemoryStore
from lakelet.table.write.committed_write import commit_on_top
from lakelet.table.write.repetition import Repetition
from tests.unit.compact.keyed_tables import keyed_table, places, rows, values
from tests.unit.hooked_store import HookedStore


def rewritten(table: Table, buckets: int) -> tuple[CommitMessage, ...]:
    """The messages of a partition that is rewritten for another number of buckets."""
    rescale = Rescale(table.home, buckets, lambda schema: Scope())
    snapshot = latest_snapshot(table.home)
    assert snapshot is not None
    groups = rescale.rewrite(table.schema, rescale.plan(table.schema, snapshot))
    return tuple(message for group in groups for message in group)


def placed() -> Table:
    options = {"bucket": "-2", "postpone.default-bucket-num": "2"}
    table = keyed_table(options)
    table.write(rows(range(10), "x"))
    table.compact()
    return table


def test_a_file_that_would_stay_behind_is_a_conflict() -> None:
    table = placed()
    messages = rewritten(table, 3)
    table.write(rows([3], "new"))
    table.compact()
    with pytest.raises(ConflictError, match=r"put rows into 2 buckets of p=a, while this one wrote for 3"):
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


@pytest.mark.parametrize("key", [("id", "p"), ()], ids=["keyed", "append"])
def test_there_and_back(key: tuple[str, ...]) -> None:
    """A writer for 2 buckets, a table that was rescaled to 3, and its option on the way back to 2 when the writer commits."""
    table = keyed_table({"bucket": "2", "bucket-key": "id"}, key=key)
    table.write(rows(range(10), "old"))
    late = table.new_write()
    late.write(rows(range(5, 12), "late"))
    messages = late.prepare_commit()
    table.rescale(3)
    set_buckets(table.home, 2)
    with pytest.raises(ConflictError, match="written for 2 buckets, but there were 3 since"):
        table.new_commit().commit(messages)
    table.rescale(2)
    assert {total for _, total in places(table)} == {2}
    assert values(table) == {("a", n): f"old{n}" for n in range(10)}


@pytest.mark.parametrize("key", [("id", "p"), ()], ids=["keyed", "append"])
def test_two_that_make_a_partition_at_once(key: tuple[str, ...]) -> None:
    """One passes its checks before the option changes and lands after another has looked at the table."""
    store = HookedStore(MemoryStore())
    table = keyed_table({"bucket": "2", "bucket-key": "id"}, key=key, store=store)
    table.write(rows(range(3), "x", "other"))
    prepared: list[tuple[CommitMessage, ...]] = []

    def change_and_prepare() -> None:
        set_buckets(table.home, 3)
        later = table.new_write()
        later.write(rows(range(10), "later"))
        prepared.append(later.prepare_commit())

    # Manifests are written after the checks and before the snapshot.
    store.when = lambda call, path: call == "put" and "manifest-list" in path
    store.after = change_and_prepare
    table.write(rows(range(10), "earlier"))
    with pytest.raises(ConflictError, match="put rows into 2 buckets of p=a, while this one wrote for 3"):
        commit_on_top(table.new_commit(), table.schema, prepared[0], Repetition(table.home, table.schema))
    table.rescale(3)
    assert {total for _, total in places(table)} == {3}
    assert len(values(table)) == 13
