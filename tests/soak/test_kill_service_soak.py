"""`lakelet serve`, killed a hundred times under load."""

import os
from pathlib import Path

import pytest

from tests.crash.service.killing_service import kill_service_and_check


@pytest.mark.soak
@pytest.mark.timeout(7200)
@pytest.mark.skipif(not os.environ.get("LAKELET_SOAK"), reason="only in `make soak`")
@pytest.mark.parametrize("seed", range(5))
def test_a_hundred_kills_lose_nothing(tmp_path: Path, seed: int) -> None:
    kill_service_and_check(tmp_path, rows=400_000, kills=20, seed=seed)
