"""Queries that use payloads field by field read these fields alone, and give the rows that whole payloads give."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lakelet.errors import LakeletError
from lakelet.service.query.query_engine import QueryEngine
from lakelet.sql.sandbox import sandboxed_query
from tests.unit.service.query.served_lake import ServedLake, engine_of, row, rows, served_lake

_EVENTS = (
    "CREATE TABLE events (id STRING NOT NULL, timestamp TIMESTAMP(6) WITH LOCAL TIME ZONE, "
    'payload ROW<name STRING, age BIGINT, score DOUBLE, "Mixed" STRING, place ROW<x DOUBLE, tags ARRAY<STRING>>>, '
    "payload_rest STRING, dt DATE) PARTITIONED BY (dt)"
)


@pytest.fixture(scope="module", params=["committed", "buffered", "keyed", "grown"])
def engine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[QueryEngine]:
    with served_lake(tmp_path_factory.mktemp("served")) as made:
        _fill(made, request.param)
        with engine_of(made) as found:
            yield found


def _fill(made: ServedLake, kind: str) -> None:
    statement = _EVENTS
    if kind == "keyed":
        statement = f"{_EVENTS.replace(' PARTITIONED BY (dt)', '')} WITH ('primary-key' = 'id', 'bucket' = '2')"
    if kind == "grown":
        statement = _EVENTS.replace("name STRING, age BIGINT, ", "age BIGINT, ")
    served = made.add(statement, "events")
    writer = served.writer
    assert writer is not None
    many: list[dict[str, Any]] = [row(f"e{number}", **_payload(number, grown=kind != "grown")) for number in range(12)]
    many[3]["payload"] = None
    writer.put_many(many)
    writer.flush()
    if kind == "grown":
        made.lake.sql("ALTER TABLE events ADD COLUMN payload.name STRING")
    if kind != "committed":
        writer.put_many([row(f"e{number}", **_payload(number + 100, grown=True)) for number in range(10, 14)])


def _payload(number: int, *, grown: bool) -> dict[str, Any]:
    score = math.nan if number % 5 == 4 else None if number % 5 == 3 else number / 2
    made = {
        "name": f"name {number % 3}",
        "age": number,
        "score": score,
        "Mixed": f"m{number}",
        "place": {"x": number + 0.5, "tags": ["a", str(number)]},
    }
    return made if grown else {name: value for name, value in made.items() if name != "name"}


@pytest.mark.sampled
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT payload.age, payload.score FROM events ORDER BY 1, 2",
        "SELECT sum(age), max(score) FROM events",
        "SELECT count(*) FROM events WHERE payload.score > 3",
        "SELECT id FROM events WHERE payload.age IS NULL ORDER BY id",
        "SELECT e.payload.name, avg(e.payload.age) FROM events e GROUP BY 1 ORDER BY 1",
        "SELECT PAYLOAD.mixed, Payload.place.x, payload.place.tags[1] FROM events ORDER BY 1",
        "SELECT a.payload.age, b.payload.name FROM events a JOIN events b ON a.payload.age = b.payload.age ORDER BY ALL",
        "SELECT payload.age FROM events payload ORDER BY 1",
        "WITH c AS (SELECT payload.score AS payload FROM events) SELECT max(payload) FROM c",
        "SELECT id FROM events WHERE payload.age IN (SELECT payload.age FROM events WHERE score < 2) ORDER BY id",
        # Those below use whole payloads.
        "SELECT * FROM events ORDER BY id",
        "SELECT payload, payload.age FROM events ORDER BY id",
        "FROM events ORDER BY id",
        "SELECT events, events.payload.age FROM events ORDER BY id",
        "SELECT e, e.payload.age FROM events e ORDER BY e.id",
        "SELECT count(DISTINCT payload), max(payload.age) FROM events",
        "SELECT payload.* FROM events ORDER BY ALL",
        "SELECT COLUMNS('pay.*'), payload.age FROM events ORDER BY ALL",
        "SELECT p, p.age FROM events AS e(i, t, p, r) ORDER BY i",
        "SELECT #3, payload.age FROM events ORDER BY id",
        "SELECT payload['age'], payload.age FROM events ORDER BY 1",
        "SELECT struct_extract(payload, 'age'), payload.score FROM events ORDER BY 1",
        "SELECT a.payload.age FROM events a JOIN events b USING (payload) ORDER BY 1",
        "SELECT a.payload.age FROM events a NATURAL JOIN events b ORDER BY 1",
        "SELECT payload.age, (SELECT payload FROM events WHERE id = 'e1') AS one FROM events ORDER BY 1",
        "SELECT payload.age FROM events UNION ALL SELECT age FROM (SELECT payload.* FROM events) ORDER BY 1",
    ],
)
def test_the_rows_are_those_of_whole_payloads(engine: QueryEngine, sql: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = _outcome(engine, sql)
    monkeypatch.setattr(sandboxed_query, "named_parts", lambda tree: None)
    assert found == _outcome(engine, sql)


def _outcome(engine: QueryEngine, sql: str) -> object:
    """The rows of a query, or the words in which it is refused."""
    try:
        # Rows with the same id are in no order.
        return sorted(map(str, rows(engine, sql)))
    except LakeletError as error:
        return str(error)


def test_most_of_these_queries_have_rows(engine: QueryEngine) -> None:
    assert rows(engine, "SELECT count(payload.age) AS n FROM events")[0]["n"] > 10
    assert rows(engine, "SELECT max(payload.score) AS most FROM events") == [{"most": "NaN"}]


def test_an_unknown_field_is_told_with_all_known_ones(engine: QueryEngine) -> None:
    told = _outcome(engine, "SELECT payload.age, payload.agee FROM events")
    assert all(name in str(told) for name in ("'agee'", "'age'", "'score'", "'place'")), told


def test_a_field_that_is_not_named_is_not_read(tmp_path: Path) -> None:
    with served_lake(tmp_path) as made:
        _fill(made, "committed")
        with engine_of(made) as engine:
            plan = str(rows(engine, "EXPLAIN SELECT sum(payload.age) FROM events"))
            assert "payload.age" in plan
            assert "payload.score" not in plan
            assert "payload.place" not in plan
