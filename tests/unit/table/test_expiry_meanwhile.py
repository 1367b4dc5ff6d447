"""Rule 20: a version that expires during an operation is reported as expired, or the operation is retried; never corruption.

Between any two storage calls of each operation another writer replaces all files and expires everything older.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from lakelet.errors import CommitUnknownError, CorruptionError, NotFoundError
from lakelet.table import Table
from tests.unit.stopped_table import (
    CHANGES,
    LAYOUTS,
    READS,
    START,
    Rows,
    calls_of,
    changes_,
    count_,
    files_,
    get_,
    some_of,
    staged,
    write_,
)


def check_change(layout: str, change: Callable[[Table], Rows], at: int) -> None:
    """A change under which everything is replaced and expired before its storage call number `at`."""
    stage = staged(layout)
    stage.store.calls, stage.store.at, stage.store.meanwhile = 0, at, stage.replace_and_expire
    try:
        allowed = [change(stage.table)]
    except CommitUnknownError:
        # Its own snapshot was expired between its creation and the look at it: nobody can tell, but it is all or nothing.
        allowed = [change(staged(layout).table), START]
    assert stage.rows() in allowed, at


def check_read(layout: str, read: Callable[[Table], object], at: int) -> None:
    """A read under which everything is replaced and expired before its storage call number `at`."""
    stage = staged(layout)
    expected = read(staged(layout).table)
    stage.store.calls, stage.store.at, stage.store.meanwhile = 0, at, stage.replace_and_expire
    told = ""
    try:
        assert read(stage.table) == expected, at
    except NotFoundError as error:
        told = str(error)
    assert re.search("^$|was expired while|exist$", told), (at, told)


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_20_changes_begin_again_when_their_version_expires(layout: str, change: Callable[[Table], Rows]) -> None:
    for at in some_of(calls_of(layout, change)):
        check_change(layout, change, at)


@pytest.mark.parametrize("layout", ["keyed", "deletion vectors"])
def test_20_a_snapshot_that_expires_before_it_is_looked_at_is_unknown(layout: str) -> None:
    """Also that of the compaction without which the rows of a write stay hidden."""
    stage = staged(layout)
    created: list[int] = []
    around = stage.store._around

    def noted(call: str, path: str, action: Callable[[], Any]) -> Any:
        if call == "put_if_absent" and "/snapshot/snapshot-" in path:
            created.append(stage.store.calls + 1)
        return around(call, path, action)

    stage.store._around = noted  # type: ignore[method-assign]
    stage.store.calls = 0
    write_(stage.table)
    assert len(created) == (2 if layout == "deletion vectors" else 1)
    for at in created:
        for after in (1, 2):
            check_change(layout, write_, at + after)


@pytest.mark.parametrize("read", READS, ids=lambda read: read.__name__)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_20_reads_tell_that_their_version_expired(layout: str, read: Callable[[Table], object]) -> None:
    for at in some_of(calls_of(layout, read)):
        check_read(layout, read, at)


@pytest.mark.parametrize("read", READS, ids=lambda read: read.__name__)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_live_file_that_is_missing_is_corruption(layout: str, read: Callable[[Table], object]) -> None:
    stage = staged(layout)
    found = [path for path, _ in stage.other.files()]
    stage.store.inner.delete(found)
    if read in (files_, count_, get_, changes_):
        return
    with pytest.raises(CorruptionError, match="missing"):
        read(stage.table)
