import sys

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

import lakelet
from lakelet import Lake
from lakelet.sql.engine.frames import Frames
from lakelet.storage.memory import MemoryStore

ARROW = pa.table({"id": [1, 2], "v": ["a", "b"]})


@pytest.fixture
def lake() -> Lake:
    found = Lake(MemoryStore())
    found.create_database("shop")
    found.create_table("shop.t", [("id", "BIGINT"), ("v", "STRING")]).write(ARROW)
    return found


@pytest.mark.parametrize(
    "frame",
    [
        ARROW,
        ARROW.to_batches()[0],
        ARROW.to_pandas(),
        pl.from_arrow(ARROW),
        pl.from_arrow(ARROW).lazy(),
        ds.dataset(ARROW),
    ],
    ids=["table", "batch", "pandas", "polars", "lazy", "dataset"],
)
def test_whatever_holds_rows_is_a_table(lake: Lake, frame: object) -> None:
    assert sorted(lake.sql("SELECT id, v FROM f", frames={"f": frame}).rows()) == [(1, "a"), (2, "b")]
    assert sorted(lake.sql("SELECT id, v FROM frame").rows()) == [(1, "a"), (2, "b")]


def test_readers_scans_and_results_are_tables(lake: Lake) -> None:
    assert len(lake.sql("SELECT * FROM f", frames={"f": ARROW.to_reader()}).rows()) == 2
    assert len(lake.sql("SELECT * FROM f", frames={"f": lake.table("shop.t").scan()}).rows()) == 2
    assert len(lake.sql("SELECT * FROM f", frames={"f": lake.sql("SELECT 1 AS a")}).rows()) == 1


def test_a_frame_that_is_handed_over_comes_before_a_table_and_a_variable_after_it(lake: Lake) -> None:
    lake.sql("USE shop")
    t = pa.table({"mine": [7]})
    assert t.num_rows == 1
    assert lake.sql("SELECT * FROM t").columns == ("id", "v")
    assert lake.sql("SELECT * FROM t", frames={"T": t}).columns == ("mine",)
    assert lake.sql("SELECT count(*) FROM shop.t", frames={"t": t}).rows() == [(2,)]


def test_tables_and_frames_join(lake: Lake) -> None:
    prices = pd.DataFrame({"id": [2, 3], "price": [5, 6]})
    assert len(prices) == 2
    query = "SELECT t.v, p.price FROM shop.t JOIN prices p USING (id)"
    assert lake.sql(query).rows() == [("b", 5)]


def test_other_variables_are_no_tables(lake: Lake) -> None:
    something = 5
    assert something
    with pytest.raises(lakelet.NotFoundError):
        lake.sql("SELECT * FROM something")
    with pytest.raises(lakelet.LakeletError):
        lake.sql("SELECT * FROM f", frames={"f": 5}).rows()


def test_variables_are_those_of_the_caller() -> None:
    mine = ARROW
    frames = Frames({"Other": 1}, sys._getframe())
    assert frames.variable("mine") is mine
    assert frames.variable("ARROW") is ARROW
    assert frames.variable("nothing") is None
    assert frames.given("OTHER") == 1
    assert frames.given("mine") is None
    assert Frames().variable("mine") is None
