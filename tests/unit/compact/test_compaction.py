"""Compaction with concurrent commits between its plan and its commit, and the files left by one that fails."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import replace

import pytest

from lakelet import Lake
from lakelet.commit.index_changes import read_index_entries
from lakelet.commit.metadata.schemas import latest_schema
from lakelet.commit.metadata.snapshots import latest_snapshot
from lakelet.compact.compaction import Compaction
from lakelet.compact.progress import CompactionProgress
from lakelet.errors import ConflictError, InvalidError, NotFoundError, UnavailableError
from lakelet.testing.instrumented_stores import FailingStore
from tests.unit.compact.keyed_bucket import KeyedBucket, Row, Second, before_snapshot

ENGINES = {
    "merged": {},
    "deletion-vectors": {"deletion-vectors.enabled": "true"},
    "first-row": {"merge-engine": "first-row"},
    "first-row-vectors": {"merge-engine": "first-row", "deletion-vectors.enabled": "true"},
}
# Two runs are compacted, whatever their sizes.
EAGER = {"num-sorted-run.compaction-trigger": "2", "compaction.size-ratio": "10000"}
FILLED = [(1, 1), (2, 1), (3, 1), (4, 1)]


def filled(engine: str = "merged", **options: str) -> KeyedBucket:
    """A top level and a newer row of two keys, which is on level 0 yet."""
    bucket = KeyedBucket(options={**EAGER, **ENGINES[engine], **options})
    bucket.write(*FILLED)
    bucket.table.compact(full=True)
    bucket.write((2, 2), (5, 2))
    return bucket


def compacted(bucket: KeyedBucket) -> list[Row]:
    """All rows, also those of level 0."""
    bucket.table.compact()
    bucket.table.compact(full=True)
    return bucket.rows()


# ------------------------------------------------------------------ others come first

Deed = Callable[[KeyedBucket], object]


def _write(bucket: KeyedBucket) -> None:
    bucket.write((2, 3), (6, 3))


def _delete(bucket: KeyedBucket) -> None:
    bucket.write((2, 3), (5, 3), kinds=["-D", "-D"])


def _overwrite(bucket: KeyedBucket) -> None:
    bucket.write((2, 7), mode="overwrite")


def _compact(bucket: KeyedBucket) -> None:
    bucket.table.compact()


def _compact_in_full(bucket: KeyedBucket) -> None:
    bucket.table.compact(full=True)


def _write_and_compact(bucket: KeyedBucket) -> None:
    _write(bucket)
    _compact(bucket)


DEEDS: tuple[Deed, ...] = (_write, _delete, _overwrite, _compact, _compact_in_full, _write_and_compact)


@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("deed", DEEDS)
@pytest.mark.parametrize("engine", ENGINES)
def test_nothing_is_lost_whoever_commits_first(engine: str, deed: Deed, full: bool) -> None:
    if deed is _delete and engine.startswith("first-row"):
        pytest.skip("such tables take no deletes")
    alone = filled(engine)
    deed(alone)
    expected = compacted(alone)
    bucket = filled(engine)
    messages = bucket.prepared(full=full)
    assert messages
    deed(bucket)
    before = bucket.rows()
    stands, lost = bucket.commit(messages)
    assert (stands is None) == bool(lost)
    assert bool(lost) == (deed not in (_write, _delete))
    if engine == "merged" or lost:
        assert bucket.rows() == before
    assert compacted(bucket) == expected
    bucket.check_no_orphans()


@pytest.mark.parametrize("engine", ENGINES)
def test_the_other_order(engine: str) -> None:
    """The compaction commits between the files and the snapshot of a writer."""
    bucket = filled(engine)
    ours = bucket.interrupted(before_snapshot, lambda: bucket.table.compact(full=True))
    ours.write([{"id": 2, "v": 3}, {"id": 6, "v": 3}])
    first = engine.startswith("first-row")
    assert compacted(bucket) == [(1, 1), (2, 1 if first else 3), (3, 1), (4, 1), (5, 2), (6, 3)]
    bucket.check_no_orphans()


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("deed", [_write, _compact, _compact_in_full, _overwrite])
def test_a_whole_run_plans_again_what_others_changed(engine: str, deed: Deed) -> None:
    bucket = filled(engine)
    bucket.interrupted(before_snapshot, lambda: deed(bucket)).compact(full=True)
    alone = filled(engine)
    deed(alone)
    assert compacted(bucket) == compacted(alone)
    bucket.check_no_orphans()


def test_rule_6_vectors_that_came_first() -> None:
    """Two compactions of one snapshot: the second must not put its vectors over those of the first."""
    bucket = filled("deletion-vectors")
    ours, theirs = bucket.prepared(full=False), bucket.prepared(full=False)
    assert bucket.commit(theirs)[0] is not None
    rows, vectors = bucket.rows(), bucket.vectors()
    assert bucket.commit(ours) == (None, ours)
    assert (bucket.rows(), bucket.vectors()) == (rows, vectors)
    bucket.check_no_orphans()


def test_only_the_buckets_that_others_changed_are_lost() -> None:
    bucket = KeyedBucket(options={"bucket": "4"})
    for turn in range(3):
        bucket.write(*((number, turn) for number in range(40)))
    messages = bucket.prepared()
    assert len(messages) == 4
    taken = next(message for message in bucket.prepared() if message.bucket == messages[0].bucket)
    assert bucket.commit([taken])[0] is not None
    stands, lost = bucket.commit(messages)
    assert stands is not None
    assert lost == (messages[0],)
    assert bucket.levels() == [5] * 4
    assert bucket.rows() == sorted(((number, 2) for number in range(40)), key=repr)


# ------------------------------------------------------------------ tables that are gone, or are not for us


def test_a_dropped_table_is_not_compacted() -> None:
    bucket = filled()
    messages = bucket.prepared()
    Lake(bucket.store).drop_table("d.t")
    with pytest.raises(NotFoundError):
        bucket.commit(messages)
    assert list(bucket.store.list("d.db/t")) == []


def test_a_table_of_the_same_name_gets_no_foreign_files() -> None:
    bucket = filled()
    messages = bucket.prepared()
    Lake(bucket.store).drop_table("d.t")
    bucket.create()
    bucket.write((1, 100))
    assert bucket.commit(messages) == (None, messages)
    assert bucket.rows() == [(1, 100)]
    bucket.check_no_orphans()


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("fields.default-aggregate-function", "median"),
        ("changelog-producer", "full-compaction"),
    ],
)
def test_tables_that_others_compact_in_their_own_way_are_left_alone(option: str, value: str) -> None:
    bucket = filled()
    path = bucket.table._home.paths.schema(0)
    stored = json.loads(bucket.store.get(path))
    engine = "aggregation" if "aggregate" in option else "first-row"
    stored["options"] |= {option: value, "merge-engine": engine}
    bucket.store.put(path, json.dumps(stored).encode())
    before = bucket.levels() if "aggregate" not in option else None
    with pytest.raises(InvalidError, match=option):
        bucket.table.compact(full=True)
    snapshot = bucket.table.latest_snapshot()
    assert snapshot is not None
    assert snapshot.id == 3
    assert before is None or bucket.levels() == before


# ------------------------------------------------------------------ schemas that change meanwhile


def _widened(bucket: KeyedBucket) -> None:
    bucket.table.add_column("w", "INT")
    with bucket.table.new_write() as write:
        write.write([{"id": 9, "v": 9, "w": 99}])
        messages = write.prepare_commit()
    bucket.table.new_commit().commit(messages)


def test_columns_that_came_after_the_plan_are_kept() -> None:
    bucket = filled()
    messages = bucket.prepared()
    _widened(bucket)
    assert bucket.commit(messages)[1] == ()
    assert bucket.rows() == [(1, 1, None), (2, 2, None), (3, 1, None), (4, 1, None), (5, 2, None), (9, 9, 99)]
    assert compacted(bucket)[-1] == (9, 9, 99)


def test_columns_that_came_before_the_compaction_of_a_write_are_kept() -> None:
    """The writer knows an older schema than the files that it compacts."""
    bucket = KeyedBucket(options={"write-only": "false", "num-sorted-run.compaction-trigger": "2"})
    bucket.write((1, 1))
    ours = bucket.interrupted(lambda call, path: "LATEST" in path and call == "put", lambda: _widened(bucket))
    ours.write([{"id": 2, "v": 2}])
    assert bucket.rows() == [(1, 1, None), (2, 2, None), (9, 9, 99)]
    assert 0 not in bucket.levels()


def test_a_plan_leaves_files_of_a_newer_schema_alone() -> None:
    bucket = filled()
    old = latest_schema(bucket.table._home)
    _widened(bucket)
    home = bucket.table._home
    snapshot = latest_snapshot(home)
    assert snapshot is not None
    assert Compaction(home, old, True).plan(snapshot) == []
    assert len(Compaction(home, latest_schema(home), True).plan(snapshot)) == 1


# ------------------------------------------------------------------ after a write

INLINE = {"write-only": "false", "num-sorted-run.compaction-trigger": "3"}


def test_writes_keep_the_number_of_runs_small() -> None:
    bucket = KeyedBucket(options=INLINE)
    for turn in range(20):
        made = bucket.write((turn, turn), (0, turn), commit_user="u", commit_identifier=turn)
        assert made is not None
        assert made == bucket.table.latest_snapshot()
        assert len({(file.level, file.name if file.level == 0 else "") for file in bucket.files()}) <= 3
    kinds = [(snapshot.commit_kind.value, snapshot.commit_user) for snapshot in bucket.table.snapshots()]
    assert 3 < kinds.count(("COMPACT", "u")) < 20
    assert bucket.rows() == sorted([(0, 19), *((turn, turn) for turn in range(1, 20))], key=repr)


def test_a_write_only_table_is_not_compacted() -> None:
    bucket = KeyedBucket(options={"num-sorted-run.compaction-trigger": "2"})
    for turn in range(5):
        bucket.write((turn, turn))
    assert bucket.levels() == [0] * 5


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("engine", ["deletion-vectors", "first-row"])
def test_rule_18_rows_show_at_once_whoever_compacts_the_same_buckets(engine: str, named: bool) -> None:
    """A rival's compaction, begun before our rows came, takes one of two buckets from the compaction of our write."""
    bucket = KeyedBucket(options={"bucket": "2", "write-only": "false", **ENGINES[engine]})
    bucket.write(*((number, 0) for number in range(10)))
    with bucket.table.new_write() as write:
        write.write([{"id": 100, "v": 7}])
        # As by a writer that was killed right after its commit.
        replace(bucket.table.new_commit(), after=None).commit(write.prepare_commit())
    theirs = bucket.prepared(full=False)
    assert len(theirs) == 1
    name = {"commit_user": "u", "commit_identifier": 3} if named else {}
    ours = bucket.interrupted(Second(), lambda: bucket.commit(theirs))
    made = ours.write([{"id": number, "v": 1} for number in range(10, 20)], **name)  # type: ignore[arg-type]
    assert made == bucket.table.latest_snapshot()
    ids = sorted([*range(20), 100])
    assert sorted(row[0] for row in bucket.rows()) == ids
    assert 0 not in bucket.levels()
    bucket.check_no_orphans()


def test_rule_18_a_write_says_so_if_its_rows_stay_hidden() -> None:
    bucket = KeyedBucket(options={"write-only": "false", "commit.max-retries": "0", **ENGINES["deletion-vectors"]})
    bucket.write((1, 1))
    with bucket.table.new_write() as write:
        write.write([{"id": 2, "v": 2}])
        # As by a writer that was killed right after its commit.
        replace(bucket.table.new_commit(), after=None).commit(write.prepare_commit())
    theirs = bucket.prepared(full=False)
    ours = bucket.interrupted(Second(), lambda: bucket.commit(theirs))
    with pytest.raises(ConflictError, match="stay hidden"):
        ours.write([{"id": 3, "v": 3}])
    assert bucket.rows() == [(1, 1), (2, 2)]
    bucket.table.compact()
    assert bucket.rows() == [(1, 1), (2, 2), (3, 3)]
    bucket.check_no_orphans()


@pytest.mark.parametrize("engine", ["deletion-vectors", "first-row"])
def test_rule_4_a_write_that_was_cut_off_before_its_compaction_is_finished(engine: str) -> None:
    bucket = KeyedBucket(options={"bucket": "2", "write-only": "false", **ENGINES[engine]})
    bucket.write(*((number, 0) for number in range(10)))
    data = [{"id": number, "v": 1} for number in range(5, 15)]
    broken = FailingStore(
        bucket.store, fail_at=1, times=1000, only=lambda call, path: call == "open_output" and _appended(bucket)
    )
    with pytest.raises(ConflictError, match="stay hidden"):
        bucket.on(broken).write(data, commit_user="u", commit_identifier=1)
    assert len(bucket.rows()) == 10
    made = bucket.table.write(data, commit_user="u", commit_identifier=1)
    assert made == bucket.table.latest_snapshot()
    expected = {number: 0 if number < 5 or (number < 10 and engine == "first-row") else 1 for number in range(15)}
    assert dict(bucket.rows()) == expected
    again = bucket.table.write(data, commit_user="u", commit_identifier=1)
    assert again == made
    assert dict(bucket.rows()) == expected
    bucket.check_no_orphans()


def _appended(bucket: KeyedBucket) -> bool:
    snapshot = bucket.table.latest_snapshot()
    return snapshot is not None and snapshot.commit_user == "u"


# ------------------------------------------------------------------ failing, stopping, telling


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("full", [True, False])
def test_a_full_disk_leaves_the_table_as_it_was(engine: str, full: bool) -> None:
    bucket = KeyedBucket(options={"bucket": "3", **EAGER, **ENGINES[engine]})
    for turn in range(2):
        bucket.write(*((number, turn) for number in range(30)))
        bucket.table.compact()
    bucket.write(*((number, 3) for number in range(0, 40, 2)))
    rows, levels = bucket.rows(), bucket.levels()

    def makes_files(call: str, path: str) -> bool:
        return call in ("put", "open_output", "close") and ("/bucket-" in path or "/index/" in path)

    for fail_at in (1, 2, 3, 5):
        full_disk = FailingStore(bucket.store, fail_at=fail_at, only=makes_files, error=UnavailableError("disk full"))
        with pytest.raises(UnavailableError, match="disk full"):
            bucket.on(full_disk).compact(full=full)
        assert full_disk.failed
        assert (bucket.rows(), bucket.levels()) == (rows, levels)
        bucket.check_no_orphans()
    assert bucket.table.compact(full=full) is not None


def test_a_compaction_that_is_not_wanted_any_more_leaves_nothing() -> None:
    bucket = KeyedBucket(options={"bucket": "3"})
    for turn in range(3):
        bucket.write(*((number, turn) for number in range(30)))
    before = bucket.levels()
    at_once = threading.Event()
    at_once.set()
    assert bucket.table.compact(full=True, cancel=at_once) is None
    told: list[CompactionProgress] = []
    assert bucket.table.compact(full=True, progress=told.append, cancel=lambda: len(told) >= 2, threads=1) is None
    assert len(told) >= 2
    assert bucket.levels() == before
    bucket.check_no_orphans()


@pytest.mark.parametrize("threads", [1, 3])
def test_progress_reaches_its_end(threads: int) -> None:
    bucket = KeyedBucket(options={"bucket": "3"})
    for turn in range(3):
        bucket.write(
            *((number, turn) for number in range(30)), kinds=["-D" if n % 4 == turn else "+I" for n in range(30)]
        )
    size = sum(file.size for file in bucket.files())
    told: list[CompactionProgress] = []
    bucket.table.compact(full=True, progress=told.append, threads=threads)
    after = sum(file.size for file in bucket.files())
    assert told[-1] == CompactionProgress(3, 3, 90, 90, size, size, after)
    assert [one.rows_done for one in told] == sorted(one.rows_done for one in told)


@pytest.mark.parametrize("threads", [0, -1, True])
def test_threads_are_a_number_from_one_on(threads: int) -> None:
    with pytest.raises(InvalidError, match="threads"):
        filled().table.compact(threads=threads)


def test_an_empty_table_has_nothing_to_compact() -> None:
    bucket = KeyedBucket()
    assert bucket.table.compact(full=True) is None
    assert bucket.table.compact() is None


def test_compaction_carries_the_indexes_of_dynamic_buckets() -> None:
    bucket = KeyedBucket(options={"bucket": "-1", "dynamic-bucket.target-row-num": "3"})
    for turn in range(3):
        bucket.write(*((number, turn) for number in range(turn, 12)))
    home = bucket.table._home
    before = bucket.table.latest_snapshot()
    after = bucket.table.compact(full=True)
    assert before is not None
    assert after is not None
    assert read_index_entries(home, before) == read_index_entries(home, after)
    bucket.write(*((number, 9) for number in range(12)))
    assert bucket.rows() == sorted(((number, 9) for number in range(12)), key=repr)


def test_messages_are_values() -> None:
    """Of one bucket's message another can be told by its files alone."""
    bucket = filled()
    (message,) = bucket.prepared()
    assert replace(message) == message
    assert message.base_snapshot == 3
    assert message.table_uuid is not None
    bucket.table.new_commit().abort([message])
    bucket.check_no_orphans()
