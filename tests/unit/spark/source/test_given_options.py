"""Options that both Spark sources share."""

from __future__ import annotations

import pytest
from pyspark.sql import types as T

from lakelet.errors import InvalidError
from lakelet.spark.source.given_options import GivenOptions, chosen_columns

STORED = T.StructType([T.StructField("id", T.LongType()), T.StructField("dt", T.StringType())])


def given(**options: str) -> GivenOptions:
    return GivenOptions.of(options, writes=("commit-id",), names=("catalog",))


def test_own_options_are_picked_whatever_their_case() -> None:
    options = given(Catalog="ice", TABLE=" shop.orders ", path="shop.orders", endpoint="x", Columns=" id, dt")
    assert set(options.values) == {"catalog", "table", "path", "columns"}
    assert options.tables == ["shop.orders"]
    assert options.columns == ["id", "dt"]
    assert given().columns is None
    assert given(path="b", table="a").tables == ["a", "b"]


@pytest.mark.parametrize(("text", "moment"), [("17", 17), ("2026-01-01", "2026-01-01")])
def test_a_timestamp_of_digits_is_in_milliseconds(text: str, moment: str | int) -> None:
    assert given(timestamp=text).timestamp == moment
    assert given().timestamp is None


def test_overwrites_are_static_unless_told_otherwise() -> None:
    assert not given().overwrites_dynamically
    assert given(partitionOverwriteMode="Dynamic").overwrites_dynamically
    with pytest.raises(InvalidError, match="expected static or dynamic"):
        _ = given(partitionOverwriteMode="some").overwrites_dynamically


@pytest.mark.parametrize("name", ["commit-id", "partitionOverwriteMode"])
def test_reads_refuse_what_is_for_writes(name: str) -> None:
    with pytest.raises(InvalidError, match="is for writes and means nothing to reads"):
        given(**{name: "static"}).refuse_for_reading()
    given(**{name: "static"}).refuse_for_writing()
    with pytest.raises(InvalidError, match=r"'write\.x' is for writes"):
        given().refuse_for_reading(["write.x"])


@pytest.mark.parametrize("name", ["version", "timestamp", "tag", "columns", "where"])
def test_writes_refuse_what_is_for_reads(name: str) -> None:
    with pytest.raises(InvalidError, match=f"{name!r} is for reads and means nothing to writes"):
        given(**{name: "1"}).refuse_for_writing()
    given(**{name: "1"}).refuse_for_reading()


def test_a_given_schema_chooses_columns_of_the_table() -> None:
    assert chosen_columns(T.StructType([STORED["dt"]]), STORED) == ("dt",)
    with pytest.raises(InvalidError, match="'nope'; the table's are id, dt"):
        chosen_columns(T.StructType([T.StructField("nope", T.LongType())]), STORED)
    with pytest.raises(InvalidError, match="'id' as int, but it is bigint"):
        chosen_columns(T.StructType([T.StructField("id", T.IntegerType())]), STORED)
