"""The same over Spark Connect, where neither a JVM nor a SparkContext can be reached."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.spark.java import REPOSITORY, spark_environment
from tests.spark.warm_python import warm_processes

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def found(java: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What tests/spark/connect_session.py came to: the server takes long to start, so all is done by one."""
    folder: Path = tmp_path_factory.mktemp("connect")
    with warm_processes() as forked:
        run = subprocess.run(
            [sys.executable, "-m", "tests.spark.connect_session", str(folder / "lake")],
            env={**os.environ, **spark_environment(java), **forked, "SPARK_TESTING": "1"},
            cwd=REPOSITORY,
            capture_output=True,
            text=True,
            timeout=1700,
        )
    assert run.returncode == 0, run.stderr[-5000:]
    result: dict[str, Any] = json.loads(run.stdout.strip().splitlines()[-1])
    return result


def test_the_session_is_one_over_connect(found: dict[str, Any]) -> None:
    assert found["connect"] is True


def test_the_source_is_found_and_can_be_registered(found: dict[str, Any]) -> None:
    assert (found["format"], found["registered"]) == (2, 2)


def test_tables_and_views(found: dict[str, Any]) -> None:
    assert found["table"] == ["Ann", "Bea"]
    assert found["where"] == 2
    assert found["views"] == ["orders", "people"]
    assert found["view"] == "Bea"


def test_sql_leaves_no_views_behind(found: dict[str, Any]) -> None:
    assert found["sql"] == [["Bea", "{x}"]]
    assert found["left over"] == []


def test_writes(found: dict[str, Any]) -> None:
    assert found["insert"] == [[3, 1]]
    assert found["write"] == [2, 3]
    assert found["source write"] == 5


def test_errors_are_those_of_lakelet(found: dict[str, Any]) -> None:
    assert found["error"].startswith("NotFoundError: table 'shop.nope' is not in")
    assert "1 row with the primary key of another row" in found["bad rows"]


def test_iceberg_tables(found: dict[str, Any]) -> None:
    assert found["iceberg"] == [30, 3, 1, 3]


def test_a_stream_is_applied_once(found: dict[str, Any]) -> None:
    rows, users, marks, refused = found["stream"]
    assert (rows, users, marks) == ([6, 3], ["job"], ["sink.json"])
    assert refused.startswith("InvalidError: commit_user: over Spark Connect")


def test_pipelines(found: dict[str, Any]) -> None:
    first, second, *counts = found["pipeline"]
    assert first == ["completed"] * 3
    assert second == ["completed"] * 3
    assert counts == [4, 1, 1, 1, [{"names": 4}]]


def test_change_events(found: dict[str, Any]) -> None:
    assert found["cdc"] == [3, 1, ["2"]]
