"""Materialized views are left alone only where nothing can have changed them, and their quarantine with them."""

from typing import Any

import pytest

from lakelet.spark.pipeline.flow import batch_flow
from tests.spark.pipeline.conftest import Workshop

COPY = """\
name: shop
database: shop
materialized_views:
  copy:
    sql: SELECT * FROM shop.outside
    expectations: {known: {condition: note IS NOT NULL, action: quarantine}}
"""


class Lost(Exception):
    """What a test raises in place of a lost driver."""


def outside(workshop: Workshop) -> Any:
    workshop.lake.create_database("shop")
    made = workshop.lake.create_table("shop.outside", [("id", "BIGINT"), ("note", "STRING")])
    made.write([{"id": 1, "note": "one"}])
    return made


def test_a_rollback_and_a_changed_schema_are_seen_rule_10(workshop: Workshop) -> None:
    """A number of a snapshot is used again after a rollback, and a column that is another one needs no snapshot."""
    table = outside(workshop)
    table.write([{"id": 2, "note": "two"}])
    assert workshop.run(COPY) == {"copy": "completed"}
    assert workshop.run(COPY) == {"copy": "up to date"}
    table.rollback(1)
    table.write([{"id": 3, "note": "three"}])
    assert table.latest_snapshot().id == 2
    assert workshop.run(COPY) == {"copy": "completed"}
    assert [row["id"] for row in workshop.rows("copy", "id")] == [1, 3]
    table.drop_column("note")
    table.add_column("note", "STRING")
    assert workshop.run(COPY) == {"copy": "completed"}
    assert (workshop.rows("copy"), len(workshop.rows("copy_quarantine"))) == ([], 2)
    assert workshop.run(COPY) == {"copy": "up to date"}


def test_a_run_that_ends_before_the_quarantine_is_finished(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    table = outside(workshop)
    workshop.run(COPY)
    table.write([{"id": 2}, {"id": 3, "note": "three"}])
    write, calls = batch_flow.write_frame, 0

    def lost(*given: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise Lost
        return write(*given)

    with monkeypatch.context() as patched:
        patched.setattr(batch_flow, "write_frame", lost)
        with pytest.raises(Lost):
            workshop.run(COPY)
    assert workshop.rows("copy_quarantine") == []
    assert workshop.run(COPY) == {"copy": "completed"}
    assert [row["row"] for row in workshop.rows("copy_quarantine")] == ['{"id":2}']


@pytest.mark.parametrize("stream", [True, False])
def test_a_condition_on_the_current_time_is_asked_once_for_each_row(workshop: Workshop, stream: bool) -> None:
    """A row that is too new while the table is written, and old enough when the quarantine is, would be in neither."""
    workshop.raw("1.json", "".join(f'{{"id": {number}}}\n' for number in range(2000)))
    text = """\
name: shop
database: shop
sources: {raw: {format: json, path: raw, schema: id BIGINT}}
tables:
  some:
    sql: SELECT id FROM STREAM(raw)
    expectations: {half: {condition: "rand() < 0.5 AND current_timestamp() > '2020-01-01'", action: quarantine}}
"""
    if not stream:
        text = text.replace("STREAM(raw)\n", "raw\n    once: true\n")
    made = workshop.results(text)["some"]
    assert made.error is None
    kept, aside = len(workshop.rows("some")), len(workshop.rows("some_quarantine"))
    assert (kept + aside, kept > 500, aside > 500) == (2000, True, True)
    assert (made.rows, made.unmet) == (kept, {"half": aside})
