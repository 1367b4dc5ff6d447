"""Fragments of queries as messages between nodes: what one reads of which version of a table, and the rows that it gives."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from lakelet.commit.metadata.schemas import SchemaVersions
from lakelet.commit.metadata.snapshots import read_snapshot
from lakelet.commit.metadata.table_identity import table_identity
from lakelet.errors import CorruptionError, InternalError, UnavailableError
from lakelet.model.snapshot import Snapshot
from lakelet.protos.message_types import message_class
from lakelet.service.tables.registry import TableRegistry
from lakelet.sql.engine.duckdb_engine import ENGINE
from lakelet.sql.sandbox.sandbox_table import Overlay, SandboxTable, TableShare
from lakelet.sql.sandbox.spread import Fragment, GivenRows
from lakelet.table.read.table_scan import TableScan

_MESSAGE_BYTES = 1 << 20


def fragment_message(fragment: Fragment, seconds: float) -> Any:
    """The request to run a fragment for so many seconds at most."""
    made = message_class("lakelet.peer.v1.FragmentRequest")
    tables = [_share_message(table) for table in fragment.tables]
    given = [_given_message(one, seconds) for one in fragment.given]
    return made(sql=fragment.sql, time_zone=fragment.zone, tables=tables, seconds=seconds, engine=ENGINE, given=given)


def fragment_of(message: Any, tables: TableRegistry) -> Fragment:
    """The fragment of a request, over tables that are served here. UnavailableError where this node has not the same versions."""
    if message.engine != ENGINE:
        raise UnavailableError(f"this node has DuckDB {ENGINE}, the one that asks {message.engine}")
    zone = message.time_zone if message.HasField("time_zone") else None
    given = tuple(
        GivenRows(
            one.name,
            _decoded(one.schema).schema,
            tuple((share.node, fragment_of(share.fragment, tables)) for share in one.shares),
        )
        for one in message.given
    )
    return Fragment(message.sql, zone, tuple(_table_of(one, tables) for one in message.tables), given)


def batch_messages(batch: pa.RecordBatch) -> Iterator[Any]:
    """Rows of a fragment, in messages of about a megabyte: so many nodes hold at a time."""
    made = message_class("lakelet.peer.v1.FragmentRows")
    step = max(batch.num_rows * _MESSAGE_BYTES // max(batch.nbytes, 1), 1)
    for start in range(0, batch.num_rows, step):
        yield made(batch=_encoded(batch.schema, [batch.slice(start, step)]))


def batches_of(message: Any) -> list[pa.RecordBatch]:
    """The rows of a message."""
    return _decoded(message.batch).to_batches() if message.batch else []


def _given_message(given: GivenRows, seconds: float) -> Any:
    shares = [
        message_class("lakelet.peer.v1.GivenShare")(node=node, fragment=fragment_message(fragment, seconds))
        for node, fragment in given.shares
    ]
    made = message_class("lakelet.peer.v1.GivenRows")
    return made(name=given.name, schema=_encoded(given.schema, []), shares=shares)


def _share_message(table: SandboxTable) -> Any:
    share = table.share
    if share is None:
        raise InternalError(f"table {table.name!r} of a fragment has no share")
    snapshot = table.scan.snapshot
    return message_class("lakelet.peer.v1.TableShare")(
        name=table.name,
        table_identity=table_identity(table.scan.home),
        snapshot_id=0 if snapshot is None else snapshot.id,
        manifest_lists=_manifest_lists(snapshot),
        schema_id=table.scan.schema.id,
        hidden_columns=table.hidden,
        lacks_payload=table.lacks_payload,
        pruned_by=share.texts,
        has_all_splits=share.splits is None,
        splits=sorted(share.splits or ()),
        rows=_frame(share.overlay.rows),
        replaced=_frame(share.overlay.replaced),
    )


def _table_of(message: Any, tables: TableRegistry) -> SandboxTable:
    if tables.try_open(message.name) is None:
        tables.find(message.name)
    scan = tables.open(message.name).table.scan()
    if table_identity(scan.home) != message.table_identity:
        raise UnavailableError(f"table {message.name!r} is another one here")
    share = TableShare(
        tuple(message.pruned_by),
        None if message.has_all_splits else frozenset(message.splits),
        Overlay(
            _decoded(message.rows) if message.HasField("rows") else None,
            _decoded(message.replaced) if message.HasField("replaced") else None,
        ),
    )
    return SandboxTable(
        message.name,
        _scan_of(message, scan),
        hidden=tuple(message.hidden_columns),
        lacks_payload=message.lacks_payload,
        share=share,
    )


def _scan_of(message: Any, newest: TableScan) -> TableScan:
    """The scan of the version that is named."""
    home = newest.home
    snapshot = read_snapshot(home, message.snapshot_id) if message.snapshot_id else None
    if _manifest_lists(snapshot) != list(message.manifest_lists):
        raise UnavailableError(f"snapshot {message.snapshot_id} of table {message.name!r} is another one here")
    schema = SchemaVersions(home)(message.schema_id)
    return TableScan(home, schema, snapshot, tuple(schema.names))


def _manifest_lists(snapshot: Snapshot | None) -> list[str]:
    return [] if snapshot is None else [snapshot.base_manifest_list, snapshot.delta_manifest_list]


def _frame(rows: pa.Table | None) -> bytes | None:
    return None if rows is None else _encoded(rows.schema, rows.to_batches())


def _encoded(schema: pa.Schema, batches: list[pa.RecordBatch]) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    found: bytes = sink.getvalue().to_pybytes()
    return found


def _decoded(data: bytes) -> pa.Table:
    try:
        with pa.ipc.open_stream(data) as reader:
            return reader.read_all()
    except (pa.ArrowException, OSError) as error:
        raise CorruptionError(f"rows of another node: {error}") from error
