"""Real processes, really killed: the short form. The long one is tests/soak/test_kill_soak.py."""

from pathlib import Path

from tests.crash.killing import LEAST_KILLS, kill_and_check


def test_killed_writers_lose_and_double_nothing(tmp_path: Path) -> None:
    lives = kill_and_check(tmp_path / "warehouse", writers=2, seconds=12, seed=20260101)
    assert lives > LEAST_KILLS
