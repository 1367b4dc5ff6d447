"""Open scans: check the arguments of `Table.scan` and pin its version."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from lakelet.errors import InvalidError
from lakelet.options import TableOptions
from lakelet.storage.home import TableHome
from lakelet.table.read.condition import Condition, check_condition, parsed_condition
from lakelet.table.read.fallback import fallback_of
from lakelet.table.read.named_version import named_version, stored_version
from lakelet.table.read.point_read import chosen_columns
from lakelet.table.read.table_scan import TableScan
from lakelet.table.usable import check_usable


@dataclass(frozen=True, slots=True)
class NamedVersion:
    """The version that a read names by snapshot id, time or tag; the newest where all are None."""

    version: int | str | None = None
    timestamp: datetime | str | int | None = None
    tag: str | None = None


def open_scan(
    home: TableHome,
    columns: Sequence[str] | None,
    where: Condition | None,
    limit: int | None,
    named: NamedVersion,
    *,
    ordered: bool,
) -> TableScan:
    """A scan of one version of a table, with its fallback branch where the options name one."""
    schema, snapshot = named_version(home, named.version, named.timestamp, named.tag)
    check_usable(schema)
    _check_limit(limit)
    check_condition(where)
    names = chosen_columns(columns, schema)
    if ordered and not schema.primary_keys:
        raise InvalidError("ordered: the table has no primary key to order rows by")
    chosen = (named.version, named.timestamp, named.tag, *stored_version(TableOptions(schema.options)))
    newest = all(choice is None for choice in chosen)
    other = fallback_of(home, schema, snapshot, newest=newest, tag=named.tag)
    if other is not None:
        check_usable(other.schema)
    return TableScan(home, schema, snapshot, names, parsed_condition(where, schema), limit, ordered, other)


def _check_limit(limit: object) -> None:
    if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool) or limit < 0):
        raise InvalidError(f"limit {limit!r}: expected a whole number from 0 on")
