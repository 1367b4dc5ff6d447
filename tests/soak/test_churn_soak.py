"""Nodes that join, leave and die for minutes, under writes and queries that are compared with what was acknowledged."""

import os
from pathlib import Path

import pytest

from tests.property.service.churn.churn_model import churn


@pytest.mark.soak
@pytest.mark.timeout(7200)
@pytest.mark.skipif(not os.environ.get("LAKELET_SOAK"), reason="only in `make soak`")
@pytest.mark.parametrize("ahead_ms", [0, 3_600_000])
@pytest.mark.parametrize("seed", range(3))
def test_answers_of_a_cluster_whose_nodes_come_and_go(tmp_path: Path, seed: int, ahead_ms: int) -> None:
    model = churn(tmp_path, seed, 150.0, nodes=4, ahead_ms=ahead_ms)
    assert model.answers > model.warned
