"""Check tables for files that are missing, unreadable or differ from their metadata."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from lakelet.model.damage import CheckProgress, CheckReport
from lakelet.table import Table


@dataclass(frozen=True, slots=True)
class Check:
    """The scope of a check: all versions of all branches, or one version, or those of a branch; `quick` decodes no data file."""

    version: int | None = None
    tag: str | None = None
    branch: str | None = None
    quick: bool = False


@dataclass(frozen=True, slots=True)
class CheckedTable:
    """The result of the check of one table."""

    table: str
    report: CheckReport


def check(
    tables: Iterable[Table], request: Check, progress: Callable[[CheckProgress], None] | None = None
) -> tuple[CheckedTable, ...]:
    """Checks tables one by one; `progress` is called as files of a table are checked."""
    return tuple(CheckedTable(table.name, _checked(table, request, progress)) for table in tables)


def _checked(table: Table, request: Check, progress: Callable[[CheckProgress], None] | None) -> CheckReport:
    return table.check(
        version=request.version, tag=request.tag, branch=request.branch, quick=request.quick, progress=progress
    )
