"""Changes of metadata alone, such as of branches and of which snapshots there are: one request, made anew where another was
first.

A request is worked out from the table as it is, and says what it relies on. Where the catalog does not say what became of it,
that is a CommitUnknownError: whoever relies on the change has to look.
"""

from __future__ import annotations

from collections.abc import Callable

from pyiceberg.table.update import TableRequirement, TableUpdate

from lakelet.clock import Clock, SystemClock
from lakelet.errors import CommitUnknownError, ConflictError
from lakelet.iceberg.commit.outcomes import Outcome, outcome_of
from lakelet.iceberg.commit.sending import send
from lakelet.iceberg.library_errors import lakelet_errors
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
    """Sends what `request` makes of the table, and gives the table that the request was made of; None where there is nothing to
    change. What `request` raises ends it."""
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
                raise CommitUnknownError(
                    f"{where}: the catalog did not say whether the change stands: {error}"
                ) from error
            if outcome is Outcome.REFUSED:
                with lakelet_errors(where):
                    raise
            number += 1
            if number == _ATTEMPTS:
                raise ConflictError(f"{where}: others were first at each of {number} attempts: {error}") from error
            clock.sleep(_WAIT_SECONDS * 2 ** (number - 1) * (0.5 + ids.jitter() / 2))
