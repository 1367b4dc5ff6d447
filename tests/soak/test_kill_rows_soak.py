"""A row writer, killed two hundred times."""

import os
from pathlib import Path

import pytest

from tests.crash.killing_rows import kill_rows_and_check


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.skipif(not os.environ.get("LAKELET_SOAK"), reason="only in `make soak`")
def test_two_hundred_kills_lose_nothing(tmp_path: Path) -> None:
    kill_rows_and_check(tmp_path, rounds=200, seed=1)
