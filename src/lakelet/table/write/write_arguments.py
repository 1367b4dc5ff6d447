"""`Table.write`: check its arguments, write the rows and commit them once, however often the call is repeated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lakelet.commit.dropped_table import noticing_drop
from lakelet.commit.metadata.schemas import latest_schema
from lakelet.errors import InvalidError
from lakelet.model.snapshot import Snapshot
from lakelet.storage.home import TableHome
from lakelet.table.change.schema_change import SchemaChanges
from lakelet.table.usable import check_usable
from lakelet.table.write.after_write import AfterWrite
from lakelet.table.write.committed_write import CommittedWrite
from lakelet.table.write.incoming_columns import IncomingColumns
from lakelet.table.write.table_commit import TableCommit, partition_spec
from lakelet.table.write.writable import check_writable

_MODES = ("append", "overwrite", "overwrite_partitions")


@dataclass(frozen=True, slots=True)
class RowArguments:
    """How rows are written: their kinds, how missing columns are filled, and whether new columns are added to the table."""

    kinds: Any
    missing: str | None
    evolve: bool


@dataclass(frozen=True, slots=True)
class CommitArguments:
    """The identity of a commit, and what is stored in its snapshot."""

    user: str | None
    identifier: int | None
    watermark: int | None
    properties: Mapping[str, str] | None


def write_rows(
    home: TableHome,
    data: Any,
    *,
    mode: str,
    partition: Mapping[str, object] | None,
    rows: RowArguments,
    commit: CommitArguments,
) -> Snapshot | None:
    """Write rows in one commit; None where there was nothing to write."""
    if mode not in _MODES:
        raise InvalidError(f"mode {mode!r}: expected one of {', '.join(_MODES)}")
    if partition is not None and mode != "overwrite":
        raise InvalidError(f"partition= goes with mode='overwrite', found mode={mode!r}")
    with noticing_drop(home):
        schema = latest_schema(home)
        check_usable(schema)
        check_writable(schema)
        made = TableCommit.of(home, commit.user, commit.identifier, schema)
        if commit.watermark is not None or commit.properties is not None:
            made = made.watermark(commit.watermark).properties(commit.properties)
        if mode == "overwrite":
            made = made.overwrite(partition or {})
        elif mode == "overwrite_partitions":
            made = made.overwrite(dynamic=True)
        made, done = made.look_back()
        if done is not None:
            return AfterWrite(home, schema, made).repeated(done)
        if rows.evolve:
            incoming = IncomingColumns(data, rows.kinds if isinstance(rows.kinds, str) else None)
            data = incoming.data
            if incoming.evolved(schema) != schema:
                schema = SchemaChanges(home).alter(incoming.evolved)
        fixed = partition_spec(partition or {}, schema)
        return CommittedWrite(home, schema, made, fixed, rows.missing).run(data, rows.kinds)
