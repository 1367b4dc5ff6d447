"""Delete rows by primary key or by condition, on primary-key and append tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lakelet.commit.dropped_table import noticing_drop
from lakelet.commit.metadata.schemas import latest_schema
from lakelet.errors import InvalidError
from lakelet.model.snapshot import Snapshot
from lakelet.storage.home import TableHome
from lakelet.table.change.keyed_deletion import KeyedDeletion, keyed_rows, matching_rows
from lakelet.table.change.row_deletion import RowDeletion
from lakelet.table.read.condition import Condition, check_condition, parsed_condition
from lakelet.table.usable import check_usable
from lakelet.table.write.table_commit import TableCommit
from lakelet.table.write.writable import check_writable


def delete_rows(
    home: TableHome, keys: Any, where: Condition | None, new_commit: Callable[[], TableCommit]
) -> Snapshot | None:
    """Delete the rows with these primary keys, or those that match; None where there is no such row."""
    if (keys is None) == (where is None):
        raise InvalidError("delete needs keys or a condition, and not both; where='true' deletes every row")
    check_condition(where)
    with noticing_drop(home):
        schema = latest_schema(home)
        check_usable(schema)
        check_writable(schema)
        commit = new_commit()
        if not schema.primary_keys:
            if keys is not None:
                raise InvalidError("the table has no primary key: delete by a condition, where=")
            return RowDeletion(home, lambda newest: parsed_condition(where, newest), commit).run()
        rows_of = (
            matching_rows(home, lambda newest: parsed_condition(where, newest))
            if keys is None
            else keyed_rows(home, keys)
        )
        return KeyedDeletion(home, commit, rows_of).run()
