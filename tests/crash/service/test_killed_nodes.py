"""Nodes of a cluster killed under load: acknowledged rows are there once, whichever node took them."""

from pathlib import Path

import pytest

from tests.crash.service.killing_cluster import kill_nodes_and_check
from tests.services.minio import RestartableMinio
from tests.services.redis import RedisService


def test_killed_nodes_lose_no_acknowledged_row_and_double_none(tmp_path: Path, redis_service: RedisService) -> None:
    kill_nodes_and_check(tmp_path, redis_service, rows=6_000, kills=2, seed=20260131)


@pytest.mark.deep
def test_more_kills_and_rows(tmp_path: Path, redis_service: RedisService) -> None:
    kill_nodes_and_check(tmp_path, redis_service, rows=12_000, kills=3, seed=20260131)


@pytest.mark.deep
@pytest.mark.timeout(3600)
def test_nor_does_a_warehouse_that_is_gone_for_moments(tmp_path: Path, redis_service: RedisService) -> None:
    with RestartableMinio(tmp_path / "minio") as minio:
        kill_nodes_and_check(tmp_path, redis_service, rows=100_000, kills=6, seed=20260201, minio=minio)
