"""Flows that run once, tables that were dropped, changed definitions, retries and backfills: nothing lost, nothing twice."""

from typing import Any

import pytest

from lakelet.errors import CommitUnknownError, InvalidError
from lakelet.pipeline import parse_pipeline
from lakelet.spark import backfill_pipeline
from lakelet.spark.pipeline.flow import flow_run
from tests.spark.pipeline.conftest import Workshop

ORDERS = """\
name: shop
database: shop
sources:
  raw: {format: json, path: raw, schema: "id BIGINT, day STRING, amount DOUBLE"}
  more: {format: json, path: more, schema: "id BIGINT, day STRING, amount DOUBLE"}
tables:
  orders:
    sql: SELECT * FROM STREAM(raw)
    partitioned_by: day
    expectations: {positive: {condition: amount > 0, action: quarantine}}
"""


def order(number: int, amount: float, day: str = "a") -> str:
    return f'{{"id": {number}, "day": "{day}", "amount": {amount}}}\n'


def found(workshop: Workshop) -> tuple[list[int], int]:
    return [row["id"] for row in workshop.rows("orders", "id")], len(workshop.rows("orders_quarantine"))


def test_a_flow_that_runs_once_sets_aside_once(workshop: Workshop) -> None:
    once = ORDERS.replace("STREAM(raw)", "raw\n    once: true")
    workshop.raw("1.json", order(1, 1))
    assert workshop.run(once) == {"orders": "completed"}
    workshop.raw("2.json", order(2, -1))
    assert workshop.run(once) == {"orders": "up to date"}
    assert found(workshop) == ([1], 0)


def test_a_dropped_table_is_filled_without_the_rest_of_the_last_one(workshop: Workshop) -> None:
    workshop.raw("1.json", order(1, 1) + order(2, -1))
    workshop.run(ORDERS)
    workshop.lake.create_table("shop.orders_deletes", [("mine", "INT")]).write([{"mine": 1}])
    workshop.lake.drop_table("shop.orders")
    workshop.run(ORDERS)
    assert found(workshop) == ([1], 1)
    # A refresh leaves tables alone that are none of the pipeline's.
    workshop.run(ORDERS, full_refresh=["orders"])
    assert found(workshop) == ([1], 1)
    assert workshop.rows("orders_deletes") == [{"mine": 1}]


def test_other_streams_are_not_read_from_the_offsets_of_the_first(workshop: Workshop) -> None:
    workshop.raw("1.json", order(1, 1))
    workshop.raw("1.json", order(2, 1), "more")
    workshop.run(ORDERS)
    both = ORDERS.replace("STREAM(raw)", "STREAM(more) UNION ALL SELECT * FROM STREAM(raw)")
    with pytest.raises(
        InvalidError, match=r"shop\.yaml:7: flow 'orders': .* raw \(json\), and it reads more \(json\), raw"
    ):
        workshop.run(both)
    assert found(workshop) == ([1], 0)
    assert workshop.run(ORDERS.replace("  raw: {", "  renamed: {").replace("(raw)", "(renamed)")) == {
        "orders": "completed"
    }
    workshop.run(both, full_refresh=["orders"])
    assert found(workshop) == ([1, 2], 0)


def test_a_commit_of_unknown_outcome_is_tried_again(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    """The store took the commit and did not answer; the second attempt finds it."""
    workshop.raw("1.json", order(1, 1) + order(2, -1))
    append, calls = flow_run.append_stream, 0

    def unknown(write: Any) -> Any:
        nonlocal calls
        calls += 1
        made = append(write)
        if calls == 1:
            raise CommitUnknownError("the store did not answer")
        return made

    monkeypatch.setattr(flow_run, "append_stream", unknown)
    assert workshop.results(ORDERS)["orders"].attempts == 2
    assert found(workshop) == ([1], 1)


def test_a_backfill_replaces_a_range_and_sets_aside_once(workshop: Workshop) -> None:
    workshop.raw("1.json", order(1, 1, "a") + order(2, 1, "b") + order(3, -1, "b"))
    workshop.run(ORDERS)
    workshop.raw("1.json", order(1, 1, "a") + order(4, 1, "b") + order(3, -1, "b") + order(5, 1, "c"))
    file = str(workshop.folder / "shop.yaml")

    def backfill(**how: Any) -> Any:
        given = {"column": "day", "start": "b", "end": "c", "warehouse": workshop.folder / "lake", **how}
        return backfill_pipeline(workshop.spark, parse_pipeline(ORDERS, file), "orders", **given)

    for _ in range(2):
        made = backfill()
        assert (made.rows, made.unmet) == (1, {"positive": 1})
        assert found(workshop) == ([1, 4], 1)
    with pytest.raises(InvalidError, match="neither a primary key nor partitions by 'id'"):
        backfill(column="id", start="1", end="3")
    with pytest.raises(InvalidError, match="'x' is no bigint"):
        backfill(column="id", start="x")
    with pytest.raises(InvalidError, match="a backfill has a range"):
        backfill(start=None, end=None)
