"""Rollout by a hash of the table's name."""

import subprocess
import sys

from lakelet.cache.keys import TableCacheKey
from lakelet.cache.upkeep.rollout import in_rollout, place

TABLES = [TableCacheKey("lakelet", "shop", f"t{number}") for number in range(1000)]


def test_the_percentage_is_about_that_of_the_tables() -> None:
    assert not any(in_rollout(table, 0) for table in TABLES)
    assert all(in_rollout(table, 100) for table in TABLES)
    assert 200 < sum(in_rollout(table, 25) for table in TABLES) < 300


def test_more_percent_lose_no_table() -> None:
    for table in TABLES[:100]:
        taken = [in_rollout(table, percentage) for percentage in range(101)]
        assert taken == sorted(taken)


def test_all_branches_are_served_alike() -> None:
    assert all(place(table) == place(table.on_branch("dev")) for table in TABLES)


def test_every_process_says_the_same() -> None:
    code = (
        "from tests.unit.cache.upkeep.test_rollout import TABLES, place; print([place(table) for table in TABLES[:20]])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == str([place(table) for table in TABLES[:20]])
