"""Streams in key order become one in key order, whatever their batches are."""

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from lakelet.realtime.read.key_order import merge_in_order

STREAMS = st.lists(st.lists(st.lists(st.binary(max_size=3), max_size=4), max_size=4), max_size=4)


@given(STREAMS)
def test_all_rows_come_in_order(streams: list[list[list[bytes]]]) -> None:
    schema = pa.schema([("k", pa.large_binary())])
    made = []
    for batches in streams:
        keys = iter(sorted(key for batch in batches for key in batch))
        made.append([pa.record_batch([[next(keys) for _ in batch]], schema=schema) for batch in batches])
    found = [
        key
        for batch in merge_in_order(map(iter, made), lambda rows: rows.column("k"))
        for key in batch.column("k").to_pylist()
    ]
    assert found == sorted(key for batches in streams for batch in batches for key in batch)
