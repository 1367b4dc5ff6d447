"""Consumers as operations."""

import re

import pytest

from lakelet.errors import NotFoundError
from lakelet.operations.consumers import ClearConsumers, ResetConsumer, clear_consumers, reset_consumer
from lakelet.table import Table


def test_a_consumer_is_moved_and_deleted(table: Table) -> None:
    reset_consumer(table, ResetConsumer("c", 2))
    assert table.consumers.get("c") == 2
    reset_consumer(table, ResetConsumer("c"))
    with pytest.raises(NotFoundError, match=r"d\.t has no consumer 'c'; there is none"):
        reset_consumer(table, ResetConsumer("c"))


def test_consumers_are_cleared_by_patterns(table: Table) -> None:
    for name in ("job-1", "job-2", "other"):
        reset_consumer(table, ResetConsumer(name, 1))
    request = ClearConsumers(re.compile("job-.*"), re.compile(".*2"))
    assert clear_consumers(table, request) == ("job-1",)
    assert clear_consumers(table, ClearConsumers()) == ("job-2", "other")
