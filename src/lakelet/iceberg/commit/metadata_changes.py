"""Commit changes of metadata alone, such as of branches and of the set of snapshots: one request, recomputed after a
concurrent commit.

A request is computed from the current table and carries its requirements. Where the catalog does not report the outcome, the
table is reloaded: the change is committed where the table is in the intended state. Otherwise it may still be applied:
that is a CommitUnknownError, and the caller has to check.
"""

from __future__ import annotations

from collections.abc import Callable

from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.update import TableRequirement, TableUpdate, update_table_metadata

from lakelet.clock import Clock, SystemClock
from lakelet.errors import CommitUnknownError, ConflictError, LakeletError
from lakelet.iceberg.catalog.library_errors import first_line, lakelet_errors
from lakelet.iceberg.commit.change_events import publish_change, publish_unknown
from lakelet.iceberg.commit.outcomes import Outcome, outcome_of
from lakelet.iceberg.commit.request import send
from lakelet.iceberg.table import IcebergTable
from lakelet.ids import Ids, RandomIds

_ATTEMPTS = 6
_WAIT_SECONDS = 0.1

Request = tuple[tuple[TableRequirement, ...], tuple[TableUpdate, ...]]


def change_metadata(
    table: IcebergTable,
    request: Callable[[IcebergTable], Request | None],
    *,
    ids: Ids | None = None,
    clock: Clock | None = None,
) -> IcebergTable | None:
    """Sends the updates that `request` computes from the table, and returns the table they were computed from; None where there
    is nothing to change. Errors of `request` are raised."""
    ids, clock = ids or RandomIds(), clock or SystemClock()
    where = f"table {table.full_name}"
    number = 0
    while True:
        now = table.reloaded()
        with lakelet_errors(where):
            made = request(now)
        if made is None:
            return None
        try:
            send(now, *made)
            return now
        except Exception as error:
            outcome = outcome_of(error, now.library.catalog)
            if outcome is Outcome.UNKNOWN:
                look_for_change(now, made[1], error)
                return now
            if outcome is Outcome.REFUSED:
                with lakelet_errors(where):
                    raise
            number += 1
            if number == _ATTEMPTS:
                raise ConflictError(
                    f"{where}: others were first at each of {number} attempts: {first_line(error)}"
                ) from error
            clock.sleep(_WAIT_SECONDS * 2 ** (number - 1) * (0.5 + ids.jitter() / 2))


def look_for_change(sent: IcebergTable, updates: tuple[TableUpdate, ...], error: Exception) -> IcebergTable:
    """The table after a request of unknown outcome, if it is committed; else CommitUnknownError."""
    try:
        with lakelet_errors(f"table {sent.full_name}"):
            wanted = update_table_metadata(sent.metadata, updates)
        now = sent.reloaded()
        if _state(now.metadata) == _state(wanted):
            publish_change(sent, now.metadata, updates)
            return now
    except LakeletError as silence:
        said = f"{first_line(error)}; {first_line(silence)}"
    else:
        said = first_line(error)
    publish_unknown(sent, "change of metadata")
    raise CommitUnknownError(
        f"table {sent.full_name}: the catalog did not say whether the change is committed: {said}"
    ) from error


def _state(metadata: TableMetadata) -> tuple[object, ...]:
    """The parts of the metadata that such changes touch."""
    return (
        metadata.format_version,
        metadata.schema(),
        metadata.spec(),
        metadata.properties,
        metadata.refs,
        {snapshot.snapshot_id for snapshot in metadata.snapshots},
    )
