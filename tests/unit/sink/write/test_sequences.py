"""Where sequence numbers continue."""

from dataclasses import replace

import pytest

from lakelet.commit.metadata.manifests import live_entries, snapshot_manifests
from lakelet.commit.metadata.snapshots import latest_snapshot
from lakelet.errors import InvalidError
from lakelet.model.bucket_mode import Place
from lakelet.sink.write import sequences as sequences_module
from lakelet.sink.write.sequences import CommittedSequences
from tests.unit.keyed_table import KeyedTable


def partitioned(bucket: str) -> KeyedTable:
    table = KeyedTable({"p": "INT", "id": "INT"}, ["p", "id"], partitions=["p"], bucket=bucket)
    for count in (30, 20):
        table.commit(table.write([{"p": number % 10, "id": number} for number in range(count)]))
    return table


def first_free(table: KeyedTable) -> dict[Place, int]:
    """What all buckets that have files go on with, by way of the files themselves."""
    snapshot = latest_snapshot(table.home)
    assert snapshot is not None
    entries = live_entries(table.home, snapshot_manifests(table.home, snapshot)).to_pylist()
    places = {(entry["_PARTITION"], entry["_BUCKET"]) for entry in entries}
    return {
        place: 1 + max(e["_MAX_SEQUENCE_NUMBER"] for e in entries if (e["_PARTITION"], e["_BUCKET"]) == place)
        for place in places
    }


def test_after_the_greatest_number_of_all_live_files() -> None:
    table = partitioned("1")
    sequences = CommittedSequences(table.home, table.schema)
    assert sorted(sequences.first_free(place) for place in first_free(table)) == [5] * 10


def test_partitions_are_looked_up_when_they_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    table = partitioned("3")
    everywhere = first_free(table)
    assert len(everywhere) > 15
    calls = []
    real = table.home.store.get

    def counted(path: str) -> bytes:
        calls.append(path)
        return real(path)

    monkeypatch.setattr(table.home.store, "get", counted)
    sequences = CommittedSequences(table.home, table.schema)
    assert calls == []
    for (partition, bucket), number in everywhere.items():
        assert sequences.first_free((partition, bucket)) == number
    # A few partitions one by one, then all others at once.
    assert len([path for path in calls if "/manifest-" in path and "list" not in path]) <= 2 * 5
    assert sequences.first_free((b"no such partition", 0)) == 0


def test_an_empty_table_begins_at_zero() -> None:
    table = KeyedTable({"id": "INT"})
    assert CommittedSequences(table.home, table.schema).first_free((b"", 0)) == 0


def test_manifests_may_be_given() -> None:
    table = partitioned("1")
    place = next(iter(first_free(table)))
    assert CommittedSequences(table.home, table.schema, []).first_free(place) == 0


def test_a_partition_with_another_number_of_buckets_is_refused_unless_it_is_replaced() -> None:
    table = partitioned("3")
    place = next(iter(first_free(table)))
    rescaled = replace(table.schema, options={**table.schema.options, "bucket": "4"})
    with pytest.raises(InvalidError, match=r"the table has 4 buckets, but rows of p=. were written for 3"):
        CommittedSequences(table.home, rescaled).first_free(place)
    assert CommittedSequences(table.home, rescaled, replaces=True).first_free(place) > 0


def test_few_files_and_many_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    table = partitioned("3")
    found = []
    for few in (-1, 1 << 20):
        monkeypatch.setattr(sequences_module, "_FEW_FILES", few)
        sequences = CommittedSequences(table.home, table.schema)
        found.append({place: (sequences.first_free(place), sequences.runs(place)) for place in first_free(table)})
    assert found[0] == found[1]
    assert {runs for _, runs in found[0].values()} == {1, 2}
