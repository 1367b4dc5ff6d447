"""Expiry and drops before every storage call of every operation."""

import os
from collections.abc import Callable
from typing import Any

import pytest

from lakelet.table import Table
from tests.unit.stopped_table import CHANGES, LAYOUTS, READS, calls_of
from tests.unit.table.test_dropped_meanwhile import WRITES, check_dropped
from tests.unit.table.test_expiry_meanwhile import check_change, check_read

pytestmark = [pytest.mark.soak, pytest.mark.skipif(not os.environ.get("LAKELET_SOAK"), reason="only in `make soak`")]
CASES = [
    *((check_change, change) for change in CHANGES),
    *((check_read, read) for read in READS),
    *((check_dropped, write) for write in WRITES),
]


@pytest.mark.parametrize(("check", "run"), CASES, ids=lambda one: one.__name__)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_at_every_call(layout: str, check: Callable[[str, Any, int], None], run: Callable[[Table], Any]) -> None:
    for at in range(1, calls_of(layout, run) + 1):
        check(layout, run, at)
