"""Streams of tables, sinks, Python steps and flows that run once."""

import json
from pathlib import Path

import pytest

from lakelet.errors import InvalidError
from lakelet.pipeline import load
from tests.spark.pipeline.conftest import Workshop

CHAIN = """\
name: shop
database: shop
sources:
  raw: {format: json, path: raw, schema: "id BIGINT, name STRING"}
  kept: {table: shop.outside}
temporary_views:
  named: {sql: SELECT * FROM STREAM(orders) WHERE name IS NOT NULL}
tables:
  orders: {source: raw}
  copies: {source: named, primary_key: id, options: {bucket: 1}}
  joined: {sql: "SELECT o.id, k.note FROM STREAM(shop.orders) o JOIN kept k USING (id)"}
append_flows:
  before: {target: copies, sql: "SELECT -1L AS id, 'first' AS name", once: true}
  outside: {target: copies, sql: "SELECT id + 100 AS id, note AS name FROM STREAM(kept)"}
sinks:
  files: {format: json, path: out, source: orders}
"""


@pytest.mark.deep
def test_streams_of_tables_go_on_where_they_ended(workshop: Workshop) -> None:
    workshop.lake.create_database("shop")
    outside = workshop.lake.create_table("shop.outside", [("id", "BIGINT"), ("note", "STRING")])
    outside.write([{"id": 1, "note": "one"}, {"id": 2, "note": "two"}])
    workshop.raw("1.json", '{"id": 1, "name": "a"}\n{"id": 2}\n')
    assert set(workshop.run(CHAIN).values()) == {"completed"}
    outside.write([{"id": 3, "note": "three"}])
    workshop.raw("2.json", '{"id": 3, "name": "c"}\n')
    made = workshop.run(CHAIN)
    assert made["before"] == "up to date"
    assert [(row["id"], row["name"]) for row in workshop.rows("copies", "id")] == [
        *((-1, "first"), (1, "a"), (3, "c")),
        *((101, "one"), (102, "two"), (103, "three")),
    ]
    assert [(row["id"], row["note"]) for row in workshop.rows("joined", "id")] == [(1, "one"), (2, "two"), (3, "three")]
    files = [
        json.loads(line) for one in (workshop.folder / "out").glob("*.json") for line in one.read_text().splitlines()
    ]
    assert sorted(row["id"] for row in files) == [1, 2, 3]
    with pytest.raises(
        InvalidError, match=r"shop\.yaml:\d+: flow '\w+' reads STREAM\(.*orders\) and would get all rows once more"
    ):
        workshop.run(CHAIN, full_refresh=["orders"])


PYTHON = """\
import lakelet.pipeline as lp

lp.pipeline("shop", database="shop")
factor = int(lp.parameter("factor", "2"))
lp.source("raw", format="json", path="{folder}/raw", schema="id BIGINT, name STRING")

@lp.temporary_view(reads={{"rows": "STREAM(raw)"}})
def named(rows):
    return rows.where("name IS NOT NULL")

@lp.table(name="shop.orders", expectations={{"small": ("id < 10", "drop")}})
def orders(named):
    return named.withColumn("id", named.id * factor)

@lp.materialized_view(reads={{"all_of": "shop.orders"}})
def totals(all_of, spark, parameters):
    assert spark is all_of.sparkSession
    return all_of.selectExpr("count(*) AS orders", f"'{{parameters['factor']}}' AS factor")
"""


def test_a_pipeline_in_python_is_the_same(workshop: Workshop, tmp_path: Path) -> None:
    from lakelet.spark import run_pipeline

    workshop.raw("1.json", '{"id": 1, "name": "a"}\n{"id": 2}\n{"id": 4, "name": "b"}\n')
    file = tmp_path / "shop.py"
    file.write_text(PYTHON.format(folder=tmp_path))
    made = run_pipeline(workshop.spark, load(file, {"factor": "3"}), tmp_path / "lake")
    assert made.error is None
    assert made.flows[0].unmet == {"small": 1}
    assert workshop.rows("orders") == [{"id": 3, "name": "a"}]
    assert workshop.rows("totals") == [{"orders": 1, "factor": "3"}]


def test_a_python_step_of_yaml_is_loaded_only_when_its_file_is_named(workshop: Workshop, tmp_path: Path) -> None:
    from lakelet.pipeline.python_file import load_functions

    steps = tmp_path / "steps.py"
    steps.write_text("def doubled(spark):\n    return spark.range(3).selectExpr('id * 2 AS id')\n")
    text = "name: shop\ndatabase: shop\nmaterialized_views:\n  evens: {python: steps.py:doubled}\n"
    with pytest.raises(InvalidError, match=r"shop\.yaml:4: flow 'evens' is made by doubled of .*named \(--code\)"):
        workshop.run(text)
    workshop.run(text, functions=load_functions([steps]))
    assert [row["id"] for row in workshop.rows("evens", "id")] == [0, 2, 4]
