"""The simulator, and the picture in the docs: it is what the policy does today."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from lakelet.lsm.universal import UniversalPolicy

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def simulator() -> Iterator[ModuleType]:
    name = "simulate_compaction"
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[name]


def test_the_picture_in_the_docs_is_up_to_date(simulator: ModuleType) -> None:
    drawn = simulator.draw(simulator.simulate(UniversalPolicy(), simulator.Load()))
    command = "run scripts/simulate_compaction.py --picture docs/compaction.svg"
    assert simulator.PICTURE.read_text(encoding="utf-8") == drawn, command


def test_all_that_was_flushed_is_still_there_and_was_written_as_often_as_said(simulator: ModuleType) -> None:
    outcome = simulator.simulate(UniversalPolicy(), simulator.Load(commits=200, jitter=0.5, seed=3))
    end = 201
    alive = [life for life in outcome.lives if life.died == end]
    assert sum(life.size for life in alive) == pytest.approx(outcome.flushed[-1])
    assert sum(life.size for life in outcome.lives) == pytest.approx(outcome.written[-1])
    assert len([life for life in outcome.lives if life.level == 0]) == 200


def test_upserts_on_few_keys_do_not_grow_beyond_them(simulator: ModuleType) -> None:
    outcome = simulator.simulate(UniversalPolicy(), simulator.Load(commits=300, keys=20))
    assert max(life.size for life in outcome.lives) <= 20
    lines = list(simulator.report(outcome))
    assert lines[-1].startswith("300 commits")
    assert len(lines) == 12
