"""Iceberg tables of a pipeline: filled by streams and views, refreshed, dropped, and read as streams."""

import pytest

from lakelet.errors import InvalidError
from tests.spark.pipeline.conftest import Workshop

pytest.importorskip("pyiceberg")
SHOP = """\
name: shop
database: shop
sources: {raw: {format: json, path: raw, schema: "id BIGINT, amount DOUBLE"}}
tables:
  iceberg.shop.orders:
    format: iceberg
    source: raw
    expectations: {positive: {condition: amount > 0, action: drop}, cheap: amount < 10}
  copies: {source: iceberg.shop.orders}
append_flows:
  first: {target: iceberg.shop.orders, sql: "SELECT 0L AS id, 1.0D AS amount", once: true}
materialized_views:
  iceberg.shop.totals: {format: iceberg, sql: SELECT count(*) AS orders FROM iceberg.shop.orders}
"""
ORDERS, TOTALS = "iceberg.shop.orders", "iceberg.shop.totals"


def ids(workshop: Workshop, name: str = ORDERS) -> list[int]:
    return sorted(row[0] for row in workshop.lake.sql(f"SELECT id FROM {name}").rows())


def test_iceberg_tables_are_filled_refreshed_and_streamed(workshop: Workshop) -> None:
    workshop.raw("1.json", '{"id": 1, "amount": 1}\n{"id": 2, "amount": -1}\n{"id": 3, "amount": 20}\n')
    made = workshop.results(SHOP)
    assert [one.error for one in made.values()] == [None] * 4
    assert (made[ORDERS].rows, made[ORDERS].unmet) == (2, {"positive": 1, "cheap": 1})
    workshop.raw("2.json", '{"id": 4, "amount": 1}\n')
    assert workshop.run(SHOP)["first"] == "up to date"
    assert (ids(workshop), ids(workshop, "shop.copies")) == ([0, 1, 3, 4], [0, 1, 3, 4])
    assert workshop.lake.sql(f"SELECT orders FROM {TOTALS}").rows() == [(4,)]

    with pytest.raises(InvalidError, match=r"copies.* would get all rows once more"):
        workshop.run(SHOP, full_refresh=[ORDERS])
    workshop.run(SHOP, full_refresh=[f"{ORDERS}+"])
    assert (ids(workshop), ids(workshop, "shop.copies")) == ([0, 1, 3, 4], [0, 1, 3, 4])


@pytest.mark.deep
def test_other_columns_and_a_table_that_was_dropped(workshop: Workshop) -> None:
    """What tests/spark/pipeline/test_refresh.py and test_versions.py show of native tables."""
    workshop.raw("1.json", '{"id": 1, "amount": 1}\n{"id": 3, "amount": 20}\n{"id": 4, "amount": 1}\n')
    workshop.run(SHOP)
    assert ids(workshop) == [0, 1, 3, 4]
    wider = SHOP.replace("source: raw\n", "sql: SELECT *, 'x' AS note FROM STREAM(raw)\n")
    wider = wider.replace("1.0D AS amount", "1.0D AS amount, 'y' AS note")
    with pytest.raises(InvalidError, match="note"):
        workshop.run(wider, select=[ORDERS])
    workshop.run(wider, full_refresh=[f"{ORDERS}+"])
    assert ids(workshop) == [0, 1, 3, 4]
    # A table that was dropped is filled from the beginning.
    workshop.lake.sql(f"DROP TABLE {ORDERS}")
    workshop.run(wider, select=[ORDERS])
    assert ids(workshop) == [0, 1, 3, 4]
