"""Real processes, really killed: the short form. The long one is tests/soak/test_kill_soak.py."""

from pathlib import Path

import pytest

from tests.crash.killing import LEAST_KILLS, kill_and_check
from tests.crash.killing_upserts import MODES, kill_upserts_and_check


def test_killed_writers_lose_and_double_nothing(tmp_path: Path) -> None:
    lives = kill_and_check(tmp_path / "warehouse", writers=2, seconds=5, seed=20260101)
    assert lives > LEAST_KILLS


@pytest.mark.deep
def test_writers_killed_more_often(tmp_path: Path) -> None:
    lives = kill_and_check(tmp_path / "warehouse", writers=2, seconds=12, seed=20260101)
    assert lives > LEAST_KILLS


@pytest.mark.sampled(at_most=1)
@pytest.mark.parametrize("mode", MODES)
def test_killed_upserts_have_their_effect_in_their_turn_or_none(tmp_path: Path, mode: str) -> None:
    lives = kill_upserts_and_check(tmp_path / "warehouse", mode, writers=2, seconds=6, seed=20260101)
    assert lives > LEAST_KILLS
