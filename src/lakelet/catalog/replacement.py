"""Replace a table by a new one when keys or buckets change, which its history does not survive.

    new table    t__new_…  made and filled ─ t becomes t__replaced_… ─ t__new_… becomes t ─ t__replaced_… is dropped

At every moment either the old rows or the new ones are complete: under the name itself except after a crash between the
renames, which leaves the old table as t__replaced_… and the new one as t__new_…, each to be renamed or dropped by hand.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from lakelet.errors import CommitUnknownError, LakeletError

if TYPE_CHECKING:
    from lakelet.catalog.lake import Lake
    from lakelet.table.table import Table

_LOG = logging.getLogger(__name__)
_MOST_LETTERS = 150


def exchange(lake: Lake, name: str, create: Callable[[str], Table], rows: Any, mark: str) -> Table:
    """Replace a table by one that `create` makes, filled with rows; `mark` distinguishes the names of several runs."""
    database, _, table = name.partition(".")
    made, aside = (f"{database}.{table[:_MOST_LETTERS]}__{what}_{mark}" for what in ("new", "replaced"))
    new = create(made)
    try:
        if rows is not None:
            new.write(rows)
        lake.rename_table(name, aside)
    except CommitUnknownError:
        raise
    except (Exception, KeyboardInterrupt):
        lake.drop_table(made, if_exists=True)
        raise
    try:
        found = lake.rename_table(made, name)
    except LakeletError:
        lake.rename_table(aside, name)
        lake.drop_table(made, if_exists=True)
        raise
    try:
        lake.drop_table(aside)
    except LakeletError as error:
        _LOG.warning("table %s is replaced, but what it was stays behind as %s: %s", name, aside, error)
    return found
