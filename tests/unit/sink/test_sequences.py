"""Where sequence numbers go on."""

import pytest

from lakelet.sink.sequences import CommittedSequences, next_sequences
from tests.unit.keyed_table import KeyedTable


def partitioned(bucket: str) -> KeyedTable:
    table = KeyedTable({"p": "INT", "id": "INT"}, ["p", "id"], partitions=["p"], bucket=bucket)
    for count in (30, 20):
        table.commit(table.write([{"p": number % 10, "id": number} for number in range(count)]))
    return table


def test_after_the_greatest_number_of_all_live_files() -> None:
    table = partitioned("1")
    assert sorted(next_sequences(table.home, table.schema).values()) == [5] * 10


def test_partitions_are_looked_up_when_they_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    table = partitioned("3")
    everywhere = next_sequences(table.home, table.schema)
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
    assert next_sequences(table.home, table.schema) == {}
    assert CommittedSequences(table.home, table.schema).first_free((b"", 0)) == 0


def test_manifests_may_be_given() -> None:
    table = partitioned("1")
    place = next(iter(next_sequences(table.home, table.schema)))
    assert CommittedSequences(table.home, table.schema, []).first_free(place) == 0
