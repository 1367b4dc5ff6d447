"""The changes of a commit: a conflict when a file it replaces is not live any more; an overwrite replaces what is live."""

from dataclasses import replace

import pyarrow as pa
import pytest

from lakelet.commit.changes import compute_changes, partition_mask
from lakelet.commit.metadata.manifests import ManifestSettings
from lakelet.commit.request import CommitRequest, Overwrite
from lakelet.errors import ConflictError
from lakelet.format.rows.binary_row_columns import encode_rows
from lakelet.model.commit_message import CommitMessage
from lakelet.model.snapshot import CommitKind
from lakelet.storage.home import TableHome
from lakelet.storage.memory import MemoryStore
from lakelet.table import Table
from tests.crash.operations import rows
from tests.crash.warehouse import TABLE, home_on, lake_on

SETTINGS = ManifestSettings("avro", "zstd", 8 << 20, 1)


@pytest.fixture
def table() -> Table:
    lake = lake_on(MemoryStore())
    lake.create_database("d")
    table = lake.create_table(TABLE, [("id", "BIGINT"), ("p", "STRING")], partitioned_by=["p"])
    table.write(rows((1, "a"), (2, "b"), (3, None)))
    table.write(rows((4, "a")))
    return table


def home_of(table: Table) -> TableHome:
    return home_on(table._home.store)


def messages(table: Table, data: pa.Table) -> tuple[CommitMessage, ...]:
    with table.new_write() as write:
        write.write(data)
        return write.prepare_commit()


def changes(table: Table, request: CommitRequest):  # type: ignore[no-untyped-def]
    return compute_changes(home_of(table), request, table.latest_snapshot(), table.schema, SETTINGS)


def test_an_append_adds(table: Table) -> None:
    found = changes(table, CommitRequest("u", messages(table, rows((5, "a"), (6, "c")))))
    assert (found.entries.num_rows, found.removed.num_rows, found.record_delta) == (2, 0, 2)
    assert len(found.previous) == 2


def test_nothing_changes_nothing(table: Table) -> None:
    found = changes(table, CommitRequest("u", ()))
    assert (found.entries.num_rows, found.record_delta) == (0, 0)


@pytest.mark.parametrize(
    ("spec", "removed", "delta"),
    [({}, 4, -3), ({"p": "a"}, 2, -1), ({"p": None}, 1, 0), ({"p": "zz"}, 0, 1), (None, 2, -1)],
)
def test_an_overwrite_takes_what_is_live(
    table: Table, spec: dict[str, object] | None, removed: int, delta: int
) -> None:
    request = CommitRequest("u", messages(table, rows((5, "a"))), overwrite=Overwrite(spec))
    found = changes(table, request)
    assert (found.removed.num_rows, found.record_delta) == (removed, delta)
    assert found.entries.column("_KIND").to_pylist() == [1] * removed + [0]
    assert request.kind is CommitKind.OVERWRITE


def test_a_file_that_was_rewritten_meanwhile_is_a_conflict(table: Table) -> None:
    (message,) = messages(table, rows((9, "a")))
    committed = table.new_commit().commit([message])
    assert committed is not None
    taken = replace(message, new_files=(), deleted_files=message.new_files)
    assert changes(table, CommitRequest("u", (taken,))).record_delta == -1
    table.delete(where="id = 9")
    with pytest.raises(ConflictError, match=message.new_files[0].name):
        changes(table, CommitRequest("u", (taken,)))


def test_the_same_name_in_another_partition_or_level_is_another_file(table: Table) -> None:
    (message,) = messages(table, rows((9, "a")))
    table.new_commit().commit([message])
    (other,) = messages(table, rows((9, "b")))
    for wrong in (
        replace(message, partition=other.partition, new_files=(), deleted_files=message.new_files),
        replace(message, new_files=(), deleted_files=(replace(message.new_files[0], level=1),)),
    ):
        with pytest.raises(ConflictError):
            changes(table, CommitRequest("u", (wrong,)))


def test_files_for_another_number_of_buckets_are_a_conflict() -> None:
    lake = lake_on(MemoryStore())
    lake.create_database("d")
    table = lake.create_table(TABLE, [("id", "BIGINT"), ("p", "STRING")], options={"bucket": 2, "bucket-key": "id"})
    (message, *_) = messages(table, rows((1, "a")))
    with pytest.raises(ConflictError, match="4 buckets"):
        changes(table, CommitRequest("u", (replace(message, total_buckets=4),)))


def test_partitions_are_matched_by_value(table: Table) -> None:
    schema = table.schema
    partitions = encode_rows([pa.array(["a", "b", None])], schema.partition_types)
    assert partition_mask(partitions, schema, {"p": "b"}).tolist() == [False, True, False]
    assert partition_mask(partitions, schema, {"p": None}).tolist() == [False, False, True]
    assert partition_mask(partitions, schema, {}).tolist() == [True, True, True]


def test_a_delete_beside_an_overwrite_removes_each_file_once(table: Table) -> None:
    """A file that is both replaced by name and overwritten must not be taken away twice."""
    (message,) = messages(table, rows((9, "a")))
    table.new_commit().commit([message])
    taken = replace(message, new_files=(), deleted_files=message.new_files)
    found = changes(table, CommitRequest("u", (taken,), overwrite=Overwrite({"p": "a"})))
    assert sorted(found.removed.column("_FILE_NAME").to_pylist()) == sorted(
        set(found.removed.column("_FILE_NAME").to_pylist())
    )
    assert found.record_delta == -3
