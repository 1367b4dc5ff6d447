"""Iceberg inserts on a standalone cluster with two hosts, where attempts are overtaken and executors die."""

from pathlib import Path

import pytest

from tests.spark.programs import faulty_iceberg_write
from tests.spark.session.test_cluster_faults import struck_report

# A cluster starts five processes, which a busy machine takes its time for.
pytestmark = pytest.mark.spark


@pytest.mark.deep
def test_overtaken_attempts_and_lost_executors_change_nothing(java: str, tmp_path: Path) -> None:
    report = struck_report(java, tmp_path, faulty_iceberg_write.__file__)
    assert set(report) == set(faulty_iceberg_write.CASES)
    rows = faulty_iceberg_write.ROWS
    for name, found in report.items():
        assert found["struck"] == 1, name
        assert (found["rows"], found["ids"], found["sum"]) == (rows, rows, rows * (rows - 1)), name
        assert found["snapshots"] == 1, name
    # The hanging attempt had written its files before the copy began, so the driver found them.
    assert report["hang"]["unlisted"] == []
