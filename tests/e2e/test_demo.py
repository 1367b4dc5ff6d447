"""The demo on Spark as people run it: a real process, readable progress, nothing of Spark's own talk."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from lakelet import connect
from tests.spark.java import java_home

ORDERS = "lakelet_demo.orders"


def demo(warehouse: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "lakelet", "demo", "--warehouse", str(warehouse), *arguments]
    environment = {**os.environ, "COLUMNS": "200", **variables}
    return subprocess.run(command, capture_output=True, text=True, timeout=600, env=environment)


@pytest.mark.spark
def test_the_demo_loads_and_upserts_with_spark(tmp_path: Path) -> None:
    home = java_home()
    if home is None:
        pytest.skip("no Java 17 or later (make setup-java)")
    shown = demo(tmp_path, "--rows", "2000", JAVA_HOME=home)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "Starting Spark" in shown.stdout
    assert shown.stdout.count("Spark tasks: ") == 3
    assert "records: 2000" in shown.stdout
    assert "after: 2100" in shown.stdout
    assert "damaged: 0" in shown.stdout
    assert "batches, each committed once" in shown.stdout
    lake = connect(str(tmp_path))
    visits = lake.table("lakelet_demo.visits").scan().to_arrow().sort_by("visitor").column("page").to_pylist()
    assert visits == ["home", "basket", "offers", "home"]
    assert lake.table("lakelet_demo.returns").scan().count() == 50
    orders = connect(str(tmp_path)).table(ORDERS)
    assert len(orders.snapshots()) == 7
    changes = orders.changes(1, 2).column("_row_kind").to_pylist()
    assert {kind: changes.count(kind) for kind in set(changes)} == {"-U": 200, "+U": 200, "+I": 100}


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"JAVA_HOME": "/nowhere"}, "Spark needs Java 17 or later"),
        ({"PATH": "/nowhere", "JAVA_HOME": ""}, "there is none at any place of PATH"),
    ],
)
def test_without_java_one_line_says_what_to_do(tmp_path: Path, variables: dict[str, str], words: str) -> None:
    shown = demo(tmp_path, "--json", **variables)
    assert (shown.returncode, shown.stdout) == (1, "")
    (line,) = shown.stderr.splitlines()
    said = json.loads(line)
    assert said["error"] == "UnavailableError"
    assert words in said["message"]
    assert "--engine local" in said["message"]


def test_without_pyspark_one_line_says_what_to_do(tmp_path: Path) -> None:
    # A None among the modules makes an import fail as if the package were not there.
    text = (
        "import importlib.util, sys; real = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda name, *rest: None if name == 'pyspark' else real(name, *rest)\n"
        "from lakelet.cli import main; assert 'pyspark' not in sys.modules\n"
        f"sys.exit(main(['demo', '--warehouse', {str(tmp_path)!r}]))"
    )
    shown = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=600)
    assert shown.returncode == 1
    assert "pip install 'lakelet[spark]'" in " ".join(shown.stderr.split())
    assert "Traceback" not in shown.stderr
