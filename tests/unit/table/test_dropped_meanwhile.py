"""A table that is dropped during a write: the writer reports it, and nothing of the table is recreated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from lakelet.catalog.lake import Lake
from lakelet.errors import NotFoundError
from lakelet.table import Table
from tests.unit.stopped_table import CHANGES, LAYOUTS, calls_of, rows, some_of, staged


def two_phases(table: Table) -> None:
    """Rows in, messages, a commit; or what is left to do where that fails."""
    write = table.new_write()
    try:
        write.write(rows((5, 5), (20, 5)))
        messages = write.prepare_commit()
        table.new_commit("job", 1).commit(messages)
    except NotFoundError:
        write.abort()
        raise


def commit_elsewhere(table: Table) -> None:
    """Messages that somebody else commits, and aborts where that fails."""
    commit = table.new_commit("job", 1)
    write = table.new_write()
    write.write(rows((5, 5), (20, 5)))
    messages = write.prepare_commit()
    try:
        commit.commit(messages)
    except NotFoundError:
        commit.abort(messages)
        raise


def tag(table: Table) -> None:
    table.tags.create("t")


WRITES = (*CHANGES, two_phases, commit_elsewhere, tag)


def check_dropped(layout: str, write: Callable[[Table], Any], at: int) -> None:
    """A write whose table is dropped before its storage call number `at`."""
    stage = staged(layout)
    lake = Lake(stage.store.inner, clock=stage.table.home.clock)
    stage.store.calls, stage.store.at, stage.store.meanwhile = 0, at, lambda: lake.drop_table("d.t")
    told = "was dropped while"
    try:
        write(stage.table)
        told = ""
    except NotFoundError as error:
        told = str(error)
    assert told == "" or "was dropped while" in told or "it has no schema" in told, (at, told)
    left = [info.path for info in stage.store.inner.list("d.db")]
    assert (left, stage.store.inner.list_folder("d.db").folders) == ([], ()), (at, told, left)
    lake.create_table("d.t", [("id", "BIGINT")])


@pytest.mark.parametrize("write", WRITES, ids=lambda write: write.__name__)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_nothing_is_left_of_a_table_that_is_dropped_under_a_writer(layout: str, write: Callable[[Table], Any]) -> None:
    for at in some_of(calls_of(layout, write)):
        check_dropped(layout, write, at)
