"""A pipeline whose process is killed, aimed at every window, and run again: its rows are those of an uninterrupted run."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.spark.java import java_home, spark_environment
from tests.spark.pipeline.conftest import Workshop

PROGRAM = Path(__file__).parent.parent / "programs" / "killed_pipeline.py"
SHOP = """\
name: shop
database: shop
sources:
  raw: {format: json, path: raw, schema: "id BIGINT, amount DOUBLE"}
  changes: {format: json, path: changes, schema: "id BIGINT, name STRING, gone BOOLEAN, at INT"}
tables:
  orders: {source: raw, expectations: {positive: {condition: amount > 0, action: quarantine}}}
  customers: {}
auto_cdc_flows:
  history: {target: customers, source: changes, keys: id, sequence_by: at, apply_as_deletes: gone, scd_type: 2}
materialized_views:
  totals: {sql: SELECT count(*) AS orders FROM orders}
"""
TABLES = ("orders", "orders_quarantine", "customers", "customers_deletes", "totals")


def fill(workshop: Workshop, part: int) -> None:
    first = part * 10
    amounts = [(first + n, -1.0 if n == 3 else float(n + 1)) for n in range(6)]
    workshop.raw(f"{part}.json", "".join(f'{{"id": {number}, "amount": {amount}}}\n' for number, amount in amounts))
    changes = [(n % 3, f"v{part}.{n}", n == 4, 100 - first + n) for n in range(6)]
    workshop.raw(
        f"{part}.json",
        "".join(
            f'{{"id": {key}, "name": "{name}", "gone": {str(gone).lower()}, "at": {at}}}\n'
            for key, name, gone, at in changes
        ),
        "changes",
    )


def contents(workshop: Workshop) -> dict[str, list[str]]:
    """All rows but for the moment at which they were set aside."""

    def shown(row: dict[str, Any]) -> str:
        return repr({name: value for name, value in row.items() if name != "quarantined_at"})

    return {name: sorted(map(shown, workshop.rows(name))) for name in TABLES}


@pytest.mark.sampled(at_most=3)
@pytest.mark.parametrize("point", ["1", "emptied", "3", "2", "4", "marked", "5"])
def test_a_killed_run_is_resumed(workshop: Workshop, tmp_path: Path, point: str) -> None:
    workshop.folder = tmp_path / "killed"
    workshop.folder.mkdir()
    whole = Workshop(workshop.spark, tmp_path / "whole")
    whole.folder.mkdir()
    for part in (0, 1):
        fill(whole, part)
        whole.run(SHOP)
    refreshes = not point.isdigit()
    fill(workshop, 0)
    workshop.run(SHOP)
    fill(workshop, 1)
    if refreshes:
        workshop.run(SHOP)
    home = java_home()
    assert home is not None
    command = [sys.executable, str(PROGRAM), str(workshop.folder / "shop.yaml"), str(workshop.folder / "lake"), point]
    ended = subprocess.run(
        [*command, *(["orders", "customers"] if refreshes else [])],
        env={**os.environ, **spark_environment(home)},
        capture_output=True,
        text=True,
        timeout=1500,
    )
    assert ended.returncode == -signal.SIGKILL, ended.stderr[-2000:]
    workshop.run(SHOP)
    assert contents(workshop) == contents(whole)
    workshop.run(SHOP)
    assert contents(workshop) == contents(whole)
