"""What another writer may have done meanwhile to a primary-key table, and which commits notice."""

import pickle
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from lakelet.commit.changes import Changes, compute_changes
from lakelet.commit.committer import commit
from lakelet.commit.conflict.conflicts import AssignmentConflictError, SequenceConflictError
from lakelet.commit.index_changes import read_index_entries
from lakelet.commit.metadata.manifests import ManifestSettings
from lakelet.commit.metadata.schemas import create_first_schema, latest_schema
from lakelet.commit.metadata.snapshots import latest_snapshot
from lakelet.commit.request import CommitRequest, Overwrite
from lakelet.errors import ConflictError
from lakelet.format.manifest.manifest_columns import EMPTY_ROW, NO_STATS
from lakelet.format.metadata.snapshot_json import encode_snapshot
from lakelet.format.rows.binary_row import encode_row
from lakelet.model.commit_message import CommitMessage
from lakelet.model.data_file import DataFile, IndexFile
from lakelet.model.schema import new_schema
from lakelet.model.snapshot import CommitKind, Snapshot
from lakelet.model.type_parser import parse_type
from lakelet.model.types import Field
from lakelet.storage.home import TableHome
from lakelet.storage.memory import MemoryStore
from lakelet.testing.instrumented_stores import CountingStore
from tests.crash.warehouse import home_on

SETTINGS = ManifestSettings("avro", "zstd", 8 << 20, 1)
KEY = [parse_type("BIGINT NOT NULL")]
INT = [parse_type("INT")]
P1, P2 = encode_row([1], INT), encode_row([2], INT)


def home_with(
    *, partitioned: bool = False, options: Mapping[str, str] | None = None, key: str = "BIGINT", keys: Any = None
) -> TableHome:
    home = home_on(CountingStore(MemoryStore()))
    fields = [Field(-1, "k", parse_type(key)), Field(-1, "p", parse_type("INT")), Field(-1, "v", parse_type("INT"))]
    schema = new_schema(
        fields,
        partition_keys=["p"] if partitioned else [],
        primary_keys=keys or (["p", "k"] if partitioned else ["k"]),
        options={"bucket": "4"} if options is None else options,
        comment=None,
        time_ms=0,
    )
    create_first_schema(home, schema)
    return home


def file(name: str, keys: tuple[Any, Any], sequences: tuple[int, int], level: int = 0, types: Any = KEY) -> DataFile:
    low, high = (encode_row([key], types) for key in keys)
    return DataFile(name, 1, 1, low, high, NO_STATS, NO_STATS, *sequences, 0, level)


def added(*files: DataFile, bucket: int = 0, partition: bytes = EMPTY_ROW, **more: Any) -> CommitMessage:
    return CommitMessage(partition, bucket, more.pop("total_buckets", 4), files, **more)


def changes(home: TableHome, *messages: CommitMessage, overwrite: Overwrite | None = None) -> Changes:
    request = CommitRequest("u", messages, overwrite=overwrite)
    return compute_changes(home, request, latest_snapshot(home), latest_schema(home), SETTINGS)


def done(home: TableHome, *messages: CommitMessage, overwrite: Overwrite | None = None) -> Snapshot:
    made = commit(home, CommitRequest("u", messages, overwrite=overwrite))
    assert made is not None
    return made


def base_of(snapshot: Snapshot) -> tuple[int, str]:
    return snapshot.id, snapshot.delta_manifest_list


def test_rule_5_rows_that_would_be_older_than_what_is_there_are_a_conflict() -> None:
    home = home_with()
    done(home, added(file("a", (1, 9), (0, 9))), added(file("b", (1, 9), (0, 99)), bucket=1))
    with pytest.raises(SequenceConflictError) as caught:
        changes(
            home,
            added(file("c", (1, 9), (9, 19))),
            added(file("d", (1, 9), (100, 110)), bucket=1),
            added(file("e", (1, 9), (0, 1)), bucket=2),
        )
    assert caught.value.above == {(EMPTY_ROW, 0): 9}
    again = pickle.loads(pickle.dumps(caught.value))
    assert (again.above, str(again)) == (caught.value.above, str(caught.value))
    assert changes(home, added(file("c", (1, 9), (10, 19)))).record_delta == 1


def test_rule_5_all_buckets_in_conflict_are_told_at_once() -> None:
    home = home_with(partitioned=True)
    done(home, *(added(file(f"a{b}", (1, 9), (0, 9 + b)), bucket=b, partition=P1) for b in range(3)))
    ours = [added(file(f"b{b}", (1, 9), (5, 7)), bucket=b, partition=p) for b in range(4) for p in (P1, P2)]
    with pytest.raises(SequenceConflictError) as caught:
        changes(home, *ours)
    assert caught.value.above == {(P1, b): 9 + b for b in range(3)}


def test_rule_5_files_that_are_gone_do_not_count() -> None:
    home = home_with()
    old = file("a", (1, 9), (0, 9))
    done(home, added(old))
    done(home, CommitMessage(EMPTY_ROW, 0, 4, (), (old,), 1))
    assert changes(home, added(file("b", (1, 9), (0, 5)))).record_delta == 1


def test_rule_5_what_an_overwrite_replaces_does_not_count() -> None:
    home = home_with(partitioned=True)
    done(home, added(file("a", (1, 9), (0, 9)), partition=P1), added(file("b", (1, 9), (0, 9)), partition=P2))
    ours = added(file("c", (1, 9), (0, 5)), partition=P1)
    for overwrite in (Overwrite({}), Overwrite({"p": 1}), Overwrite(None), Overwrite(None, frozenset([P1]))):
        changes(home, ours, overwrite=overwrite)
    for overwrite in (Overwrite({"p": 2}), Overwrite(None, frozenset([P2]))):
        with pytest.raises(SequenceConflictError):
            changes(home, ours, overwrite=overwrite)


def test_rule_5_nothing_is_read_while_the_snapshot_of_the_writer_is_the_newest() -> None:
    home = home_with()
    made = done(home, added(file("a", (1, 9), (0, 9))))
    counting = home.store
    assert isinstance(counting, CountingStore)

    def calls(message: CommitMessage) -> int:
        before = counting.calls
        changes(home, message)
        return counting.calls - before

    ours = added(file("b", (1, 9), (10, 19)))
    assert calls(replace(ours, sequenced_at=base_of(made))) < calls(ours)
    # A snapshot of the same number after a rollback is another one.
    with pytest.raises(SequenceConflictError):
        changes(home, replace(added(file("c", (1, 9), (0, 1))), sequenced_at=(made.id, "manifest-list-other")))


def test_rule_5_only_manifests_of_touched_buckets_and_partitions_are_read() -> None:
    home = home_with(partitioned=True)
    for number in range(5):
        numbers = (10 * number, 10 * number + 9)
        done(home, added(file(f"a{number}", (1, 9), numbers), bucket=number % 4, partition=P1))
    for number in range(5):
        numbers = (10 * number, 10 * number + 9)
        done(home, added(file(f"b{number}", (1, 9), numbers), bucket=3, partition=P2))
    counting = home.store
    assert isinstance(counting, CountingStore)
    made = latest_snapshot(home)
    assert made is not None

    def calls(message: CommitMessage) -> int:
        before = counting.calls
        changes(home, message)
        return counting.calls - before

    ours = added(file("c", (1, 9), (100, 101)), bucket=3, partition=P1)
    assert calls(ours) - calls(replace(ours, sequenced_at=base_of(made))) == 1


def test_rows_that_wait_for_a_bucket_have_no_order_yet() -> None:
    home = home_with()
    waiting = [added(file(name, (1, 9), (-1, -1)), bucket=-2) for name in "abc"]
    done(home, waiting[0])
    assert changes(home, *waiting[1:]).record_delta == 2


def test_append_tables_are_not_checked() -> None:
    home = home_on(MemoryStore())
    fields = [Field(-1, "k", parse_type("BIGINT"))]
    schema = new_schema(fields, partition_keys=[], primary_keys=[], options={}, comment=None, time_ms=0)
    create_first_schema(home, schema)
    one = DataFile("a", 1, 1, EMPTY_ROW, EMPTY_ROW, NO_STATS, NO_STATS, 0, 5, 0, 0)
    done(home, added(one, total_buckets=-1))
    assert changes(home, added(replace(one, name="b"), total_buckets=-1)).record_delta == 1


def test_two_writers_of_one_bucket_in_one_commit_are_a_conflict_where_their_rows_have_no_order() -> None:
    home = home_with()
    one = added(file("a", (1, 5), (0, 9)))
    with pytest.raises(ConflictError, match="one writer per bucket"):
        changes(home, one, added(file("b", (5, 9), (9, 12))))
    changes(home, one, added(file("b", (6, 9), (0, 9))))
    changes(home, one, added(file("b", (1, 5), (10, 12))))
    changes(home, one, added(file("b", (1, 5), (0, 9)), bucket=1))
    changes(home, added(file("a", (1, 5), (0, 9)), file("b", (1, 5), (0, 9))))


def test_files_of_one_level_may_not_overlap_in_keys() -> None:
    home = home_with()
    standing = file("a", (10, 20), (0, 9), level=1)
    done(home, added(standing, file("z", (0, 99), (10, 11))))
    for keys in ((20, 30), (1, 10), (12, 13), (0, 99)):
        with pytest.raises(ConflictError, match="on level 1"):
            changes(home, added(file("b", keys, (0, 9), level=1)))
    with pytest.raises(ConflictError, match="on level 2"):
        changes(home, added(file("b", (1, 5), (0, 9), level=2), file("c", (5, 6), (0, 9), level=2)))
    changes(home, added(file("b", (21, 30), (0, 9), level=1), file("c", (1, 9), (0, 9), level=1)))
    changes(home, added(file("b", (10, 20), (0, 9), level=2)))
    changes(home, added(file("b", (10, 20), (0, 9), level=1), bucket=1))
    changes(home, CommitMessage(EMPTY_ROW, 0, 4, (file("b", (0, 99), (0, 11), level=1),), (standing,), 1))


def test_rule_7_a_file_that_moves_up_a_level_does_not_stand_in_its_own_way() -> None:
    home = home_with()
    standing = file("a", (10, 20), (0, 9), level=1)
    done(home, added(standing))
    up = CommitMessage(EMPTY_ROW, 0, 4, (replace(standing, level=5),), (standing,), 1)
    assert changes(home, up).record_delta == 0


@pytest.mark.parametrize(
    ("key", "standing", "ours", "clash"),
    [
        ("DOUBLE", (1.0, float("nan")), (2.0, 3.0), True),
        ("DOUBLE", (1.0, 2.0), (float("nan"), float("nan")), False),
        ("DOUBLE", (-1.0, -0.0), (0.0, 1.0), False),
        ("STRING", ("a", "é"), ("z", "zz"), True),
        ("STRING", ("a", "z"), ("é", "ü"), False),
        ("BYTES", (b"\x01", b"\x7f"), (b"\x80", b"\xff"), False),
    ],
)
def test_keys_are_compared_as_paimon_does(key: str, standing: Any, ours: Any, clash: bool) -> None:
    home = home_with(key=key)
    types = [parse_type(f"{key} NOT NULL")]
    done(home, added(file("a", standing, (0, 9), level=1, types=types)))
    message = added(file("b", ours, (0, 9), level=1, types=types))
    if clash:
        with pytest.raises(ConflictError):
            changes(home, message)
    else:
        changes(home, message)


def index(name: str) -> IndexFile:
    return IndexFile("HASH", name, 4, 1)


def hashed(name: str, new: str | None, base: tuple[str, ...] | None, **more: Any) -> CommitMessage:
    number = int(name)
    given = {"partition": P1, "total_buckets": -1, **more}
    message = added(file(f"f{name}", (number, number), (number, number)), **given)
    return replace(message, new_hash_index=None if new is None else index(new), hash_indexes=base)


def indexes(home: TableHome) -> dict[tuple[bytes, int], str]:
    latest = latest_snapshot(home)
    assert latest is not None
    return {(entry.partition, entry.bucket): entry.file.name for entry in read_index_entries(home, latest)}


def test_rule_6_a_new_index_takes_the_place_of_the_one_there_was() -> None:
    home = home_with(partitioned=True, options={})
    done(home, hashed("1", "i1", (), bucket=0), hashed("2", "i2", (), bucket=1), hashed("3", "i3", (), partition=P2))
    done(home, hashed("4", "i4", ("i1", "i2"), bucket=1), hashed("5", None, ("i1", "i2"), bucket=0))
    assert indexes(home) == {(P1, 0): "i1", (P1, 1): "i4", (P2, 0): "i3"}


def test_rule_6_an_index_that_changed_since_is_a_conflict() -> None:
    home = home_with(partitioned=True, options={})
    done(home, hashed("1", "i1", (), bucket=0), hashed("2", "i2", (), partition=P2))
    for base in ((), ("i0",), ("i1", "i2")):
        with pytest.raises(AssignmentConflictError):
            changes(home, hashed("9", None, base, bucket=5))
    changes(home, hashed("9", "i9", ("i1",), bucket=5))
    changes(home, hashed("9", "i9", None, bucket=5))


def test_rule_6_what_an_overwrite_replaces_goes_unless_its_writer_relied_on_it() -> None:
    home = home_with(partitioned=True, options={})
    done(home, hashed("1", "i1", (), bucket=0), hashed("2", "i2", (), bucket=1), hashed("3", "i3", (), partition=P2))
    with pytest.raises(AssignmentConflictError):
        changes(home, hashed("4", "i4", ("wrong",)), overwrite=Overwrite({"p": 1}))
    done(home, hashed("4", None, ("i1", "i2"), bucket=1), overwrite=Overwrite({"p": 1}))
    assert indexes(home) == {(P1, 1): "i2", (P2, 0): "i3"}
    done(home, hashed("5", "i4", None, bucket=3), overwrite=Overwrite(None))
    assert indexes(home) == {(P1, 3): "i4", (P2, 0): "i3"}
    done(home, overwrite=Overwrite({}))
    assert indexes(home) == {}


def test_rule_6_two_writers_of_one_commit_may_not_both_give_new_keys_to_a_bucket() -> None:
    home = home_with(partitioned=True, options={})
    with pytest.raises(ConflictError, match="gave new keys to bucket 0"):
        changes(home, hashed("1", "i1", ()), hashed("2", "i2", ()))
    changes(home, hashed("1", "i1", ()), hashed("2", "i2", (), bucket=1), hashed("3", None, (), bucket=1))


def crossing() -> TableHome:
    return home_with(partitioned=True, options={}, keys=["k"])


def looked(name: str, assigned_at: int, assigner: str = "w", **more: Any) -> CommitMessage:
    return replace(hashed(name, None, None, **more), assigned_at=assigned_at, assigner=assigner)


def test_rule_6_rows_written_since_keys_were_looked_up_are_a_conflict() -> None:
    home = crossing()
    changes(home, looked("1", 0))
    with pytest.raises(AssignmentConflictError):
        changes(home, looked("1", 3))
    done(home, looked("1", 0))
    done(home, hashed("2", None, None, partition=P2))
    for assigned_at in (0, 1, 3):
        with pytest.raises(AssignmentConflictError, match=f"snapshot {assigned_at}"):
            changes(home, looked("9", assigned_at))
    changes(home, looked("9", 2))


def test_rule_6_compaction_moves_no_keys() -> None:
    home = crossing()
    made = done(home, looked("1", 0))
    for number, kind in ((2, CommitKind.COMPACT), (3, CommitKind.ANALYZE)):
        again = replace(made, id=number, commit_kind=kind)
        home.store.put(home.paths.snapshot(number), encode_snapshot(again))
    changes(home, looked("9", 1))
    with pytest.raises(AssignmentConflictError):
        changes(home, looked("9", 0))


def test_rule_6_an_id_that_a_rollback_freed_is_another_snapshot() -> None:
    home = crossing()
    made = done(home, looked("1", 0))
    changes(home, replace(looked("9", 1), sequenced_at=base_of(made)))
    with pytest.raises(AssignmentConflictError):
        changes(home, replace(looked("9", 1), sequenced_at=(1, "manifest-list-other")))


def test_rule_6_snapshots_that_were_expired_since_may_have_held_anything() -> None:
    home = crossing()
    made = done(home, looked("1", 0))
    for number in (2, 3, 4):
        again = replace(made, id=number, commit_kind=CommitKind.COMPACT)
        home.store.put(home.paths.snapshot(number), encode_snapshot(again))
    home.store.delete([home.paths.snapshot(1), home.paths.snapshot(2)])
    changes(home, looked("9", 2))
    with pytest.raises(AssignmentConflictError):
        changes(home, looked("9", 1))


def test_rule_6_two_writers_of_one_commit_may_not_both_move_keys() -> None:
    home = crossing()
    with pytest.raises(ConflictError, match="use one writer"):
        changes(home, looked("1", 0, "a"), looked("2", 0, "b", bucket=1))
    changes(home, looked("1", 0, "a"), looked("2", 0, "a", bucket=1))


def test_partitions_that_only_lose_rows_stay_in_a_dynamic_overwrite() -> None:
    home = crossing()
    done(home, hashed("1", None, None), hashed("2", None, None, partition=P2))
    ours = (hashed("3", None, None), hashed("4", None, None, partition=P2))
    found = changes(home, *ours, overwrite=Overwrite(None, frozenset([P1])))
    assert found.removed.column("_PARTITION").to_pylist() == [P1]
    assert changes(home, *ours, overwrite=Overwrite(None)).removed.num_rows == 2


@pytest.mark.parametrize(
    ("bucket", "place", "total", "fits"),
    [
        ("4", 0, 4, True),
        ("4", 0, -1, False),
        ("-1", 0, -1, True),
        ("-1", 0, 4, False),
    ],
)
def test_files_must_be_for_the_buckets_that_the_table_has(bucket: str, place: int, total: int, fits: bool) -> None:
    home = home_with(options={"bucket": bucket})
    message = added(file("a", (1, 2), (0, 1)), bucket=place, total_buckets=total)
    if fits:
        changes(home, message)
    else:
        with pytest.raises(ConflictError, match=f"written for {total} buckets"):
            changes(home, message)


def test_a_hash_index_removed_as_an_orphan_is_a_conflict() -> None:
    home = home_with(partitioned=True, options={})
    message = hashed("1", "i1", ())
    old = replace(message, new_files=(replace(message.new_files[0], creation_ms=1),))
    with pytest.raises(ConflictError, match="i1"):
        changes(home, old)


def test_a_commit_of_rows_is_an_append_and_counts_the_rows_of_its_files() -> None:
    home = home_with()
    made = done(home, added(replace(file("a", (1, 9), (0, 9)), row_count=10, delete_row_count=4)))
    assert (made.commit_kind, made.total_record_count, made.delta_record_count) == (CommitKind.APPEND, 10, 10)
    made = done(home, added(replace(file("b", (1, 9), (10, 12)), row_count=3, delete_row_count=3)))
    assert (made.total_record_count, made.delta_record_count) == (13, 3)


def found_rows(home: TableHome, name: str, bucket: int, sequences: tuple[int, int]) -> CommitMessage:
    """New files of a bucket by somebody who looked rows up in the newest snapshot."""
    latest = latest_snapshot(home)
    assert latest is not None
    return CommitMessage(
        EMPTY_ROW, bucket, 4, (file(name, (1, 1), sequences),), sequenced_at=(latest.id, latest.delta_manifest_list)
    )


def test_rule_5_rows_that_were_looked_up_conflict_with_writes_to_their_bucket_even_if_these_are_compacted_away() -> (
    None
):
    home = home_with()
    first = file("a", (1, 1), (0, 0))
    commit(home, CommitRequest("u", (CommitMessage(EMPTY_ROW, 0, 4, (first,)),)))
    base = latest_snapshot(home)
    assert base is not None
    ours = found_rows(home, "ours", 0, (1, 1))
    theirs = file("theirs", (1, 1), (1, 1))
    commit(home, CommitRequest("v", (found_rows(home, "theirs", 0, (1, 1)),)))
    # A delete and the row it deletes, both gone: no sequence number tells of them any more.
    gone = CommitMessage(EMPTY_ROW, 0, 4, (), (first, theirs), 2)
    commit(home, CommitRequest("v", (gone,), compacts=True))
    request = CommitRequest("u", (ours,), read_at=base.id)
    with pytest.raises(ConflictError, match="snapshot 2 changed rows since they were looked up in snapshot 1"):
        compute_changes(home, request, latest_snapshot(home), latest_schema(home), SETTINGS)
    elsewhere = replace(request, messages=(replace(ours, bucket=1),))
    compute_changes(home, elsewhere, latest_snapshot(home), latest_schema(home), SETTINGS)


def test_what_was_looked_up_in_snapshots_that_are_gone_conflicts() -> None:
    home = home_with()
    commit(home, CommitRequest("u", (CommitMessage(EMPTY_ROW, 0, 4, (file("a", (1, 1), (0, 0)),)),)))
    ours = CommitRequest("u", (found_rows(home, "ours", 1, (0, 0)),), read_at=1)
    for number in range(2):
        commit(home, CommitRequest("v", (found_rows(home, f"b{number}", 2, (number, number)),)))
    home.store.delete([home.paths.snapshot(2)])
    with pytest.raises(ConflictError, match="snapshots since 1 are gone"):
        compute_changes(home, ours, latest_snapshot(home), latest_schema(home), SETTINGS)
    with pytest.raises(ConflictError, match="snapshots since 1 are gone"):
        compute_changes(home, ours, None, latest_schema(home), SETTINGS)


def test_a_commit_that_rests_on_all_rows_conflicts_with_any_other_but_compaction() -> None:
    home = home_with()
    commit(home, CommitRequest("u", (CommitMessage(EMPTY_ROW, 0, 4, (file("a", (1, 1), (0, 0)),)),)))
    base = latest_snapshot(home)
    assert base is not None
    request = CommitRequest(
        "u", (found_rows(home, "ours", 1, (0, 0)),), same_rows_as=(base.id, base.delta_manifest_list)
    )
    compute_changes(home, request, base, latest_schema(home), SETTINGS)
    other = replace(request, same_rows_as=(base.id, "another"))
    with pytest.raises(ConflictError, match="rows were written since they were looked at in snapshot 1"):
        compute_changes(home, other, base, latest_schema(home), SETTINGS)
    moved = CommitMessage(EMPTY_ROW, 0, 4, (file("b", (1, 1), (0, 0), 5),), (file("a", (1, 1), (0, 0)),), 1)
    commit(home, CommitRequest("v", (moved,), compacts=True))
    compute_changes(home, request, latest_snapshot(home), latest_schema(home), SETTINGS)
    commit(home, CommitRequest("v", (found_rows(home, "c", 3, (0, 0)),)))
    with pytest.raises(ConflictError, match="rows were written since they were looked at in snapshot 1"):
        compute_changes(home, request, latest_snapshot(home), latest_schema(home), SETTINGS)
