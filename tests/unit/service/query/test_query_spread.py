"""A query that is spread over three workers gives what one node gives."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakelet.errors import InvalidError
from lakelet.service.query.query_engine import QueryEngine, QueryRequest
from tests.unit.service.query.embedded_workers import EmbeddedWorkers, spread_engine
from tests.unit.service.query.generated_queries import generated
from tests.unit.service.query.served_lake import USERS, ServedLake, engine_of, row, rows, served_lake

SALES = (
    "CREATE TABLE sales (id BIGINT NOT NULL, city STRING, kind INT, price DECIMAL(10, 2), weight DOUBLE, share FLOAT, "
    "qty BIGINT, big DECIMAL(38, 0), at TIMESTAMP(6) WITH LOCAL TIME ZONE, local TIMESTAMP(6), flag BOOLEAN, raw BYTES, dt DATE) "
    "PARTITIONED BY (dt)"
)
CITIES = (
    "CREATE TABLE cities (name STRING NOT NULL, country STRING, people BIGINT, PRIMARY KEY (name) NOT ENFORCED) "
    "WITH ('bucket' = '3')"
)
_START = datetime(2026, 1, 1, tzinfo=UTC)


def sale(rng: random.Random, number: int) -> dict[str, Any]:
    def some(value: Any) -> Any:
        return None if rng.random() < 0.15 else value

    at = _START + timedelta(minutes=rng.randrange(5 * 24 * 60))
    return {
        "id": number,
        "city": some(rng.choice(["Bonn", "Köln", "Ulm", "", "ulm"])),
        "kind": some(rng.randrange(4)),
        "price": some(Decimal(rng.randrange(-(10**6), 10**6)).scaleb(-2)),
        "weight": some(rng.choice([rng.random() * 1000, 0.0, -1.5, math.nan, 1e300, math.inf])),
        "share": some(rng.choice([0.25, 0.5, 1.75])),
        "qty": some(rng.choice([rng.randrange(10), 2**62, -(2**62)])),
        "big": some(Decimal(rng.randrange(10**20)) * 10**15),
        "at": some(at),
        "local": some(at.replace(tzinfo=None)),
        "flag": some(rng.random() < 0.5),
        "raw": some(rng.choice([b"", b"\0", b"x"])),
        "dt": at.date(),
    }


def filled(served: ServedLake) -> None:
    """Tables with committed rows in several files, and with buffered ones, some of which replace committed ones."""
    rng = random.Random(7)
    sales = served.add(SALES, "sales", hides_day=False)
    cities = served.add(CITIES, "cities", hides_day=False)
    users = served.add(USERS, "users")
    for part in range(4):
        assert sales.writer is not None and cities.writer is not None and users.writer is not None
        sales.writer.put_many([sale(rng, part * 100 + number) for number in range(100)])
        names = ["Bonn", "Köln", "Ulm", f"town-{part}", f"town-{rng.randrange(9)}x"]
        cities.writer.put_many(
            [{"name": name, "country": rng.choice(["DE", "AT", None]), "people": rng.randrange(9)} for name in names]
        )
        users.writer.put_many(
            [
                row(f"u{part}-{number}", f"2026-01-0{number % 3 + 1}T10:00:00Z", age=rng.randrange(9), city="Ulm")
                for number in range(10)
            ]
        )
        if part < 3:
            for table in (sales, cities, users):
                assert table.writer is not None
                table.writer.flush()
    assert cities.writer is not None
    cities.writer.delete({"name": "Köln"})


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedLake]:
    with served_lake(tmp_path_factory.mktemp("spread")) as made:
        filled(made)
        yield made


@pytest.fixture
def alone(served: ServedLake) -> Iterator[QueryEngine]:
    with engine_of(served) as made:
        yield made


@pytest.fixture
def spread(served: ServedLake) -> Iterator[tuple[QueryEngine, EmbeddedWorkers]]:
    with spread_engine(served) as made:
        yield made


def answer(engine: QueryEngine, sql: str) -> pa.Table:
    with engine.run(QueryRequest(sql)) as result:
        return result.reader().read_all()


def _shown(value: Any) -> Any:
    """A value that sorts, with floating-point numbers to twelve digits."""
    if isinstance(value, float):
        return (1, "nan" if math.isnan(value) else f"{value + 0.0:.11e}")
    return (0, "") if value is None else (2, repr(value))


def same(found: pa.Table, wanted: pa.Table, *, is_ordered: bool) -> bool:
    if found.schema != wanted.schema:
        return False
    given = [[tuple(map(_shown, one)) for one in zip(*(c.to_pylist() for c in t.columns), strict=True)] for t in (found, wanted)]
    return given[0] == given[1] if is_ordered else sorted(given[0]) == sorted(given[1])


def test_generated_queries_give_the_same_rows(
    alone: QueryEngine, spread: tuple[QueryEngine, EmbeddedWorkers]
) -> None:
    engine, workers = spread
    rng = random.Random(11)
    together = 0
    for _ in range(150):
        sql, is_ordered = generated(rng)
        before = len(workers.asked)
        assert same(answer(engine, sql), answer(alone, sql), is_ordered=is_ordered), sql
        together += len(workers.asked) > before
    assert together > 135
