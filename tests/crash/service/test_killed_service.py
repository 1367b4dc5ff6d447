"""`lakelet serve` killed under load: acknowledged rows are there once, and no reader sees their number fall."""

from pathlib import Path

import pytest

from tests.crash.service.killing_service import kill_service_and_check


def test_a_killed_service_loses_no_acknowledged_row_and_doubles_none(tmp_path: Path) -> None:
    kill_service_and_check(tmp_path, rows=20_000, kills=3, seed=20260131, zone="America/St_Johns")


@pytest.mark.deep
def test_more_kills_and_rows(tmp_path: Path) -> None:
    kill_service_and_check(tmp_path, rows=100_000, kills=5, seed=20260131, zone="America/St_Johns")
