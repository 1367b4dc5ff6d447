"""Writers killed for a long time. `make soak` runs it for LAKELET_SOAK_SECONDS (ten minutes unless said otherwise)."""

import os
from pathlib import Path

import pytest

from tests.crash.killing import LEAST_KILLS, kill_and_check
from tests.crash.killing_upserts import MODES, kill_upserts_and_check

SEEDS = (1, 2, 3)


@pytest.mark.soak
@pytest.mark.skipif(not os.environ.get("LAKELET_SOAK"), reason="only in `make soak`")
@pytest.mark.parametrize("seed", SEEDS)
def test_killed_writers_lose_and_double_nothing_for_long(tmp_path: Path, seed: int) -> None:
    seconds = float(os.environ.get("LAKELET_SOAK_SECONDS", "600")) / len(SEEDS)
    lives = kill_and_check(tmp_path / "warehouse", writers=3, seconds=seconds, seed=seed)
    assert lives > LEAST_KILLS


@pytest.mark.soak
@pytest.mark.skipif(not os.environ.get("LAKELET_SOAK"), reason="only in `make soak`")
@pytest.mark.parametrize("mode", MODES)
def test_killed_upserts_have_their_effect_in_their_turn_for_long(tmp_path: Path, mode: str) -> None:
    seconds = float(os.environ.get("LAKELET_SOAK_SECONDS", "600")) / len(MODES)
    lives = kill_upserts_and_check(tmp_path / "warehouse", mode, writers=3, seconds=seconds, seed=4)
    assert lives > LEAST_KILLS
