"""Scanned events in packs: some hundreds of one group as one row, whose bytes Spark keeps and moves without looking into them.

A row of a pack has these columns, one row of the others those of its state:

    state         INT       TOLD ─ PACK ─ LEFT ─ IDLE
    group_hash    BIGINT    the group of a pack, or that is told
    told          STRING    what a group is (`event_batch`), once or more often for each
    count         BIGINT    the rows of a pack; of events with nothing to do, how many; 1 for an event that is left
    events        BINARY    the rows of a pack, a record batch of PACKED as Arrow writes it to streams, without its schema
    raw, message_key, topic, partition, offset, kafka_timestamp, arrival    an event that is left to expressions

Arrow's columns become rows of Spark's and columns again for every event otherwise, which took longer than to scan it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

import numpy as np
import pyarrow as pa

from lakelet.spark.cdc.scan.event_batch import SCHEMA
from lakelet.spark.cdc.scan.event_scan import Numbers

TOLD, PACK, LEFT, IDLE = range(4)
GIVEN = pa.schema(
    [
        pa.field("raw", pa.binary()),
        pa.field("message_key", pa.binary()),
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("kafka_timestamp", pa.timestamp("us", "UTC")),
    ]
)
_ARRIVAL = pa.field("arrival", pa.int64())
_SAID = ("unsure", "told")
# The columns of a row of a pack.
PACKED = pa.schema([*GIVEN, *(one for one in SCHEMA if one.name not in _SAID), _ARRIVAL])
PACK_COLUMNS = (
    "state int, group_hash bigint, told string, `count` bigint, events binary, raw binary, message_key binary, topic string, "
    "`partition` int, `offset` bigint, kafka_timestamp timestamp, arrival bigint"
)
_COLUMNS = pa.schema(
    [
        pa.field("state", pa.int32()),
        pa.field("group_hash", pa.int64()),
        pa.field("told", pa.string()),
        pa.field("count", pa.int64()),
        pa.field("events", pa.binary()),
        *GIVEN,
        _ARRIVAL,
    ]
)
# Arrays of more than half a megabyte are a burden to the JVM's collector; batches of a task hold several.
PACK_BYTES = 1 << 18
_MOST_ROWS = 10_000
# `monotonically_increasing_id`'s numbers: the partition above the place in it.
_PLACE_BITS = 33


def packed_events(batches: Iterable[pa.RecordBatch], partition: int) -> Iterator[pa.RecordBatch]:
    """The packs of `event_batches` of a Spark partition."""
    first = partition << _PLACE_BITS
    for batch in batches:
        arrival = pa.array(np.arange(first, first + batch.num_rows))
        yield from _packs(batch, arrival)
        first += batch.num_rows


def _packs(batch: pa.RecordBatch, arrival: pa.Array) -> Iterator[pa.RecordBatch]:
    unsure, applies = np.asarray(batch.column("unsure")), np.asarray(batch.column("operation").is_valid())
    told = batch.filter(batch.column("told").is_valid())
    if told.num_rows:
        states = {"group_hash": told.column("group_hash"), "told": told.column("told")}
        yield _lines(TOLD, told.num_rows, states)
    left = np.flatnonzero(unsure)
    if len(left):
        given = {name: batch.column(name).take(pa.array(left)) for name in GIVEN.names}
        yield _lines(LEFT, len(left), {**given, "arrival": arrival.take(pa.array(left)), "count": _ones(len(left))})
    idle = int((~unsure & ~applies).sum())
    if idle:
        yield _lines(IDLE, 1, {"count": pa.array([idle])})
    columns = [batch.column(one.name).cast(one.type) for one in PACKED if one.name != _ARRIVAL.name]
    events = pa.RecordBatch.from_arrays([*columns, arrival], schema=PACKED)
    sure = np.flatnonzero(~unsure & applies)
    hashes = np.asarray(batch.column("group_hash"))[sure]
    if len(sure) and (len(sure) < batch.num_rows or (hashes != hashes[0]).any()):
        order = np.argsort(hashes, kind="stable")
        sure, hashes = sure[order], hashes[order]
        events = events.take(pa.array(sure))
    if len(sure):
        yield _groups(events, hashes)


def _groups(events: pa.RecordBatch, hashes: Numbers) -> pa.RecordBatch:
    """The packs of events that are sorted by their groups."""
    most = max(1, PACK_BYTES * events.num_rows // max(1, events.nbytes))
    begins: list[int] = []
    edges = [0, *(np.flatnonzero(np.diff(hashes)) + 1).tolist(), len(hashes)]
    for begin, end in pairwise(edges):
        begins += range(begin, end, most)
    sizes = np.diff([*begins, len(hashes)])
    packs = [
        events.slice(begin, size).serialize().to_pybytes() for begin, size in zip(begins, sizes.tolist(), strict=True)
    ]
    found = {"group_hash": pa.array(hashes[begins]), "count": pa.array(sizes), "events": pa.array(packs, pa.binary())}
    return _lines(PACK, len(packs), found)


def _lines(state: int, count: int, known: dict[str, pa.Array]) -> pa.RecordBatch:
    known = {"state": pa.array(np.full(count, state, np.int32)), **known}
    columns = [known[one.name].cast(one.type) if one.name in known else pa.nulls(count, one.type) for one in _COLUMNS]
    return pa.RecordBatch.from_arrays(columns, schema=_COLUMNS)


def _ones(count: int) -> pa.Array:
    return pa.array(np.ones(count, np.int64))


def unpacked_events(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows of packs, which are the last column of batches: many small packs become one batch."""
    for batch in batches:
        held: list[pa.RecordBatch] = []
        rows = 0
        for pack in batch.column(batch.num_columns - 1):
            held.append(pa.ipc.read_record_batch(pack.as_buffer(), PACKED))
            rows += held[-1].num_rows
            if rows >= _MOST_ROWS:
                yield pa.concat_batches(held)
                held, rows = [], 0
        if held:
            yield pa.concat_batches(held)
