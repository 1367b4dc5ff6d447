"""Read requests of jobs, by the callers' arguments."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import lakelet
from lakelet.errors import NotFoundError
from lakelet.spark.jobs.copy_table import copy_table
from lakelet.spark.jobs.read_request import ReadArguments, ReadRequest


def test_a_scan_of_the_version_that_is_named(tmp_path: Path) -> None:
    lake = lakelet.connect(str(tmp_path))
    lake.create_database("shop")
    table = lake.create_table("shop.orders", [("id", "BIGINT"), ("dt", "STRING")])
    table.write([{"id": 1, "dt": "a"}, {"id": 2, "dt": "b"}])
    table.tags.create("first")
    table.write([{"id": 3, "dt": "a"}])
    given: ReadArguments = {"columns": ["id"], "where": "dt = 'a'"}
    assert ReadRequest(**given).scan(tmp_path, "shop.orders").to_arrow().to_pylist() == [{"id": 1}, {"id": 3}]
    assert replace(ReadRequest(**given), tag="first").scan(tmp_path, "shop.orders").to_arrow().to_pylist() == [
        {"id": 1}
    ]
    with pytest.raises(NotFoundError, match="branch 'b'"):
        ReadRequest(branch="b").scan(tmp_path, "shop.orders")


def test_unknown_arguments_of_a_copy_are_refused(tmp_path: Path) -> None:
    wrong: dict[str, Any] = {"tagg": "x"}
    with pytest.raises(TypeError, match="tagg"):
        copy_table(None, tmp_path, "a.b", "a.c", **wrong)  # type: ignore[arg-type]
