"""The forks that stand for Spark's Python processes in the tests are like the processes they stand for."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from tests.spark.warm_python import warm_processes

PROGRAM = """\
import json, os, sys, time
imported = "statistics" in sys.modules
print(json.dumps([sys.argv[1:], os.environ["SAID"], os.getcwd(), time.tzname[0], imported, __name__]), flush=True)
if sys.argv[1:] == ["wait"]:
    print(os.getpid(), flush=True)
    time.sleep(600)
sys.exit(int(sys.stdin.readline()))
"""


@pytest.fixture(scope="module")
def variables() -> Iterator[dict[str, str]]:
    with warm_processes(["statistics"]) as forked:
        yield {**os.environ, **forked, "SAID": "this", "TZ": "Asia/Kolkata"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "asked.py").write_text(PROGRAM)
    return tmp_path


def started(variables: dict[str, str], folder: Path, *arguments: str) -> subprocess.Popen[str]:
    command = [variables["PYSPARK_PYTHON"], *arguments]
    return subprocess.Popen(
        command, cwd=folder, env=variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def test_a_module_runs_with_what_it_was_given_and_everything_imported(variables: dict[str, str], folder: Path) -> None:
    with started(variables, folder, "-m", "asked", "a", "b") as process:
        told, _ = process.communicate("7\n")
    assert told == f'[["a", "b"], "this", "{folder}", "IST", true, "__main__"]\n'
    assert process.returncode == 7


def test_a_fork_ends_with_the_program_that_asked_for_it(variables: dict[str, str], folder: Path) -> None:
    with started(variables, folder, "-m", "asked", "wait") as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert int(process.stdout.readline()) != process.pid
        process.kill()
        # The output ends when the last process that holds it has ended.
        assert process.stdout.read() == ""


def test_anything_else_runs_as_ever(variables: dict[str, str], folder: Path) -> None:
    with started(variables, folder, "-c", "import sys; print('statistics' in sys.modules)") as process:
        assert process.communicate("")[0] == "False\n"
    with started({**variables, "LAKELET_WARM_PYTHON": str(folder / "gone")}, folder, "-m", "asked") as process:
        assert process.communicate("0\n")[0].endswith('false, "__main__"]\n')
    assert process.returncode == 0
