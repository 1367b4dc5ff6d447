"""Sessions that nobody prepared: no PYSPARK_PYTHON, another python3 on the path, a cluster without Lakelet."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lakelet.errors import InvalidError
from lakelet.spark import workers
from tests.spark.java import REPOSITORY, java_home, spark_environment

pytestmark = [pytest.mark.spark]
PROGRAM = Path(__file__).parents[1] / "programs" / "plain_session.py"


def test_a_plain_script_in_an_environment_that_is_not_activated(tmp_path: Path) -> None:
    home = java_home()
    assert home is not None
    # A python3 that can run nothing.
    other = tmp_path / "bin" / "python3"
    other.parent.mkdir()
    other.write_text("#!/bin/sh\necho 'the wrong python3' >&2\nexit 1\n")
    other.chmod(0o755)
    unset = ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "VIRTUAL_ENV", "PYTHONPATH")
    variables = {name: value for name, value in {**os.environ, **spark_environment(home)}.items() if name not in unset}
    variables |= {"PATH": f"{other.parent}:/usr/bin:/bin", "PYTHONPATH": str(REPOSITORY / "src")}
    run = subprocess.run(
        [sys.executable, PROGRAM, str(tmp_path / "wh")], env=variables, capture_output=True, text=True, timeout=1500
    )
    assert run.returncode == 0, run.stderr[-3000:]
    lines = dict(line.split(" ", 1) for line in run.stdout.splitlines() if " " in line)
    assert lines["rows"] == "[(1, 'a'), (2, 'b')]"
    assert lines["streamed"] == "[(1, 'a'), (2, 'b'), (3, 'c')] 3"
    for name, told in (("option", "unknown table option 'bogus'"), ("table", "'d.nope'"), ("write", "lakelet.spark")):
        assert told in lines[name]
        assert "Traceback" not in lines[name]


class Cluster:
    """A session on a cluster whose workers answer the probe so."""

    def __init__(self, answer: list[tuple[bool, str]] | Exception) -> None:
        self.sparkContext = self
        self.master = "spark://somewhere:7077"
        self.pythonExec = "python3"
        self.jobs = 0
        self._answer = answer

    def range(self, *_: int) -> Cluster:
        return self

    def mapInArrow(self, *_: Any) -> Cluster:
        return self

    def collect(self) -> list[tuple[bool, str]]:
        self.jobs += 1
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer


def test_a_cluster_is_looked_at_once() -> None:
    cluster: Any = Cluster([(True, "/opt/python3")])
    workers.prepare_workers(cluster)
    workers.prepare_workers(cluster)
    assert (cluster.jobs, cluster.pythonExec) == (1, "python3")


@pytest.mark.parametrize(
    ("answer", "told"),
    [([(False, "/usr/bin/python3")], "run /usr/bin/python3, which has no Lakelet"), (OSError("a\nb"), r"\(b\)")],
)
def test_a_cluster_without_lakelet_is_told_in_one_line(answer: Any, told: str) -> None:
    cluster: Any = Cluster(answer)
    with pytest.raises(InvalidError, match=f"{told}.*PYSPARK_PYTHON") as caught:
        workers.prepare_workers(cluster)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("chosen", [None, "/opt/other/python"])
def test_on_this_machine_the_drivers_python_runs_tasks_unless_one_was_chosen(
    chosen: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    local: Any = Cluster([(True, "/opt/other/python")])
    local.master, local.pythonExec = "local[2]", chosen or "python3"
    if chosen is not None:
        monkeypatch.setenv("PYSPARK_PYTHON", chosen)
    workers.prepare_workers(local)
    assert local.pythonExec == (chosen or sys.executable)
    assert local.jobs == (0 if chosen is None else 1)


def test_without_pyspark_the_extra_is_named() -> None:
    program = "import sys; sys.modules['pyspark'] = None; import lakelet.spark"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=1500)
    assert run.stderr.splitlines()[-1].endswith("pip install 'lakelet[spark]'")
