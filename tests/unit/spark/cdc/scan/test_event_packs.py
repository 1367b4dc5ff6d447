"""Packs of events: every event of a batch is in one pack of its group, or left to expressions, or counted as idle."""

import random
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

from lakelet.spark.cdc.scan import event_packs
from lakelet.spark.cdc.scan.event_batch import event_batches
from lakelet.spark.cdc.scan.event_packs import GIVEN, IDLE, LEFT, PACK, PACKED, TOLD, packed_events, unpacked_events
from tests.spark.cdc.sample_events import canal, debezium, text

ZONED = pa.timestamp("us", "Asia/Kolkata")


def batch(events: list[object], first: int = 0) -> pa.RecordBatch:
    """Events as Spark hands them to a task, with places of Kafka."""
    raw = [None if one is None else one.encode() if isinstance(one, str) else text(one).encode() for one in events]
    size = len(raw)
    columns = {
        "raw": pa.array(raw, pa.binary()),
        "message_key": pa.nulls(size, pa.binary()),
        "topic": pa.array(["srv"] * size),
        "partition": pa.array([1] * size, pa.int32()),
        "offset": pa.array(range(first, first + size), pa.int64()),
        "kafka_timestamp": pa.array([1704067200500000] * size, ZONED),
    }
    return pa.RecordBatch.from_pydict(columns)


def packed(batches: list[pa.RecordBatch], format: str = "debezium", partition: int = 0) -> pa.RecordBatch:
    lines = list(packed_events(event_batches(batches, format, whole=False), partition))
    return pa.concat_batches(lines)


def unpacked(lines: pa.RecordBatch) -> list[dict[str, Any]]:
    chosen = lines.filter(pa.array([state == PACK for state in lines.column("state").to_pylist()])).select(["events"])
    return [row for one in unpacked_events([chosen]) for row in one.to_pylist()]


@pytest.mark.parametrize("size", [1, 600, 1 << 18])
def test_every_event_is_somewhere_once(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(event_packs, "PACK_BYTES", size)
    chosen, events = random.Random(7), list[object]()
    for number in range(300):
        plain = debezium("c", None, {"id": number, "q": "x" * chosen.randrange(9)}, table=f"t{chosen.randrange(4)}")
        events.append(chosen.choice([plain, plain, plain, plain, None, "{"]))
    lines = packed([batch(events[:200]), batch(events[200:], 200)], partition=3)
    told = {line["group_hash"]: line["told"] for line in lines.to_pylist() if line["state"] == TOLD}
    assert len(told) == 4
    rows = unpacked(lines)
    left = [line for line in lines.to_pylist() if line["state"] == LEFT]
    assert sorted(line["offset"] for line in left) == [place for place, one in enumerate(events) if one == "{"]
    assert {(line["raw"], line["count"]) for line in left} == {(b"{", 1)}
    idle = sum(line["count"] for line in lines.to_pylist() if line["state"] == IDLE)
    assert idle == sum(one is None for one in events)
    sure = [place for place, one in enumerate(events) if isinstance(one, dict)]
    assert sorted(row["offset"] for row in rows) == sure
    for row in rows:
        assert f'"id":{row["offset"]},'.encode() in row["image"].replace(b" ", b"")
        assert (row["topic"], row["partition"], row["kafka_timestamp"].year) == ("srv", 1, 2024)
    # The order of arrival is that of the partition, whichever pack an event is in; each event has a number of its own.
    assert {row["arrival"] - row["offset"] for row in rows} == {3 << 33}
    assert {line["arrival"] - line["offset"] for line in left} == {3 << 33}
    counts = Counter[int]()
    for line in lines.to_pylist():
        if line["state"] == PACK:
            counts[line["group_hash"]] += line["count"]
    assert counts == Counter(row["group_hash"] for row in rows)
    assert set(counts) == set(told)


def test_rows_of_one_event_have_numbers_of_their_own() -> None:
    events: list[object] = [canal("INSERT", [{"id": "1"}, {"id": "2"}]), canal("INSERT", [{"id": "3"}])]
    rows = unpacked(packed([batch(events)], "canal"))
    assert [(row["arrival"], row["offset"], row["row_index"]) for row in rows] == [(0, 0, 0), (1, 0, 1), (2, 1, 0)]


def test_packs_are_small_and_come_back_in_large_batches() -> None:
    events: list[object] = [debezium("c", None, {"id": number, "q": "x" * 400}) for number in range(3000)]
    lines = packed([batch(events)])
    sizes = [len(line["events"]) for line in lines.to_pylist() if line["events"] is not None]
    assert len(sizes) > 4
    assert max(sizes) < 2 * event_packs.PACK_BYTES
    chosen = lines.filter(pa.array([state == PACK for state in lines.column("state").to_pylist()])).select(["events"])
    [found] = unpacked_events([chosen])
    assert (found.num_rows, found.schema) == (3000, PACKED)


def test_lines_are_alike_whatever_is_in_them() -> None:
    """Spark takes the types of a task's columns as they come."""
    found = [
        one.schema
        for one in packed_events(
            event_batches([batch([None, "{", debezium("c", None, {"id": 1})])], "debezium", whole=True), 0
        )
    ]
    assert len(found) == 4
    assert all(one == found[0] for one in found)
    assert [one for one in GIVEN.names if one not in found[0].names] == []
