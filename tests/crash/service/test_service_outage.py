"""`lakelet serve` on S3 while the store hangs, is gone, and comes back: nothing is lost, health says so, rows go on."""

import os
from pathlib import Path

import pytest

from tests.crash.service.service_outage import GONE, HANGS, outlast_outage


@pytest.mark.parametrize("outage", [HANGS, GONE])
def test_rows_go_on_while_the_store_is_away(tmp_path: Path, outage: str) -> None:
    outlast_outage(tmp_path, outage, rows=12_000, least_seconds=3)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.skipif(not os.environ.get("LAKELET_SOAK"), reason="only in `make soak`")
@pytest.mark.parametrize("outage", [HANGS, GONE])
def test_a_minute_without_the_store(tmp_path: Path, outage: str) -> None:
    outlast_outage(tmp_path, outage, rows=200_000, least_seconds=60)
