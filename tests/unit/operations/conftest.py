"""A table `d.t` in memory with three versions, whose clock a test sets."""

import pytest

from lakelet.catalog.lake import Lake
from lakelet.storage.memory import MemoryStore
from lakelet.table import Table
from tests.unit.versioned_table import SetClock, table_on


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def table(store: MemoryStore, clock: SetClock) -> Table:
    return table_on(store, clock, 3)


@pytest.fixture
def lake(store: MemoryStore, clock: SetClock, table: Table) -> Lake:
    return Lake(store, clock=clock)
