"""Tables made from frames, and what objects say of themselves in one line."""

from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import lakelet
from lakelet.catalog.lake import Lake
from lakelet.errors import InvalidError
from lakelet.storage.memory import MemoryStore

ARROW = pa.table(
    {"id": pa.array([1, 2]), "name": pa.array(["a", "b"]), "at": pa.array([None, None], pa.timestamp("us"))}
)
FORMS: dict[str, Callable[[], Any]] = {
    "schema": lambda: ARROW.schema,
    "table": lambda: ARROW,
    "batch": lambda: ARROW.to_batches()[0],
    "reader": ARROW.to_reader,
    "pandas": ARROW.to_pandas,
    "polars": lambda: pl.from_arrow(ARROW),
    "lazy": lambda: pl.LazyFrame(ARROW),
}


@pytest.fixture
def lake() -> Lake:
    made = Lake(MemoryStore())
    made.create_database("d")
    return made


@pytest.mark.parametrize("form", FORMS)
def test_a_frame_gives_its_columns_and_keeps_its_rows(lake: Lake, form: str) -> None:
    frame = FORMS[form]()
    table = lake.create_table("d.t", frame, primary_key=["id"], options={"bucket": "1"})
    assert [(field.name, str(field.type)) for field in table.schema.fields][:2] == [
        ("id", "BIGINT NOT NULL"),
        ("name", "STRING"),
    ]
    assert table.latest_snapshot() is None
    if form != "schema":
        table.write(frame)
        assert table.scan().count() == 2


@pytest.mark.parametrize(
    "wrong", [pd.DataFrame({"a": [None]}), pd.Series([1]), pl.DataFrame({"a": [None]}), 7, "id BIGINT"]
)
def test_what_tells_no_columns_is_refused(lake: Lake, wrong: Any) -> None:
    with pytest.raises(InvalidError):
        lake.create_table("d.t", wrong)
    assert lake.tables("d") == []


def test_every_object_says_what_it_is_in_one_line_without_secrets(lake: Lake) -> None:
    opened = Lake(MemoryStore(), options={"s3.secret-key": "hidden"})
    wide = lake.create_table("d.wide", [(f"c{number}", "INT") for number in range(100)])
    table = lake.create_table("d.t", ARROW)
    snapshot = table.write(ARROW)
    shown = [
        opened,
        table,
        table.schema,
        wide.schema,
        table.scan(),
        snapshot,
        lake.sql("SELECT 1 AS x"),
        table.new_commit(),
    ]
    for text in map(repr, shown):
        assert "\n" not in text
        assert "hidden" not in text
        assert len(text) < 250
    assert repr(snapshot).startswith("Snapshot(1, APPEND, 20")


def test_the_version_is_that_of_the_package() -> None:
    assert lakelet.__version__ == version("lakelet")
