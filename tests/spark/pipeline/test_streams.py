"""Streaming tables, expectations, refreshes and auto CDC."""

import json
from pathlib import Path

import pytest

from lakelet.errors import InvalidError
from lakelet.pipeline import load, parse_pipeline
from tests.spark.pipeline.conftest import Workshop

ORDERS = """\
name: shop
database: shop
sources:
  raw: {format: json, path: raw, schema: "id BIGINT, country STRING, amount DOUBLE"}
  countries: {format: csv, path: countries, schema: "country STRING, continent STRING"}
tables:
  orders:
    sql: SELECT r.*, c.continent FROM STREAM(raw) r LEFT JOIN countries c ON c.country = r.country
    expectations:
      positive: {condition: amount > 0, action: drop}
      known: {condition: continent IS NOT NULL, action: quarantine}
      cheap: amount < 100
materialized_views:
  totals: {sql: "SELECT continent, count(*) AS orders, sum(amount) AS amount FROM orders GROUP BY continent"}
  copies: {sql: SELECT continent FROM totals}
"""


def order(number: int, country: str, amount: float) -> str:
    return f'{{"id": {number}, "country": "{country}", "amount": {amount}}}\n'


def test_what_is_new_is_added_once_and_counted(workshop: Workshop) -> None:
    workshop.raw("c.csv", "DE,Europe\nJP,Asia\n", "countries")
    workshop.raw("1.json", order(1, "DE", 5) + order(2, "JP", 500) + order(3, "DE", -1) + order(4, "XX", 7))
    made = workshop.results(ORDERS)
    assert {name: one.outcome.value for name, one in made.items()} == dict.fromkeys(
        ("orders", "totals", "copies"), "completed"
    )
    assert (made["orders"].rows, made["orders"].unmet) == (2, {"positive": 1, "known": 1, "cheap": 1})
    assert [row["id"] for row in workshop.rows("orders", "id")] == [1, 2]
    (aside,) = workshop.rows("orders_quarantine")
    assert (aside["flow"], aside["reason"], aside["row"]) == ("orders", "known", '{"id":4,"country":"XX","amount":7.0}')

    assert workshop.run(ORDERS) == {"orders": "completed", "totals": "up to date", "copies": "up to date"}
    workshop.raw("2.json", order(5, "JP", 8))
    assert workshop.run(ORDERS) == {"orders": "completed", "totals": "completed", "copies": "completed"}
    assert workshop.rows("totals", "continent") == [
        {"continent": "Asia", "orders": 2, "amount": 508.0},
        {"continent": "Europe", "orders": 1, "amount": 5.0},
    ]
    # A definition that changed is computed, though its inputs did not.
    other = ORDERS.replace("SELECT continent FROM totals", "SELECT upper(continent) AS continent FROM totals")
    assert workshop.run(other, select=["copies"]) == {"copies": "completed"}
    events = workshop.rows("pipeline_events")
    assert {row["event"] for row in events if row["flow"] is None} == {"started", "completed"}
    assert [row["rows"] for row in events if (row["flow"], row["event"]) == ("orders", "completed")] == [2, 0, 1]


COUNTS = """\
name: shop
database: shop
sources:
  raw: {format: json, path: raw, schema: "id BIGINT, country STRING, amount DOUBLE, at TIMESTAMP"}
temporary_views:
  by_country: {sql: "SELECT country, count(*) AS orders FROM STREAM(raw) GROUP BY country"}
tables:
  counts:
    sql: SELECT * FROM STREAM(by_country)
"""


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("", "", "streaming aggregations without watermark"),
        ("GROUP BY country", "GROUP BY country ORDER BY country", "appends rows that stay"),
        ("count(*) AS orders FROM STREAM(raw) GROUP BY country", "id FROM STREAM(raw) LIMIT 3", None),
        ("count(*) AS orders FROM STREAM(raw) GROUP BY country", "id FROM STREAM(raw)", None),
        ("tables:\n  counts:\n", "sinks:\n  out:\n    format: parquet\n    path: out\n", "without watermark"),
    ],
)
def test_a_stream_that_cannot_be_appended_is_told_before_anything_runs(
    workshop: Workshop, old: str, new: str, words: str | None
) -> None:
    from lakelet.spark import dry_run_pipeline

    workshop.raw("1.json", order(1, "DE", 5))
    text = COUNTS.replace(old, new) if old else COUNTS
    pipeline = parse_pipeline(text, str(workshop.folder / "shop.yaml"))
    dry = lambda: dry_run_pipeline(workshop.spark, pipeline, workshop.folder / "lake")  # noqa: E731
    if words is None:
        assert [one.flow.name for one in dry()] == ["counts"]
        return
    for check in (dry, lambda: workshop.run(text)):
        with pytest.raises(InvalidError, match=rf"shop\.yaml:\d+: flow .*{words}"):
            check()
    assert workshop.lake.databases() == []


def test_an_aggregation_within_a_watermark_runs(workshop: Workshop, tmp_path: Path) -> None:
    from lakelet.spark import run_pipeline

    (tmp_path / "steps.py").write_text(
        """import lakelet.pipeline as lp
from pyspark.sql import functions as F

lp.pipeline("shop", database="shop")
lp.source("raw", format="json", path="raw", schema="id BIGINT, at TIMESTAMP")


@lp.table
def hours(raw):
    hours = raw.withWatermark("at", "1 hour").groupBy(F.window("at", "1 hour").alias("w"))
    return hours.count().select("w.start", "count")
"""
    )
    for hour in (1, 2, 9):
        workshop.raw(f"{hour}.json", f'{{"id": {hour}, "at": "2026-01-01T0{hour}:30:00Z"}}\n')
    pipeline = load(tmp_path / "steps.py")
    made = run_pipeline(workshop.spark, pipeline, workshop.folder / "lake")
    assert made.error is None
    assert [row["count"] for row in workshop.rows("hours")] == [1, 1]


@pytest.mark.parametrize("once", ["false", "true"])
def test_a_sink_counts_what_meets_its_expectations(workshop: Workshop, once: str) -> None:
    """A sink of Spark's own format, whose batches nobody of ours writes."""
    source = "raw" if once == "true" else "STREAM(raw)"
    text = f"""\
name: shop
database: shop
sources:
  raw: {{format: json, path: raw, schema: "id BIGINT, country STRING, amount DOUBLE"}}
sinks:
  out:
    format: parquet
    path: out
    once: {once}
    sql: SELECT * FROM {source}
    expectations:
      positive: {{condition: amount > 0, action: drop}}
      known: country IS NOT NULL
"""
    workshop.raw("1.json", order(1, "DE", 5) + order(2, "DE", -1) + '{"id": 3, "amount": 7}\n')
    made = workshop.results(text)["out"]
    assert made.error is None
    assert (made.outcome.value, made.rows, made.unmet) == ("completed", 2, {"positive": 1, "known": 1})
    workshop.raw("2.json", order(4, "DE", -4) + order(5, "DE", 6))
    again = workshop.results(text)["out"]
    expected = ("up to date", None, {}) if once == "true" else ("completed", 1, {"positive": 1, "known": 0})
    assert (again.outcome.value, again.rows, again.unmet) == expected
    found = workshop.spark.read.parquet(str(workshop.folder / "out")).collect()
    assert sorted(row["id"] for row in found) == ([1, 3] if once == "true" else [1, 3, 5])
    told = [
        row["details"]
        for row in workshop.rows("pipeline_events")
        if (row["flow"], row["event"]) == ("out", "completed")
    ]
    assert json.loads(told[0])["unmet"] == {"positive": 1, "known": 1}


def test_a_full_refresh_fills_a_table_from_the_beginning(workshop: Workshop) -> None:
    workshop.raw("c.csv", "DE,Europe\n", "countries")
    workshop.raw("1.json", order(1, "DE", 5) + order(2, "JP", 6))
    workshop.run(ORDERS)
    assert len(workshop.rows("orders_quarantine")) == 1
    workshop.raw("c.csv", "DE,Europe\nJP,Asia\n", "countries")
    workshop.raw("2.json", order(3, "JP", 8))
    other = ORDERS.replace("r.*, c.continent", "r.*, c.continent, 1 AS added")
    with pytest.raises(InvalidError, match=r"shop\.yaml:7: table 'orders': .*'added'"):
        workshop.run(other)
    assert workshop.run(other, full_refresh=["orders+"]) == dict.fromkeys(("orders", "totals", "copies"), "completed")
    assert [(row["id"], row["added"]) for row in workshop.rows("orders", "id")] == [(1, 1), (2, 1), (3, 1)]
    assert workshop.rows("orders_quarantine") == []
    # A table that was dropped is filled from the beginning as well.
    workshop.lake.drop_table("shop.orders")
    workshop.run(other, select=["orders"])
    assert len(workshop.rows("orders")) == 3
    # Another one under its name is not.
    workshop.lake.drop_table("shop.orders")
    workshop.lake.create_table(
        "shop.orders", [("id", "BIGINT"), ("country", "STRING"), ("amount", "DOUBLE"), ("continent", "STRING")]
    )
    with pytest.raises(InvalidError, match="--full-refresh orders"):
        workshop.run(ORDERS, select=["orders"])


def test_an_expectation_that_fails_commits_nothing_and_is_told(workshop: Workshop) -> None:
    workshop.raw("c.csv", "DE,Europe\n", "countries")
    workshop.raw("1.json", order(1, "DE", 5))
    workshop.run(ORDERS)
    workshop.raw("2.json", order(2, "DE", 6) + order(3, "DE", -7))
    strict = ORDERS.replace("action: drop", "action: fail")
    made = workshop.results(strict)
    error = made["orders"].error
    assert isinstance(error, InvalidError)
    assert "shop.yaml:7: flow 'orders': expectation 'positive' (amount > 0) is not met by {\"id\":3," in str(error)
    assert [made[name].outcome.value for name in ("totals", "copies")] == ["skipped", "skipped"]
    assert [row["id"] for row in workshop.rows("orders")] == [1]
    workshop.run(ORDERS)
    assert [row["id"] for row in workshop.rows("orders", "id")] == [1, 2]


CDC = """\
name: shop
database: shop
sources:
  changes: {{format: json, path: raw, schema: "id BIGINT, name STRING, op STRING, at INT"}}
tables:
  customers: {{}}
auto_cdc_flows:
  customer_changes:
    target: customers
    source: changes
    keys: id
    sequence_by: at
    apply_as_deletes: op = 'd'
    except_columns: [op{more}]
    scd_type: {kind}
"""


def change(number: int, name: str, op: str, at: int) -> str:
    return f'{{"id": {number}, "name": "{name}", "op": "{op}", "at": {at}}}\n'


FIRST = [
    change(1, "a", "u", 1),
    change(1, "b", "u", 3),
    change(2, "x", "u", 1),
    change(2, "x", "d", 4),
    change(3, "n", "d", 9),
]
LATER = [change(1, "late", "u", 2), change(2, "older", "u", 3), change(2, "back", "u", 6), change(3, "before", "u", 8)]


@pytest.mark.parametrize("more", ["", ", at"])
def test_auto_cdc_keeps_the_newest_row_whatever_the_order(workshop: Workshop, more: str) -> None:
    text = CDC.format(kind=1, more=more)
    workshop.raw("1.json", "".join(FIRST))
    workshop.run(text)
    assert [(row["id"], row["name"]) for row in workshop.rows("customers", "id")] == [(1, "b")]
    # Nothing is left of deletions in the table itself.
    workshop.lake.table("shop.customers").compact(full=True)
    workshop.raw("2.json", "".join(LATER))
    workshop.run(text)
    assert [(row["id"], row["name"]) for row in workshop.rows("customers", "id")] == [(1, "b"), (2, "back")]
    assert workshop.lake.table("shop.customers").options["sequence.field"] == ("at" if not more else "__sequence")


def test_auto_cdc_keeps_every_version_whatever_the_order(workshop: Workshop) -> None:
    text = CDC.format(kind=2, more=", at")
    workshop.raw("1.json", "".join(FIRST))
    workshop.run(text)
    workshop.raw("2.json", "".join(LATER))
    workshop.run(text)
    found = workshop.rows("customers", "id", "__start_at")
    assert [(row["id"], row["name"], row["__start_at"], row["__end_at"]) for row in found] == [
        (1, "a", 1, 2),
        (1, "late", 2, 3),
        (1, "b", 3, None),
        (2, "x", 1, 3),
        (2, "older", 3, 4),
        (2, "back", 6, None),
        (3, "before", 8, 9),
    ]
    workshop.raw("3.json", change(1, "b", "d", 3) + '{"id": 1, "name": "nothing"}\n')
    with pytest.raises(InvalidError, match=r"sequence_by \(at\) is NULL"):
        workshop.run(text)


@pytest.mark.deep
def test_an_auto_cdc_table_keeps_its_expectations(workshop: Workshop) -> None:
    """Deletions are exempt, for they often have nothing but a key; a row that fails the flow commits nothing of the batch."""
    strict = CDC.format(kind=2, more=", at").replace(
        "  customers: {}",
        "  customers:\n    expectations:\n      named: {condition: name <> '', action: quarantine}\n"
        "      short: {condition: length(name) < 9, action: drop}\n      real: {condition: name <> 'x', action: fail}",
    )
    bad = [change(1, "", "u", 2), change(2, "much too long", "u", 3), '{"id": 1, "op": "d", "at": 9}\n']
    workshop.raw("1.json", "".join([change(1, "a", "u", 1), change(2, "b", "u", 1), *bad]))
    made = workshop.results(strict)["customer_changes"]
    assert (made.error, made.rows, made.unmet) == (None, 3, {"named": 1, "short": 1, "real": 0})
    found = [(row["id"], row["name"], row["__end_at"]) for row in workshop.rows("customers", "id")]
    assert found == [(1, "a", 9), (2, "b", None)]
    assert [row["reason"] for row in workshop.rows("customers_quarantine")] == ["named"]
    made = workshop.backfill(strict, "customers", column="at", start="0")
    assert made.unmet == {"named": 1, "short": 1, "real": 0}
    assert [(row["id"], row["name"], row["__end_at"]) for row in workshop.rows("customers", "id")] == found
    assert [row["reason"] for row in workshop.rows("customers_quarantine")] == ["named"]
    workshop.raw("2.json", change(3, "y", "d", 1) + change(4, "x", "u", 1))
    error = workshop.results(strict)["customer_changes"].error
    assert "expectation 'real' (name <> 'x') is not met by" in str(error)
    assert [row["id"] for row in workshop.rows("customers_deletes")] == [1]


@pytest.mark.deep
@pytest.mark.parametrize("sequence", ["`the, order`", "`my at`", "MY", "my + 0"])
def test_auto_cdc_by_any_sequence_and_key(workshop: Workshop, sequence: str) -> None:
    text = (
        CDC.format(kind=1, more="")
        .replace("at INT", "my INT, `my at` INT, `the, order` INT, `k. Ä` STRING")
        .replace("keys: id", "keys: [id, 'k. Ä']")
        .replace("sequence_by: at", f'sequence_by: "{sequence}"')
    )

    def row(name: str, at: int | None, key: str | None = "k") -> str:
        places = ", ".join(f'"{one}": {at}' for one in ("my", "my at", "the, order"))
        return f'{{"id": 1, "name": "{name}", {places}, "k. Ä": "{key}"}}\n'

    workshop.raw("1.json", row("new", 2) + row("old", 1))
    workshop.run(text)
    workshop.raw("2.json", row("older", 1) + row("other", 1, "l"))
    workshop.run(text)
    assert sorted(row["name"] for row in workshop.rows("customers")) == ["new", "other"]
    workshop.raw("3.json", row("none", 3).replace('"k. Ä": "k"', '"k. Ä": null'))
    with pytest.raises(InvalidError, match=r"k. Ä.*NULL|NULL.*k. Ä"):
        workshop.run(text)
