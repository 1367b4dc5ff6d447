"""Pipelines on Spark: views and tables are what their queries say."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lakelet import connect
from lakelet.errors import InvalidError, LakeletError, NotFoundError
from lakelet.pipeline import parse_pipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SHOP = """\
name: shop
database: shop
sources:
  raw_orders: {format: csv, path: raw, schema: "id BIGINT, country STRING, amount DOUBLE", options: {header: true}}
temporary_views:
  clean: {sql: SELECT * FROM raw_orders WHERE id IS NOT NULL}
materialized_views:
  totals:
    primary_key: country
    options: {bucket: 1}
    sql: |
      SELECT country, count(*) AS orders, sum(o.amount) AS amount
      FROM clean AS o GROUP BY country
  best: {sql: SELECT country FROM totals WHERE amount >= 6}
"""


def written(folder: Path, text: str = SHOP) -> str:
    raw = folder / "raw"
    raw.mkdir(exist_ok=True)
    (raw / "a.csv").write_text("id,country,amount\n1,DE,2.5\n2,FR,3.5\n3,DE,4\n,FR,1\n")
    file = folder / "shop.yaml"
    file.write_text(text)
    return str(file)


def run(spark: "SparkSession", folder: Path, text: str = SHOP) -> list[tuple[str, str, int | None]]:
    from lakelet.spark import run_pipeline

    made = run_pipeline(spark, parse_pipeline(text, written(folder, text)), folder / "lake")
    if made.error is not None:
        raise made.error
    return [(one.flow, one.outcome.value, one.rows) for one in made.flows]


def test_materialized_views_are_computed_in_order(spark: "SparkSession", tmp_path: Path) -> None:
    assert run(spark, tmp_path) == [("totals", "completed", 2), ("best", "completed", 1)]
    lake = connect(str(tmp_path / "lake"))
    rows = lake.table("shop.totals").scan().to_arrow().sort_by("country").to_pylist()
    assert rows == [{"country": "DE", "orders": 2, "amount": 6.5}, {"country": "FR", "orders": 1, "amount": 3.5}]
    assert lake.table("shop.totals").schema.primary_keys == ("country",)
    assert lake.table("shop.best").scan().to_arrow().to_pylist() == [{"country": "DE"}]
    # A view that replaces its rows tells how many it has, not by how many there are more.
    assert run(spark, tmp_path)[0] == ("totals", "completed", 2)


@pytest.mark.parametrize(
    ("old", "new", "kind", "line", "words"),
    [
        ("o.amount", "o.amout", InvalidError, 12, "amout"),
        ("FROM clean AS", "FROM clen AS", NotFoundError, 13, "clen"),
        ("path: raw", "path: nowhere", NotFoundError, 4, "nowhere"),
        ("bucket: 1", "bukcet: 1", InvalidError, 8, "bukcet"),
        ("primary_key: country", "primary_key: land", InvalidError, 8, "land"),
        ("SELECT country FROM", "SELECT NULL AS x FROM", InvalidError, 14, "'x' is NULL without a type"),
        ("SELECT country FROM totals", "SELECT country FROM other.totals", NotFoundError, 14, "other"),
        ("SELECT country FROM totals", "DROP TABLE totals", InvalidError, 14, "expected a query (SELECT, WITH"),
        ("SELECT country FROM totals", "WITH x AS (SELECT 1) DELETE FROM x", InvalidError, 14, "DELETE"),
        (
            "SELECT country FROM totals",
            "FROM totals INSERT OVERWRITE DIRECTORY 'out' SELECT 1",
            InvalidError,
            14,
            "INSERT",
        ),
    ],
)
def test_what_does_not_fit_is_told_before_anything_is_written(
    spark: "SparkSession", tmp_path: Path, old: str, new: str, kind: type[LakeletError], line: int, words: str
) -> None:
    text = SHOP.replace(old, new)
    assert text != SHOP
    with pytest.raises(kind) as told:
        run(spark, tmp_path, text)
    assert type(told.value) is kind
    assert f"shop.yaml:{line}: " in str(told.value)
    assert words in str(told.value)
    assert connect(str(tmp_path / "lake")).databases() == []


def test_a_table_whose_columns_do_not_fit_is_told_with_its_line(spark: "SparkSession", tmp_path: Path) -> None:
    lake = connect(str(tmp_path / "lake"))
    lake.create_database("shop")
    lake.create_table("shop.best", [("country", "INT")])
    with pytest.raises(
        InvalidError, match=r"shop\.yaml:14: table 'best': the data does not fit the table: column 'country' is INT"
    ):
        run(spark, tmp_path)
    assert lake.tables("shop") == ["best"]
