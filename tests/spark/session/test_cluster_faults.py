"""Speculation and lost executors, which need more than one host: a standalone cluster with two loopback addresses."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.spark.clusters import standalone, submit
from tests.spark.java import REPOSITORY
from tests.spark.programs import faulty_write

# A cluster starts five processes, which a busy machine takes its time for.
pytestmark = pytest.mark.spark

PATH = os.pathsep.join([str(REPOSITORY / "src"), str(REPOSITORY)])
SPECULATING = {
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.multiplier": "1.5",
    "spark.speculation.quantile": "0.5",
    "spark.executorEnv.PYTHONPATH": PATH,
    # The worker of an attempt that lost is killed at once.
    "spark.python.task.killTimeout": "100ms",
}


def struck_report(java: str, folder: Path, program: str) -> dict[str, Any]:
    """What a program that is struck by faults on a cluster of two hosts tells in the end, by the name of the case."""
    with standalone(java, folder) as master:
        ended = submit(
            java,
            folder,
            master=master,
            program=Path(program),
            arguments=[str(folder)],
            config=SPECULATING,
            variables={"PYTHONPATH": PATH},
        )
    assert ended.returncode == 0, ended.stdout[-2000:] + ended.stderr[-2000:]
    report: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    return report


@pytest.mark.deep
def test_overtaken_attempts_and_lost_executors_change_nothing(java: str, tmp_path: Path) -> None:
    report = struck_report(java, tmp_path, faulty_write.__file__)
    assert set(report) == set(faulty_write.CASES)
    rows = faulty_write.ROWS
    for name, found in report.items():
        assert found["struck"] == 1, name
        assert (found["rows"], found["keys"], found["sum"]) == (rows, rows, rows * (rows - 1)), name
        assert found["snapshots"] == [1], name
        assert found["missing"] == [], name
    # The hanging attempt had written its file before the copy began, so the driver found it.
    assert report["hang"]["unlisted"] == []
