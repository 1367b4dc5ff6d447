"""A table as a Spark job sees it: opened once on the driver, sent to executors as a small frozen value.

`options` may hold what `lakelet.connect` takes (such as `s3.endpoint`) and table options that hold for this job alone.
Credentials travel inside pickled values only; no plan and no log shows them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace

from lakelet.catalog import connect
from lakelet.commit.schemas import latest_schema, schema_ids
from lakelet.errors import InvalidError, NotFoundError
from lakelet.model.schema import TableSchema
from lakelet.options import check_options
from lakelet.options.connection import CONNECTION_OPTIONS
from lakelet.storage.home import TableHome
from lakelet.table import Table

_CONNECTION = frozenset(option.name for option in CONNECTION_OPTIONS)


@dataclass(frozen=True, slots=True)
class OpenedTable:
    """Where the table is, on which branch, and the options that this job adds to its own."""

    name: str
    home: TableHome
    extra: Mapping[str, str]

    @property
    def table(self) -> Table:
        """The table for what a driver does by itself."""
        return Table(self.name, self.home)

    def schema(self) -> TableSchema:
        """The newest schema with the job's options."""
        return self.with_options(latest_schema(self.home))

    def with_options(self, schema: TableSchema) -> TableSchema:
        """A schema of the table with the job's options."""
        return replace(schema, options={**schema.options, **self.extra}) if self.extra else schema


def open_table(
    warehouse: str | os.PathLike[str],
    name: str,
    options: Mapping[str, str] | None = None,
    branch: str | None = None,
) -> OpenedTable:
    """The table of that name; NotFoundError where it or the branch is not there."""
    given = {str(key): str(value) for key, value in (options or {}).items()}
    connection = {key: value for key, value in given.items() if key in _CONNECTION}
    extra = {key: value for key, value in given.items() if key not in _CONNECTION}
    check_options(extra)
    lake = connect(os.fspath(warehouse), connection)
    table = lake.table(name)
    home = table.home
    if branch is not None:
        home = home.on_branch(branch)
        if not schema_ids(home):
            there = ", ".join(table.branch_names()) or "none"
            raise NotFoundError(f"branch {branch!r} is not in {name}; there are {there}")
    if home.store.location.startswith("memory:"):
        raise InvalidError(f"{home.store.location}: Spark's executors cannot reach the memory of this process")
    return OpenedTable(name, home, extra)
