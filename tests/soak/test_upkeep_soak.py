"""Writers, compactors, readers and expiry at once, for ten minutes."""

import os
from pathlib import Path

import pytest

from tests.integration.test_concurrent_upkeep import KINDS, race

pytestmark = [pytest.mark.soak, pytest.mark.skipif(not os.environ.get("LAKELET_SOAK"), reason="only in `make soak`")]
SECONDS = 600.0


@pytest.mark.parametrize("kind", KINDS)
def test_all_at_once_for_long(tmp_path: Path, kind: str) -> None:
    race(tmp_path, kind, SECONDS / len(KINDS), writers=3)
