"""Random writes and queries while nodes join, leave and die, Redis is away or empty, and tables are compacted."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.property.service.churn.churn_model import churn
from tests.tiers.examples import FIRST_SEED

_SECONDS = 4.0
_HOUR_MS = 3_600_000


@pytest.mark.parametrize("ahead_ms", [0, pytest.param(_HOUR_MS, marks=pytest.mark.deep)])
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.deep) for seed in range(1, 5))])
def test_answers_have_every_acknowledged_row_once(tmp_path: Path, seed: int, ahead_ms: int) -> None:
    model = churn(tmp_path, FIRST_SEED + seed, _SECONDS, ahead_ms=ahead_ms)
    assert model.writes
    assert model.answers


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.deep) for seed in range(1, 5))])
def test_no_acknowledged_row_is_lost_with_the_disk_of_a_node(tmp_path: Path, seed: int) -> None:
    model = churn(tmp_path, FIRST_SEED + seed, _SECONDS, replicas=1)
    assert model.writes
    assert model.losses
