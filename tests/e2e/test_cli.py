"""The command line as people and scripts use it: real processes, a real folder, output and exit codes."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lakelet import connect

ORDERS = "lakelet_demo.orders"


def lakelet(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "lakelet", *arguments]
    wide = {**os.environ, "COLUMNS": "200"}
    return subprocess.run(command, capture_output=True, text=True, timeout=300, env=wide, check=False)


def printed(finished: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    assert finished.returncode == 0, finished.stderr
    return [json.loads(line) for line in finished.stdout.splitlines()]


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """A warehouse in which the demo ran, and what it showed."""
    warehouse = str(tmp_path_factory.mktemp("cli") / "warehouse")
    finished = lakelet("demo", "--engine", "local", "--rows", "2000", "--warehouse", warehouse)
    assert (finished.returncode, finished.stderr) == (0, "")
    return warehouse, finished.stdout


def test_the_demo_shows_every_step(demo: tuple[str, str]) -> None:
    warehouse, shown = demo
    steps = ["Ingest", "Upsert", "Compact", "Query", "Get", "Overwrite", "Delete", "Evolve", "Time travel", "Changes"]
    steps += ["Merge", "Fold", "Iceberg", "Writer", "Stream", "Pipeline", "Serve", "Check"]
    places = [shown.index(f"{number}. {step}") for number, step in enumerate(steps, 1)]
    assert places == sorted(places)
    assert "records: 2000" in shown
    assert "rows recovered: 3" in shown
    assert "Done." in shown
    shipments = connect(warehouse).table("lakelet_demo.shipments").scan().to_arrow().sort_by("shipment")
    assert shipments.column("item").to_pylist() == ["book", "desk", "chair"]
    orders = connect(warehouse).table(ORDERS)
    assert len(orders.snapshots()) == 7
    assert orders.scan(version=1).count() == 2000
    assert orders.scan(where="country = 'BR' AND amount < 100").count() == 0


@pytest.mark.deep
def test_the_demo_may_run_again(demo: tuple[str, str], tmp_path: Path) -> None:
    for rows in ("60", "70"):
        shown = printed(lakelet("demo", "--engine", "local", "--rows", rows, "--warehouse", str(tmp_path), "--json"))
        assert shown[0]["records"] == int(rows)
    assert connect(str(tmp_path)).table(ORDERS).scan(version=1).count() == 70


def test_tables(demo: tuple[str, str]) -> None:
    warehouse, _ = demo
    snapshot = connect(warehouse).table(ORDERS).latest_snapshot()
    assert snapshot is not None
    row = {
        "database": "lakelet_demo",
        "table": "orders",
        "snapshot": snapshot.id,
        "records": snapshot.total_record_count,
    }
    for arguments in ((), ("lakelet_demo",)):
        (found,) = printed(lakelet("tables", *arguments, "--warehouse", warehouse, "--json"))
        assert found["rows"][0] == row
        assert [other["table"] for other in found["rows"][1:]] == ["sales", "shipments", "totals", "visits", "best"]
    shown = lakelet("tables", "--warehouse", warehouse)
    assert shown.returncode == 0
    assert "orders" in shown.stdout
    assert str(snapshot.total_record_count) in shown.stdout


@pytest.mark.parametrize(
    ("what", "members", "words"),
    [
        ("schema", {"id", "column", "type", "default", "comment"}, ["order_id", "BIGINT NOT NULL", "DECIMAL(12, 2)"]),
        ("snapshots", {"snapshot", "kind", "time", "records", "change", "schema", "user"}, ["APPEND", "OVERWRITE"]),
        ("files", {"file", "rows", "bytes", "level", "schema"}, ["bucket-0"]),
    ],
)
def test_inspecting(demo: tuple[str, str], what: str, members: set[str], words: list[str]) -> None:
    warehouse, _ = demo
    found = printed(lakelet("inspect", ORDERS, what, "--warehouse", warehouse, "--json"))[0]
    assert ORDERS in found["title"]
    assert set(found["rows"][0]) == members
    shown = lakelet("inspect", ORDERS, what, "--warehouse", warehouse)
    assert shown.returncode == 0
    assert [word for word in words if word not in shown.stdout] == []


def test_what_there_is_none_of(demo: tuple[str, str]) -> None:
    warehouse, _ = demo
    for what in ("tags", "branches"):
        found = printed(lakelet("inspect", ORDERS, what, "--warehouse", warehouse, "--json"))
        assert found == [{"title": ORDERS, "rows": []}]
    assert printed(lakelet("inspect", ORDERS, "options", "--warehouse", warehouse, "--json")) == [
        {"title": ORDERS, "bucket": "2", "partition.legacy-name": "false"}
    ]


@pytest.mark.parametrize(
    ("arguments", "kind", "words"),
    [
        (("inspect", "lakelet_demo.none"), "NotFoundError", "table 'lakelet_demo.none' is not in"),
        (("inspect", "orders"), "NotFoundError", "there are lakelet_demo.orders"),
        (("tables", "none"), "NotFoundError", "database 'none' is not in"),
        (("tables", "--option", "s3.endpont=x"), "InvalidError", "s3.endpoint"),
    ],
)
def test_errors_end_with_1(demo: tuple[str, str], arguments: tuple[str, ...], kind: str, words: str) -> None:
    warehouse, _ = demo
    shown = lakelet(*arguments, "--warehouse", warehouse)
    assert (shown.returncode, shown.stdout) == (1, "")
    assert f"{kind}: " in shown.stderr
    assert words in " ".join(shown.stderr.split())
    as_json = lakelet(*arguments, "--warehouse", warehouse, "--json")
    assert as_json.returncode == 1
    reported = json.loads(as_json.stderr)
    assert reported["error"] == kind
    assert words in reported["message"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("inspekt", ORDERS),
        ("inspect", ORDERS, "colour"),
        ("demo", "--rows", "x"),
        ("demo", "--engine", "flink"),
        ("tables", "--option", "x"),
    ],
)
def test_senseless_command_lines_end_with_2(arguments: tuple[str, ...]) -> None:
    shown = lakelet(*arguments)
    assert (shown.returncode, shown.stdout) == (2, "")
    assert "Usage: lakelet" in shown.stderr


def test_help_and_the_installed_command(tmp_path: Path) -> None:
    script = Path(sys.executable).with_name("lakelet")
    shown = subprocess.run(
        [str(script), "--help"], capture_output=True, text=True, timeout=300, cwd=tmp_path, check=True
    )
    assert all(command in shown.stdout for command in ("demo", "tables", "inspect"))
    assert list(tmp_path.iterdir()) == []
