"""Queries of the service that Spark runs give what one node gives."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from lakelet.errors import InvalidError, UnavailableError
from lakelet.service.query.query_engine import QueryEngine, QueryRequest
from lakelet.service.query.query_limits import QueryLimits
from lakelet.service.query.spark_spread import split_groups
from lakelet.service.service_spark import ServiceSpark
from lakelet.sql.sandbox.spread import PlannedSplit
from tests.tiers.examples import FIRST_SEED, examples
from tests.unit.service.query.generated_queries import generated
from tests.unit.service.query.nested_queries import nested
from tests.unit.service.query.served_lake import ServedLake, engine_of, rows, served_lake
from tests.unit.service.query.test_query_spread import answer, filled, same


def asked(made: QueryEngine, sql: str, engine: str, request_id: str | None = None) -> Any:
    """The rows of a query that says where it runs."""
    return json.loads(made.run(QueryRequest(sql, engine=engine, request_id=request_id)).json())


class SharedSpark(ServiceSpark):
    """The session of all tests, which is not stopped."""

    def __init__(self, spark: SparkSession) -> None:
        super().__init__("local[2]")
        self.spark = spark
        self.asked = 0

    def session(self) -> SparkSession:
        self.asked += 1
        return self.spark

    def close(self) -> None:
        pass


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedLake]:
    with served_lake(tmp_path_factory.mktemp("spark-queries")) as made:
        filled(made)
        yield made


@pytest.fixture(scope="module")
def shared(spark: SparkSession) -> SharedSpark:
    return SharedSpark(spark)


@pytest.fixture(scope="module")
def engine(served: ServedLake, shared: SharedSpark) -> Iterator[QueryEngine]:
    """All that can be split runs on Spark."""
    made = QueryEngine(served.lake, served, QueryLimits(spark_bytes=0, seconds=600.0), spark=shared)
    yield made
    made.close()


@pytest.fixture(scope="module")
def alone(served: ServedLake) -> Iterator[QueryEngine]:
    with engine_of(served) as made:
        yield made


def test_generated_queries_give_the_same_rows(engine: QueryEngine, alone: QueryEngine, shared: SharedSpark) -> None:
    rng, before = random.Random(5 + FIRST_SEED), shared.asked
    count = examples(12)
    for number in range(count):
        sql, is_ordered = (nested if number % 2 else generated)(rng)
        assert same(answer(engine, sql), answer(alone, sql), is_ordered=is_ordered), sql
    assert shared.asked - before > count * 0.6


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT payload.city, count(*), avg(payload.age) FROM users GROUP BY payload.city",
        "SELECT country, sum(people), count(*) FROM cities GROUP BY country",
        "SELECT c.country, sum(s.price) FROM sales s JOIN cities c ON c.name = s.city GROUP BY c.country",
        "SELECT id, city FROM sales WHERE dt = '2026-01-02' ORDER BY id LIMIT 7",
    ],
)
def test_rows_in_memory_are_there_once(engine: QueryEngine, alone: QueryEngine, shared: SharedSpark, sql: str) -> None:
    before = shared.asked
    assert same(answer(engine, sql), answer(alone, sql), is_ordered="ORDER" in sql)
    assert shared.asked == before + 1


def test_who_asks_for_it_gets_it(served: ServedLake, shared: SharedSpark) -> None:
    """Small queries run on Spark where the request says so, and nowhere else."""
    made = QueryEngine(served.lake, served, QueryLimits(seconds=600.0), spark=shared)
    sql, before = "SELECT kind, count(*) AS n FROM sales GROUP BY kind ORDER BY kind", shared.asked
    usual = rows(made, sql)
    assert shared.asked == before
    assert asked(made, sql, "spark") == usual
    assert shared.asked == before + 1
    assert asked(made, sql, "local") == usual
    assert asked(made, "SELECT count(*) AS n FROM lakelet_partials", "spark") == [{"n": 9}]
    assert shared.asked == before + 1
    with pytest.raises(InvalidError, match="a query that can be split"):
        asked(made, "SELECT a.id FROM sales a JOIN sales b ON a.id = b.id", "spark")
    with pytest.raises(InvalidError, match="expected local or spark, found 'flink'"):
        asked(made, sql, "flink")
    made.close()


def test_a_service_without_spark_says_so(alone: QueryEngine) -> None:
    with pytest.raises(InvalidError, match="has no Spark"):
        asked(alone, "SELECT * FROM sales", "spark")


def test_explain_tells_who_works(engine: QueryEngine) -> None:
    told = rows(engine, "EXPLAIN SELECT city, sum(qty) FROM sales GROUP BY city")
    assert "Spark at local[2]" in told[0]["explain_value"]


def test_errors_are_those_of_one_node(engine: QueryEngine, alone: QueryEngine) -> None:
    sql = "SELECT sum(CAST(city AS INT)) FROM sales WHERE city = 'Ulm'"
    for made in (engine, alone):
        with pytest.raises(InvalidError, match="Could not convert string 'Ulm'"):
            rows(made, sql)


class BrokenSpark(SharedSpark):
    """A Spark that cannot be reached."""

    def session(self) -> SparkSession:
        raise UnavailableError("Spark at spark://nowhere cannot be reached: connection refused")


def test_without_its_spark_a_node_answers_alone_unless_that_is_asked_for(
    served: ServedLake, spark: SparkSession, alone: QueryEngine
) -> None:
    made = QueryEngine(served.lake, served, QueryLimits(spark_bytes=0, seconds=600.0), spark=BrokenSpark(spark))
    sql = "SELECT city, sum(qty) FROM sales GROUP BY city"
    assert same(answer(made, sql), answer(alone, sql), is_ordered=False)
    with pytest.raises(UnavailableError, match="Spark"):
        asked(made, sql, "spark")
    made.close()


def test_a_query_on_spark_can_be_cancelled(served: ServedLake, shared: SharedSpark) -> None:
    made = QueryEngine(served.lake, served, QueryLimits(seconds=600.0), spark=shared)
    began = shared.asked
    many = served.add("CREATE TABLE many (n BIGINT)", "many", writes=False)
    many.table.write(pa.table({"n": range(200_000)}))
    # Some billions of pairs: longer than anybody waits.
    sql = (
        "SELECT sum((s.qty + many.n + u.payload.age) % 7) "
        "FROM many JOIN sales s ON true JOIN users u ON true JOIN cities c ON true"
    )

    def cancel() -> None:
        jobs = shared.spark.sparkContext.statusTracker()
        while shared.asked == began or not jobs.getActiveJobsIds():
            threading.Event().wait(0.05)
        while not made.cancel("slow"):
            threading.Event().wait(0.05)

    other = threading.Thread(target=cancel)
    other.start()
    with pytest.raises(InvalidError, match="cancelled"):
        asked(made, sql, "spark", "slow")
    other.join()
    made.close()


def test_splits_are_grouped_by_their_bytes() -> None:
    splits = [PlannedSplit(f"s{number}", size << 20) for number, size in enumerate([100, 20, 20, 300, 1, 1])]
    assert split_groups(splits) == [("s0", "s1"), ("s2",), ("s3",), ("s4", "s5")]
    assert split_groups([]) == []
