"""Rows that carry their assigned buckets: writers that share a table's groups, against a dictionary, over several commits."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelet.model.bucket_mode import Place
from lakelet.model.commit_message import CommitMessage
from lakelet.model.row_kind import RowKind
from lakelet.model.schema import TableSchema
from lakelet.model.snapshot import Snapshot
from lakelet.sink.bucket.assigned_rows import FIRST_DELETE, NEW, REPEATED, AssignedRows, LookedUp
from lakelet.sink.bucket.channels import partition_hashes, select_assigners
from lakelet.sink.bucket.dynamic_buckets import DynamicBucketAssigner, is_aligned
from lakelet.sink.bucket.extractors import extractor_for
from lakelet.sink.bucket.hash_indexes import HashIndexes
from lakelet.sink.bucket.known_buckets import KnownBuckets
from lakelet.sink.bucket.placers import Placed, RowPlacer
from lakelet.sink.rows.refused_rows import RefusedRowsError
from lakelet.storage.home import TableHome
from lakelet.storage.memory import MemoryStore
from tests.crash.warehouse import home_on
from tests.tiers.examples import examples
from tests.unit.sink.bucket.test_dynamic_buckets import Row, batch, committed, messages, schema_of

ROWS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 1)), max_size=40, unique=True)
CARRIED = "__bucket"


def carrying(rows: pa.RecordBatch, codes: list[int]) -> pa.RecordBatch:
    return rows.append_column(CARRIED, pa.array(codes, pa.int32()))


def places_of(placed: Placed) -> list[Place]:
    assert placed.extracted.buckets is not None
    partitions = [placed.extracted.partitions[code] for code in placed.extracted.partition_codes]
    return list(zip(partitions, placed.extracted.buckets.tolist(), strict=True))


def group_of(schema: TableSchema, rows: list[Row], known: list[int], groups: int) -> list[int]:
    """What the channel of each row is made of."""
    extracted = extractor_for(schema).extract(batch(schema, rows))
    hashes = partition_hashes(extracted.partitions)[extracted.partition_codes]
    own = select_assigners(hashes, extracted.key_hashes, channels=groups, assigners=groups)
    return [bucket % groups if bucket >= 0 else int(group) for bucket, group in zip(known, own, strict=True)]


def looked_up(schema: TableSchema, home: TableHome, latest: Snapshot | None, rows: list[Row]) -> list[int]:
    known = KnownBuckets(HashIndexes(home, latest))
    extracted = extractor_for(schema).extract(batch(schema, rows))
    found = np.empty(len(rows), np.int32)
    for code, partition in enumerate(extracted.partitions):
        own = extracted.partition_codes == code
        found[own] = known.find(partition, extracted.key_hashes[own])
    return found.tolist()


def written_by_groups(
    schema: TableSchema, rows: list[Row], known: list[int], groups: int, placer_of: Callable[[], RowPlacer]
) -> tuple[dict[Row, Place], tuple[CommitMessage, ...]]:
    """The rows, each group by a writer of its own that knows of no other, and what all of them hand over."""
    chosen = group_of(schema, rows, known, groups)
    outcome: dict[Row, Place] = {}
    done: list[CommitMessage] = []
    for group in range(groups):
        own = [place for place, number in enumerate(chosen) if number == group]
        part = [rows[place] for place in own]
        if part:
            placer = placer_of()
            sent = batch(schema, part)
            if isinstance(placer, AssignedRows):
                sent = carrying(sent, [known[place] for place in own])
            (placed,) = placer.place(sent, None)
            assert tuple(placed.rows.schema.names) == schema.names
            outcome.update(zip(part, places_of(placed), strict=True))
            done += placer.complete(tuple(messages(places_of(placed))))
    assert len({(message.partition, message.bucket) for message in done}) == len(done), "two writers of one bucket"
    return outcome, tuple(done)


@settings(max_examples=examples(60))
@given(
    commits=st.lists(ROWS, max_size=4),
    groups=st.lists(st.integers(1, 5), min_size=4, max_size=4),
    target=st.sampled_from([2, 6]),
    most=st.sampled_from([-1, 5]),
    aligned=st.booleans(),
)
def test_rule_21_writers_of_groups_never_give_a_key_two_buckets(
    commits: list[list[Row]], groups: list[int], target: int, most: int, aligned: bool
) -> None:
    schema = schema_of(**{"target-row-num": str(target), "max-buckets": str(most)})
    home, latest = home_on(MemoryStore()), None
    model: dict[Row, Place] = {}
    for rows, count in zip(commits, [groups[0]] * 4 if aligned else groups, strict=False):
        known = looked_up(schema, home, latest, rows)
        assert known == [model[row][1] if row in model else NEW for row in rows]

        def placer(count: int = count, latest: Snapshot | None = latest) -> RowPlacer:
            if aligned:
                return DynamicBucketAssigner(home, schema, latest, assigners=count, aligned=True)
            counts = HashIndexes(home, latest).counts()
            new_keys = DynamicBucketAssigner(home, schema, latest, assigners=count, counts=counts)
            return AssignedRows(schema, CARRIED, new_keys)

        outcome, done = written_by_groups(schema, rows, known, count, placer)
        for row, place in outcome.items():
            assert model.setdefault(row, place) == place
        if done:
            latest = committed(home, latest, done)
    assert looked_up(schema, home, latest, list(model)) == [bucket for _, bucket in model.values()]
    indexes = HashIndexes(home, latest)
    for partition, bucket in indexes.counts():
        held = sum(place == (partition, bucket) for place in model.values())
        assert len(indexes.load_bucket(partition, bucket)) == held
        assert most > 0 or held <= target
        if aligned:
            assert is_aligned(partition, bucket, indexes.load_bucket(partition, bucket), groups[0])


def test_alignment_sees_a_single_key_in_the_wrong_bucket() -> None:
    schema = schema_of()
    extracted = extractor_for(schema).extract(batch(schema, [(key, 0) for key in range(50)]))
    (partition,) = extracted.partitions
    hashes = extracted.key_hashes
    owners = select_assigners(np.full(50, partition_hashes([partition])[0]), hashes, channels=4, assigners=4)
    assert is_aligned(partition, 6, hashes[owners == 2], 4)
    assert is_aligned(partition, 6, hashes[owners == 2], 2)
    assert not is_aligned(partition, 6, np.append(hashes[owners == 2], hashes[owners == 1][:1]), 4)


def test_the_least_bucket_counts_for_a_hash_in_two() -> None:
    home, schema = home_on(MemoryStore()), schema_of()
    (message,) = messages([(b"p", 3)])
    indexes = HashIndexes(home, None)
    both = [
        indexes.complete([replace(message, bucket=bucket)], {(b"p", bucket): np.array(hashes, np.int32)})[0]
        for bucket, hashes in ((3, [-5, 7]), (1, [7, 9]))
    ]
    known = KnownBuckets(HashIndexes(home, committed(home, None, tuple(both))))
    assert known.find(b"p", np.array([9, 7, 8, -5, 7], np.int32)).tolist() == [1, 1, NEW, 3, 1]
    assert known.find(b"q", np.array([7], np.int32)).tolist() == [NEW]
    assert schema.partition_keys == ("p",)


def crossing_rows(codes: list[int]) -> tuple[AssignedRows, pa.RecordBatch]:
    schema, home = schema_of(), home_on(MemoryStore())
    new_keys = DynamicBucketAssigner(home, schema, None, counts={}, fresh=True)
    rows = batch(schema, [(key, 0) for key in range(len(codes))])
    return AssignedRows(schema, CARRIED, new_keys, LookedUp(7, "job")), carrying(rows, codes)


def test_deletes_at_old_places_keep_their_bucket_and_say_what_they_are() -> None:
    placer, rows = crossing_rows([4, FIRST_DELETE - 0, FIRST_DELETE - 9, NEW])
    (placed,) = placer.place(rows, None)
    assert [bucket for _, bucket in places_of(placed)] == [4, 0, 9, 0]
    assert placed.kinds is not None
    assert placed.kinds.tolist() == [0, RowKind.DELETE, RowKind.DELETE, 0]
    (again,) = placer.place(rows, np.array([RowKind.UPDATE_AFTER] * 4, np.int8))
    assert again.kinds is not None
    assert again.kinds.tolist() == [RowKind.UPDATE_AFTER, RowKind.DELETE, RowKind.DELETE, RowKind.UPDATE_AFTER]
    (done,) = placer.complete(tuple(messages([(b"p", 0)])))
    assert (done.assigned_at, done.assigner, done.new_hash_index) == (7, "job", None)


def test_rows_marked_as_repeated_are_counted_to_the_end_and_refused() -> None:
    placer, rows = crossing_rows([NEW, REPEATED, 3])
    assert list(placer.place(rows, None)) == []
    assert list(placer.place(rows, None)) == []
    with pytest.raises(RefusedRowsError, match=r"2 rows .*'k': 1") as refused:
        placer.complete(())
    assert refused.value.count == 2
