"""Nodes of a cluster, killed under load and maintained all the time."""

import os
from pathlib import Path

import pytest

from tests.crash.service.killing_cluster import kill_nodes_and_check
from tests.services.redis import RedisService


@pytest.mark.soak
@pytest.mark.timeout(7200)
@pytest.mark.skipif(not os.environ.get("LAKELET_SOAK"), reason="only in `make soak`")
@pytest.mark.parametrize("seed", range(3))
def test_nodes_that_are_killed_for_ten_minutes_lose_nothing(
    tmp_path: Path, redis_service: RedisService, seed: int
) -> None:
    kill_nodes_and_check(tmp_path, redis_service, rows=400_000, kills=20, seed=seed)
