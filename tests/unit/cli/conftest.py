"""A small shop in memory, and commands run in this process."""

import json
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from lakelet import Lake, connect
from lakelet.cli import main


@dataclass(frozen=True)
class Ran:
    """How a command ended and what it wrote."""

    code: int
    out: str
    err: str

    @property
    def objects(self) -> list[dict[str, Any]]:
        assert (self.code, self.err) == (0, "")
        return [json.loads(line) for line in self.out.splitlines()]


Run = Callable[..., Ran]


@pytest.fixture
def warehouse(monkeypatch: pytest.MonkeyPatch) -> str:
    location = f"memory://{uuid.uuid4()}"
    monkeypatch.setenv("LAKELET_WAREHOUSE", location)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("NO_COLOR", "1")
    return location


@pytest.fixture
def run(warehouse: str, capsys: pytest.CaptureFixture[str]) -> Run:
    def ran(*arguments: str) -> Ran:
        capsys.readouterr()
        code = main(arguments)
        return Ran(code, *capsys.readouterr())

    return ran


@pytest.fixture
def shop(warehouse: str) -> Lake:
    """`shop.orders` with four snapshots, a tag at the second and a branch that begins there."""
    lake = connect(warehouse)
    lake.create_database("shop")
    orders = lake.create_table(
        "shop.orders",
        [("id", "BIGINT NOT NULL"), ("dt", "STRING NOT NULL"), ("amount", "DECIMAL(10, 2)"), ("note", "STRING")],
        primary_key=["id", "dt"],
        partitioned_by=["dt"],
        options={"bucket": "1"},
        comment="what was sold",
    )
    orders.write([{"id": number, "dt": "a", "amount": None, "note": f"n{number}"} for number in range(3)])
    orders.write([{"id": 10, "dt": "b", "amount": None, "note": None}])
    orders.tags.create("eod")
    orders.branches.create("dev", tag="eod")
    orders.write([{"id": 1, "dt": "a", "amount": None, "note": "again"}])
    orders.compact(full=True)
    return lake
