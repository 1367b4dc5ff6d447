"""Buckets by an index of hashes: against a dictionary, over several commits, with one assigner and with many."""

from collections import Counter
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelet.commit.index_changes import carry_index_manifest
from lakelet.commit.metadata.manifests import ManifestFiles, ManifestSettings
from lakelet.errors import CorruptionError, InternalError, InvalidError
from lakelet.format.index.hash_index import decode_hash_index
from lakelet.format.manifest.manifest_columns import entries_to_columns
from lakelet.format.metadata.snapshot_json import encode_snapshot
from lakelet.model.commit_message import CommitMessage
from lakelet.model.data_file import IndexFile
from lakelet.model.schema import TableSchema
from lakelet.model.snapshot import CommitKind, Snapshot
from lakelet.sink.bucket.channels import partition_hashes, select_assigners
from lakelet.sink.bucket.dynamic_buckets import DynamicBucketAssigner
from lakelet.sink.bucket.extractors import extractor_for
from lakelet.sink.bucket.hash_indexes import HashIndexes
from lakelet.storage.home import TableHome
from lakelet.storage.memory import MemoryStore
from tests.crash.warehouse import home_on, listing
from tests.tiers.examples import examples
from tests.unit.sink.keyed_tables import batch_of, keyed_schema

Row = tuple[int, int]
ROWS = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 1)), max_size=25)
NO_FILES = entries_to_columns([])


def schema_of(**options: str) -> TableSchema:
    return keyed_schema(("p", "k"), ("p",), {f"dynamic-bucket.{key}": text for key, text in options.items()})


def options_of(target: int, most: int, initial: int | None) -> dict[str, str]:
    options = {"target-row-num": str(target), "max-buckets": str(most)}
    return options if initial is None else {**options, "initial-buckets": str(initial)}


def batch(schema: TableSchema, rows: list[Row]) -> pa.RecordBatch:
    return batch_of(schema, [{"k": key, "p": partition, "s": "", "v": 0} for key, partition in rows])


def places(assigner: DynamicBucketAssigner, schema: TableSchema, rows: list[Row]) -> list[tuple[bytes, int]]:
    extracted = assigner.assign(extractor_for(schema).extract(batch(schema, rows)))
    assert extracted.buckets is not None
    partitions = [extracted.partitions[code] for code in extracted.partition_codes]
    return list(zip(partitions, extracted.buckets.tolist(), strict=True))


def messages(found: list[tuple[bytes, int]]) -> list[CommitMessage]:
    return [CommitMessage(partition, bucket, -1, ()) for partition, bucket in dict.fromkeys(found)]


def committed(home: TableHome, latest: Snapshot | None, done: tuple[CommitMessage, ...]) -> Snapshot:
    files = ManifestFiles(home, ManifestSettings("avro", "zstd", 1 << 20, 1), (), 0)
    name = carry_index_manifest(home, latest, NO_FILES, files, messages=done)
    number = 1 if latest is None else latest.id + 1
    return Snapshot(number, 0, "b", f"d{number}", "u", 1, CommitKind.APPEND, 1, 0, 0, index_manifest=name)


def stored(home: TableHome, index: IndexFile) -> list[int]:
    path = home.paths.index(index.name)
    return decode_hash_index(home.store.get(path), path=path, expected=index.row_count).tolist()


@settings(max_examples=examples(60))
@given(
    commits=st.lists(st.lists(ROWS, max_size=3), max_size=4),
    target=st.sampled_from([1, 3, 10]),
    most=st.sampled_from([-1, 1, 2, 5]),
    initial=st.sampled_from([None, 1, 3]),
)
def test_a_key_has_one_bucket_for_ever(
    commits: list[list[list[Row]]], target: int, most: int, initial: int | None
) -> None:
    schema = schema_of(**options_of(target, most, initial))
    home, latest = home_on(MemoryStore()), None
    model: dict[Row, tuple[bytes, int]] = {}
    for batches in commits:
        assigner = DynamicBucketAssigner(home, schema, latest)
        touched: list[tuple[bytes, int]] = []
        for rows in batches:
            found = places(assigner, schema, rows)
            for row, place in zip(rows, found, strict=True):
                assert model.setdefault(row, place) == place
            touched += found
        done = assigner.complete(messages(touched))
        latest = committed(home, latest, done)
    sizes = Counter(model.values())
    for (_, bucket), size in sizes.items():
        assert most < 0 or bucket < most
        assert most > 0 or size <= target
    if latest is not None:
        indexes = HashIndexes(home, latest)
        for partition in {partition for partition, _ in model.values()}:
            loaded = indexes.load(partition)
            counts = {bucket: len(hashes) for bucket, hashes in loaded.buckets.items()}
            assert counts == {bucket: size for (own, bucket), size in sizes.items() if own == partition}


@settings(max_examples=examples(60))
@given(ROWS, st.lists(st.integers(0, 25), max_size=4), st.sampled_from([-1, 2]))
def test_rule_21_where_batches_end_does_not_matter(rows: list[Row], cuts: list[int], most: int) -> None:
    schema = schema_of(**options_of(3, most, 2))
    home = home_on(MemoryStore())
    whole = places(DynamicBucketAssigner(home, schema, None), schema, rows)
    edges = [0, *sorted(min(cut, len(rows)) for cut in cuts), len(rows)]
    assigner = DynamicBucketAssigner(home, schema, None)
    parts = [places(assigner, schema, rows[a:b]) for a, b in pairwise(edges)]
    assert [place for part in parts for place in part] == whole


@settings(max_examples=examples(60))
@given(ROWS, st.randoms(use_true_random=False), st.sampled_from([-1, 2]))
def test_rule_21_announced_keys_are_assigned_by_their_set_alone(rows: list[Row], chance, most: int) -> None:  # type: ignore[no-untyped-def]
    schema = schema_of(**options_of(3, most, 2))
    home = home_on(MemoryStore())
    outcomes = []
    for _ in range(2):
        extracted = extractor_for(schema).extract(batch(schema, rows))
        assigner = DynamicBucketAssigner(home, schema, None)
        for code, partition in enumerate(extracted.partitions):
            assigner.announce(partition, extracted.key_hashes[extracted.partition_codes == code])
        outcomes.append(dict(zip(rows, places(assigner, schema, rows), strict=True)))
        chance.shuffle(rows)
    assert outcomes[0] == outcomes[1]


@settings(max_examples=examples(60))
@given(commits=st.lists(ROWS, max_size=4), counts=st.lists(st.integers(1, 4), min_size=4, max_size=4))
def test_several_assigners_never_give_a_key_two_buckets(commits: list[list[Row]], counts: list[int]) -> None:
    schema = schema_of(**{"target-row-num": "3"})
    home, latest = home_on(MemoryStore()), None
    model: dict[Row, tuple[bytes, int]] = {}
    for rows, assigners in zip(commits, counts, strict=False):
        extracted = extractor_for(schema).extract(batch(schema, rows))
        hashes = partition_hashes(extracted.partitions)[extracted.partition_codes]
        owners = select_assigners(hashes, extracted.key_hashes, channels=assigners, assigners=assigners)
        done: list[CommitMessage] = []
        opened: list[set[tuple[bytes, int]]] = []
        for number in range(assigners):
            own = [row for row, owner in zip(rows, owners.tolist(), strict=True) if owner == number]
            assigner = DynamicBucketAssigner(home, schema, latest, assigner=number, assigners=assigners)
            found = places(assigner, schema, own)
            opened.append({place for row, place in zip(own, found, strict=True) if row not in model})
            for row, place in zip(own, found, strict=True):
                assert model.setdefault(row, place) == place
            done += assigner.complete(messages(found))
        indexed = [(m.partition, m.bucket) for m in done if m.new_hash_index is not None]
        assert len(set(indexed)) == len(indexed)
        assert sum(map(len, opened)) == len(set().union(*opened))
        latest = committed(home, latest, tuple(done))
    assert all(size <= 3 for size in Counter(model.values()).values())


def test_rows_of_another_assigner_are_refused() -> None:
    schema = schema_of()
    home = home_on(MemoryStore())
    assigner = DynamicBucketAssigner(home, schema, None, assigner=0, assigners=2)
    with pytest.raises(InvalidError, match="not for assigner 0 of 2"):
        places(assigner, schema, [(number, 0) for number in range(20)])
    with pytest.raises(InvalidError, match="assigner 2"):
        DynamicBucketAssigner(home, schema, None, assigner=2, assigners=2)


def test_there_are_no_more_assigners_than_buckets() -> None:
    schema = schema_of(**{"initial-buckets": "8", "max-buckets": "3"})
    assert DynamicBucketAssigner(home_on(MemoryStore()), schema, None).assigners == 3


def test_initial_buckets_are_opened_at_once() -> None:
    schema = schema_of(**{"initial-buckets": "4"})
    found = places(DynamicBucketAssigner(home_on(MemoryStore()), schema, None), schema, [(n, 0) for n in range(100)])
    assert {bucket for _, bucket in found} == {0, 1, 2, 3}


def test_rule_6_messages_name_what_the_assignment_rests_on() -> None:
    schema = schema_of(**{"target-row-num": "2"})
    home = home_on(MemoryStore())
    assigner = DynamicBucketAssigner(home, schema, None)
    first = assigner.complete(messages(places(assigner, schema, [(1, 0), (2, 0), (3, 0)])))
    assert [message.hash_indexes for message in first] == [(), ()]
    indexes = [message.new_hash_index for message in first]
    assert [index.row_count for index in indexes if index] == [2, 1]
    assert [index.size for index in indexes if index] == [8, 4]
    assert all(index and index.index_type == "HASH" for index in indexes)
    latest = committed(home, None, first)
    assigner = DynamicBucketAssigner(home, schema, latest)
    second = assigner.complete(messages(places(assigner, schema, [(1, 0), (4, 0)])))
    names = tuple(sorted(index.name for index in indexes if index))
    assert [message.hash_indexes for message in second] == [names, names]
    assert second[0].new_hash_index is None
    assert second[1].new_hash_index is not None
    kept = indexes[1]
    assert kept is not None
    assert set(stored(home, kept)) < set(stored(home, second[1].new_hash_index))


def test_a_fresh_assigner_ignores_what_the_table_holds() -> None:
    schema = schema_of(**{"target-row-num": "1"})
    home = home_on(MemoryStore())
    assigner = DynamicBucketAssigner(home, schema, None)
    latest = committed(home, None, assigner.complete(messages(places(assigner, schema, [(1, 0), (2, 0)]))))
    fresh = DynamicBucketAssigner(home, schema, latest, fresh=True)
    found = places(fresh, schema, [(2, 0)])
    assert [bucket for _, bucket in found] == [0]
    (message,) = fresh.complete(messages(found))
    assert message.hash_indexes is None
    assert message.new_hash_index is not None
    assert message.new_hash_index.row_count == 1


def test_a_bucket_without_an_index_gets_one_from_its_keys() -> None:
    schema = schema_of(**{"target-row-num": "2"})
    home = home_on(MemoryStore())
    extracted = extractor_for(schema).extract(batch(schema, [(1, 0), (2, 0), (3, 0)]))
    partition, hashes = extracted.partitions[0], extracted.key_hashes
    asked = []

    def keys_of(partition: bytes, bucket: int) -> np.ndarray:  # type: ignore[type-arg]
        asked.append((partition, bucket))
        return hashes[:2]

    assigner = DynamicBucketAssigner(home, schema, None, live=[(partition, 7)], keys_of=keys_of)
    found = places(assigner, schema, [(1, 0), (2, 0), (3, 0)])
    assert [bucket for _, bucket in found] == [7, 7, 0]
    done = {message.bucket: message for message in assigner.complete(messages(found))}
    assert asked == [(partition, 7)]
    restored = done[7].new_hash_index
    assert restored is not None
    assert stored(home, restored) == sorted(hashes[:2].tolist())
    blind = DynamicBucketAssigner(home, schema, None, live=[(partition, 7)])
    with pytest.raises(InternalError, match="no hash index"):
        places(blind, schema, [(1, 0)])


def test_an_abort_removes_the_indexes() -> None:
    schema, store = schema_of(), MemoryStore()
    home = home_on(store)
    assigner = DynamicBucketAssigner(home, schema, None)
    assigner.complete(messages(places(assigner, schema, [(1, 0), (1, 1)])))
    assert len(listing(store)) == 2
    assigner.abort()
    assert not listing(store)


def test_an_index_that_is_gone_or_cut_short_is_corrupt() -> None:
    schema, store = schema_of(), MemoryStore()
    home = home_on(store)
    assigner = DynamicBucketAssigner(home, schema, None)
    done = assigner.complete(messages(places(assigner, schema, [(1, 0)])))
    latest = committed(home, None, done)
    store.put(home.paths.snapshot(latest.id), encode_snapshot(latest))
    index = done[0].new_hash_index
    assert index is not None
    store.put(home.paths.index(index.name), b"\0\0")
    with pytest.raises(CorruptionError, match=index.name):
        places(DynamicBucketAssigner(home, schema, latest), schema, [(1, 0)])
    store.delete([home.paths.index(index.name)])
    with pytest.raises(CorruptionError, match=index.name):
        places(DynamicBucketAssigner(home, schema, replace(latest)), schema, [(1, 0)])


def test_rows_are_placed_as_writers_ask_for_it() -> None:
    schema = schema_of()
    assigner = DynamicBucketAssigner(home_on(MemoryStore()), schema, None)
    rows = batch(schema, [(1, 0), (2, 1)])
    (placed,) = assigner.place(rows, None)
    assert placed.rows is rows
    assert placed.extracted.buckets is not None
    assert assigner.total_buckets == -1
