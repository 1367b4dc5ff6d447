"""Pinned memtables as messages between nodes, in parts of a few megabytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from lakelet.errors import CorruptionError
from lakelet.protos.message_types import message_class
from lakelet.realtime.read.pinned_memtables import PinnedMemtable

_PART_BYTES = 2 << 20
_SCHEMA = pa.schema([pa.field("value", pa.large_binary(), nullable=False)])


def messages_of(identity: str, pinned: Sequence[PinnedMemtable]) -> Iterator[Any]:
    """The messages for the memtables of a table."""
    made = message_class("lakelet.peer.v1.PinnedRows")
    for one in pinned:
        for values in _parts(one.values):
            yield made(
                table_identity=identity,
                user=one.user,
                sequence_number=one.sequence_number,
                schema_id=one.schema_id,
                flush_base=one.flush_base,
                committed_in=one.committed_in,
                values=_encoded(values),
            )


def memtable_of(message: Any) -> PinnedMemtable:
    """A memtable, or a part of one, of a message."""
    return PinnedMemtable(
        message.user,
        message.sequence_number,
        message.schema_id,
        message.flush_base,
        message.committed_in if message.HasField("committed_in") else None,
        _decoded(message.values),
    )


def _parts(values: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    start, size = 0, 0
    for place, value in enumerate(values):
        if place > start and size + len(value) > _PART_BYTES:
            yield values[start:place]
            start, size = place, 0
        size += len(value)
    if start < len(values):
        yield values[start:]


def _encoded(values: Sequence[bytes]) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, _SCHEMA) as writer:
        writer.write_batch(pa.record_batch([pa.array(values, pa.large_binary())], schema=_SCHEMA))
    found: bytes = sink.getvalue().to_pybytes()
    return found


def _decoded(data: bytes) -> list[bytes]:
    try:
        with pa.ipc.open_stream(data) as reader:
            found = reader.read_all()
    except (pa.ArrowException, OSError) as error:
        raise CorruptionError(f"rows of another node: {error}") from error
    if found.schema != _SCHEMA:
        raise CorruptionError(f"rows of another node: expected {_SCHEMA}, found {found.schema}")
    values: list[bytes] = found.column(0).to_pylist()
    return values
