"""Fragments and their rows as messages between nodes."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lakelet.protos.message_types import message_class
from lakelet.service.peers.fragment_messages import batch_messages, batches_of, fragment_message, fragment_of
from lakelet.service.tables.registry import TableRegistry
from lakelet.sql.sandbox.spread import Fragment, GivenRows

_SCHEMA = pa.schema([("lakelet_c0", pa.int64()), ("lakelet_c1", pa.timestamp("us", "Asia/Kolkata"))])


@pytest.mark.parametrize("rows", [1, 7, 100_000])
def test_a_large_batch_is_several_messages(rows: int) -> None:
    batch = pa.record_batch({"n": range(rows), "text": [f"{n:050}" for n in range(rows)]})
    messages = list(batch_messages(batch))
    assert max(len(one.batch) for one in messages) < 2 << 20
    assert len(messages) >= batch.nbytes // (2 << 20)
    found = [one for message in messages for one in batches_of(message)]
    assert pa.Table.from_batches(found).equals(pa.Table.from_batches([batch]))


def test_a_row_is_never_cut() -> None:
    batch = pa.record_batch({"text": ["x" * (3 << 20)] * 2})
    assert [one.num_rows for message in batch_messages(batch) for one in batches_of(message)] == [1, 1]


def test_a_fragment_tells_who_runs_the_fragments_that_it_reads() -> None:
    inner = Fragment("SELECT 1 AS lakelet_c0", "Asia/Kolkata", ())
    given = GivenRows("lakelet_partials_2", _SCHEMA, (("one", inner), ("two", inner)))
    fragment = Fragment("SELECT * FROM lakelet_partials_2", None, (), (given,))
    data = fragment_message(fragment, 5.0).SerializeToString()
    message = message_class("lakelet.peer.v1.FragmentRequest").FromString(data)
    assert [share.fragment.seconds for one in message.given for share in one.shares] == [5.0, 5.0]
    # Without tables, none is looked for.
    registry: TableRegistry = None  # type: ignore[assignment]
    assert fragment_of(message, registry) == fragment
