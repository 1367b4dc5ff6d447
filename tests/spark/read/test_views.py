"""`ls.views`: the tables of a database as temporary views."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import lakelet
from lakelet.errors import InvalidError, NotFoundError
from lakelet.spark.sql.views import views

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark]


@pytest.fixture
def session(spark: SparkSession) -> SparkSession:
    """One whose temporary views are its own."""
    return spark.newSession()


def test_every_table_is_a_view(session: SparkSession, tmp_path: Path) -> None:
    lake = lakelet.connect(str(tmp_path))
    lake.create_database("shop")
    orders = lake.create_table("shop.orders", [("id", "BIGINT"), ("dt", "STRING")], partitioned_by=["dt"])
    orders.write([{"id": i, "dt": "ab"[i % 2]} for i in range(4)])
    lake.create_table("shop.two-words", [("id", "BIGINT NOT NULL")], primary_key=["id"]).write([{"id": 3}])
    assert views(session, tmp_path, "shop") == ["orders", "two-words"]
    joined = "SELECT dt FROM orders JOIN `two-words` USING (id)"
    assert [tuple(row) for row in session.sql(joined).collect()] == [("b",)]

    orders.write([{"id": 5, "dt": "c"}])
    assert session.sql("SELECT count(*) FROM orders").collect()[0][0] == 4
    views(session, tmp_path, "shop")
    assert session.sql("SELECT count(*) FROM orders").collect()[0][0] == 5


def test_a_table_that_cannot_be_read_is_left_out(
    session: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    lake = lakelet.connect(str(tmp_path))
    lake.create_database("shop")
    lake.create_table("shop.good", [("id", "BIGINT")])
    lake.create_table("shop.bad", [("id", "BIGINT")])
    (tmp_path / "shop.db" / "bad" / "schema" / "schema-0").write_text("{")
    with caplog.at_level(logging.WARNING):
        assert views(session, tmp_path, "shop") == ["good"]
    assert "no view is made of shop.bad" in caplog.text
    lake.drop_table("shop.good")
    with pytest.raises(InvalidError, match=r"no table of 'shop' can be read: shop\.bad"):
        views(session, tmp_path, "shop")


def test_names_that_differ_in_case_only(
    session: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    lake = lakelet.connect(str(tmp_path))
    lake.create_database("shop")
    lake.create_table("shop.Orders", [("id", "BIGINT")])
    lake.create_table("shop.orders", [("id", "BIGINT")])
    assert views(session, tmp_path, "shop") == ["Orders"]
    assert "shop.orders: its name differs from another's only in case" in caplog.text


def test_a_database_that_is_not_there(session: SparkSession, tmp_path: Path) -> None:
    lakelet.connect(str(tmp_path)).create_database("shop")
    assert views(session, tmp_path, "shop") == []
    with pytest.raises(NotFoundError, match=r"'nope'.*shop"):
        views(session, tmp_path, "nope")
