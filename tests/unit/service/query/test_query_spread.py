"""A query that is spread over three workers gives what one node gives."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakelet.errors import CorruptionError, InvalidError
from lakelet.service.query.query_engine import QueryEngine, QueryRequest
from tests.tiers.examples import FIRST_SEED, examples
from tests.unit.service.query.embedded_workers import EVERYTHING, EmbeddedWorkers, spread_engine
from tests.unit.service.query.generated_queries import generated
from tests.unit.service.query.nested_queries import nested
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
        assert sales.writer is not None
        assert cities.writer is not None
        assert users.writer is not None
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
    partials = served.add("CREATE TABLE lakelet_partials (id BIGINT NOT NULL, kind INT)", "lakelet_partials")
    assert partials.writer is not None
    partials.writer.put_many([{"id": number, "kind": number % 2} for number in range(9)])
    partials.writer.flush()


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


def answer(engine: QueryEngine, sql: str, params: Any = None) -> pa.Table:
    with engine.run(QueryRequest(sql, params)) as result:
        return result.reader().read_all()


def _shown(value: Any) -> Any:
    """A value that sorts, with floating-point numbers to twelve digits."""
    if isinstance(value, float):
        return (1, "nan" if math.isnan(value) else f"{value + 0.0:.11e}")
    return (0, "") if value is None else (2, repr(value))


def same(found: pa.Table, wanted: pa.Table, *, is_ordered: bool) -> bool:
    if found.schema != wanted.schema:
        return False
    given = [
        [tuple(map(_shown, one)) for one in zip(*(c.to_pylist() for c in t.columns), strict=True)]
        for t in (found, wanted)
    ]
    return given[0] == given[1] if is_ordered else sorted(given[0]) == sorted(given[1])


@pytest.mark.parametrize("made", [generated, nested])
def test_generated_queries_give_the_same_rows(
    alone: QueryEngine,
    spread: tuple[QueryEngine, EmbeddedWorkers],
    made: Callable[[random.Random], tuple[str, bool]],
) -> None:
    engine, workers = spread
    rng = random.Random(11 + FIRST_SEED)
    together = 0
    for _ in range(examples(40)):
        sql, is_ordered = made(rng)
        before = len(workers.asked)
        assert same(answer(engine, sql), answer(alone, sql), is_ordered=is_ordered), sql
        together += len(workers.asked) > before
    assert together > examples(40) * 0.8


@pytest.mark.parametrize("after", [0, 1])
def test_a_worker_that_is_lost_leaves_no_rows_behind(
    alone: QueryEngine, spread: tuple[QueryEngine, EmbeddedWorkers], after: int
) -> None:
    engine, workers = spread
    workers.lost_after = {"b": after}
    for sql in ("SELECT s.* FROM sales s", "SELECT city, count(*), sum(qty) FROM sales GROUP BY city"):
        assert same(answer(engine, sql), answer(alone, sql), is_ordered=False)
    assert {"b", "c"} == {node for node, _ in workers.asked}


def test_without_any_worker_one_node_answers(alone: QueryEngine, spread: tuple[QueryEngine, EmbeddedWorkers]) -> None:
    engine, workers = spread
    workers.own = None
    workers.lost_after = {"a": 1, "b": 0, "c": 1}
    sql = "SELECT city, count(*), avg(price) FROM sales GROUP BY city"
    assert same(answer(engine, sql), answer(alone, sql), is_ordered=False)
    assert {node for node, _ in workers.asked} == {"a", "b", "c"}


_NOT_SPLIT = "SELECT a.id, a.city FROM sales a JOIN sales b ON a.id = b.id ORDER BY a.id DESC LIMIT 50"
_LEFT = (
    "WITH g AS (SELECT city, sum(big) AS b, count(*) AS n FROM sales GROUP BY city) SELECT * FROM g ORDER BY n, city"
)


@pytest.mark.parametrize(
    "sql", [_NOT_SPLIT, _LEFT, "SELECT count(*) FROM sales s WHERE price > (SELECT avg(price) FROM sales)"]
)
def test_a_node_that_is_no_worker_has_others_combine(
    alone: QueryEngine, spread: tuple[QueryEngine, EmbeddedWorkers], sql: str
) -> None:
    engine, workers = spread
    workers.own = None
    assert same(answer(engine, sql), answer(alone, sql), is_ordered=True)
    told = {one["explain_key"]: one["explain_value"] for one in rows(engine, f"EXPLAIN {sql}")}
    assert told["run by" if sql == _NOT_SPLIT else "combined by"] in ("a", "b", "c")
    assert bool([1 for _, fragment in workers.asked if fragment.given]) == (sql != _NOT_SPLIT)


@pytest.mark.parametrize("made", [generated, nested])
def test_what_others_combine_is_the_same(
    alone: QueryEngine,
    spread: tuple[QueryEngine, EmbeddedWorkers],
    made: Callable[[random.Random], tuple[str, bool]],
) -> None:
    engine, workers = spread
    workers.own = None
    rng = random.Random(12 + FIRST_SEED)
    for _ in range(examples(20)):
        sql, is_ordered = made(rng)
        assert same(answer(engine, sql), answer(alone, sql), is_ordered=is_ordered), sql
    assert workers.asked


def test_what_is_not_split_runs_where_there_is_least_to_do(
    alone: QueryEngine, spread: tuple[QueryEngine, EmbeddedWorkers], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, workers = spread
    # Three, besides the one that asks.
    monkeypatch.setattr(QueryEngine, "load", property(lambda _: 4))
    workers.busy = {"a": 0.0, "b": 2.0, "c": 1.0}
    assert same(answer(engine, _NOT_SPLIT), answer(alone, _NOT_SPLIT), is_ordered=True)
    assert [node for node, _ in workers.asked] == ["c"]
    workers.asked.clear()
    # It is not handed over for one query more.
    workers.busy = {"a": 9.0, "b": 2.0, "c": 2.0}
    assert same(answer(engine, _NOT_SPLIT), answer(alone, _NOT_SPLIT), is_ordered=True)
    assert not workers.asked


def test_a_node_that_combines_and_is_lost_leaves_it_to_another(
    alone: QueryEngine, spread: tuple[QueryEngine, EmbeddedWorkers]
) -> None:
    engine, workers = spread
    workers.own = None
    workers.lost_after = {"b": 1}
    workers.busy = {"a": 1.0, "c": 1.0}
    assert same(answer(engine, _LEFT), answer(alone, _LEFT), is_ordered=True)
    combining = [node for node, fragment in workers.asked if fragment.given]
    assert combining[0] == "b"
    assert len(combining) > 1


_GROUPS = "SELECT id, count(*) AS n, sum(price) AS s FROM sales GROUP BY id"


@pytest.mark.parametrize("lost", [{}, {"b": 1}, {"a": 1, "b": 1, "c": 1}], ids=["none", "one", "all"])
def test_a_large_answer_is_whole_whoever_is_lost_in_the_middle(
    alone: QueryEngine,
    spread: tuple[QueryEngine, EmbeddedWorkers],
    monkeypatch: pytest.MonkeyPatch,
    lost: dict[str, int],
) -> None:
    monkeypatch.setattr("lakelet.service.query.gathered_rows._MEMORY_BYTES", 0)
    engine, workers = spread
    workers.own = None
    workers.lost_after = lost
    workers.busy = {"a": 1.0, "c": 1.0}
    assert same(answer(engine, _GROUPS), answer(alone, _GROUPS), is_ordered=False)
    assert next(node for node, fragment in workers.asked if fragment.given) == "b"


_WIDE = "SELECT s.id, r.range AS n, rpad('', 1000, 'x') AS x FROM sales s, range(50) r"


def test_rows_that_are_passed_on_come_in_small_parts(
    alone: QueryEngine, spread: tuple[QueryEngine, EmbeddedWorkers]
) -> None:
    engine, workers = spread
    workers.own = None
    with engine.run(QueryRequest(_WIDE)) as result:
        batches = list(result.batches())
    assert workers.asked
    # 20 MB, of 122,880 rows at most.
    assert max(batch.nbytes for batch in batches) < 6 << 20
    found = pa.Table.from_batches(batches).select(["id", "n"])
    assert same(found, answer(alone, _WIDE).select(["id", "n"]), is_ordered=False)
    with engine.run(QueryRequest(_WIDE)) as result:
        assert max(map(len, result.json_parts())) < 12 << 20


def test_a_large_answer_whose_file_is_cut_off_ends_with_an_error(
    spread: tuple[QueryEngine, EmbeddedWorkers], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("lakelet.service.query.gathered_rows._MEMORY_BYTES", 0)
    monkeypatch.setenv("LAKELET_TMPDIR", str(tmp_path))
    engine, workers = spread
    workers.own = None
    with engine.run(QueryRequest(_GROUPS)) as result:
        # What the workers gather for one another is gone: the answer is there.
        (path,) = (one for one in tmp_path.rglob("lakelet-gathered-*/*") if one.is_file())
        with pa.ipc.open_stream(path.read_bytes()) as reader:
            none = pa.BufferOutputStream()
            pa.ipc.new_stream(none, reader.schema).close()
        path.write_bytes(none.getvalue())
        with pytest.raises(CorruptionError, match="cut off"):
            result.reader().read_all()


def test_a_node_that_is_no_worker_sends_what_it_has_buffered(
    alone: QueryEngine, spread: tuple[QueryEngine, EmbeddedWorkers]
) -> None:
    engine, workers = spread
    workers.own = None
    for sql in ("SELECT max(id), count(kind) FROM sales", "SELECT country, sum(people) FROM cities GROUP BY country"):
        assert same(answer(engine, sql), answer(alone, sql), is_ordered=False)
    assert {node for node, _ in workers.asked} == {"a", "b", "c"}


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT payload.city, count(*), avg(payload.age) FROM users GROUP BY payload.city",
        "SELECT u.city, sum(age) FROM users u WHERE u.age > 2 GROUP BY u.city",
        "SELECT * FROM users WHERE payload.age > 3",
        "SELECT *, dt FROM users WHERE timestamp >= '2026-01-02'",
        "SELECT * EXCLUDE (payload) FROM users ORDER BY id LIMIT 4",
        "SELECT dt, count(DISTINCT age), count(DISTINCT id) FROM users GROUP BY dt",
        "SELECT c.country, count(*), min(c.people) FROM cities c GROUP BY c.country",
        "SELECT u.id, c.people FROM users u LEFT JOIN cities c ON u.city = c.name",
        "SELECT count(*), sum(qty), max(city), count(DISTINCT city) FROM sales WHERE id % 2 = 7",
        "SELECT city, count(*) FROM sales WHERE id % 2 = 7 GROUP BY city",
        "SELECT count(*) FROM sales WHERE kind = 1",
        "SELECT *, c.name FROM sales s JOIN cities c ON s.city = c.name",
        "SELECT id, id, id AS id FROM sales WHERE id > 3",
        "SELECT city, row_number() OVER (ORDER BY id) FROM sales",
        "SELECT kind, city, count(*) FROM sales GROUP BY ROLLUP (kind, city)",
        "SELECT median(id) FROM sales",
        "WITH x AS (SELECT id FROM sales) SELECT count(*) FROM x",
        "SELECT id FROM sales WHERE kind = 1 UNION ALL SELECT people FROM cities",
        "SELECT sum(id ORDER BY id) FROM sales",
        "SELECT max(id, 2) FROM sales",
        "SELECT id FROM sales WHERE id IN (SELECT max(id) FROM sales)",
        "SELECT DISTINCT ON (city) city FROM sales ORDER BY city",
        'SELECT s.id AS "An id", \'x\' AS "count(*)" FROM default.sales s WHERE "id" > 3',
    ],
)
def test_such_queries_are_spread(alone: QueryEngine, spread: tuple[QueryEngine, EmbeddedWorkers], sql: str) -> None:
    engine, workers = spread
    assert same(answer(engine, sql), answer(alone, sql), is_ordered=False)
    assert workers.asked


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM sales LIMIT 3",
        "SELECT count(*) FROM sales",
        "SELECT s.id FROM sales s FULL JOIN cities c ON c.name = s.city",
        "SELECT a.id FROM sales a JOIN sales b ON a.id = b.id",
        "SELECT upper(city) AS city, count(*) FROM sales GROUP BY city",
        "SELECT city COLLATE nocase, count(*) FROM sales GROUP BY 1",
        "SELECT table_name FROM information_schema.tables ORDER BY ALL",
        "WITH RECURSIVE r AS (SELECT 1 AS a UNION ALL SELECT a + 1 FROM r WHERE a < 3) SELECT id FROM sales JOIN r ON a = kind",
        "SELECT id, random() FROM sales",
        "SELECT count(*) FROM (SELECT id FROM sales LIMIT 9)",
    ],
)
def test_such_queries_run_on_one_node(
    alone: QueryEngine, spread: tuple[QueryEngine, EmbeddedWorkers], sql: str
) -> None:
    engine, workers = spread
    assert answer(engine, sql).num_rows == answer(alone, sql).num_rows
    assert not workers.asked


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*) AS lakelet_c0, kind FROM sales GROUP BY kind ORDER BY kind",
        "SELECT id AS LAKELET_C1, -id AS other FROM sales ORDER BY other",
        "SELECT kind, count(*) FROM lakelet_partials GROUP BY kind ORDER BY 1",
        "SELECT CAST(kind AS TINYINT) AS k FROM lakelet_partials x ORDER BY 1",
        "SELECT u.dt FROM sales s LEFT JOIN users u USING (dt) ORDER BY dt NULLS FIRST",
        "SELECT u.* EXCLUDE (id, timestamp, payload) FROM sales s LEFT JOIN users u USING (dt) ORDER BY dt NULLS FIRST",
    ],
)
def test_names_that_hide_others_stay_on_one_node(
    alone: QueryEngine, spread: tuple[QueryEngine, EmbeddedWorkers], sql: str
) -> None:
    engine, workers = spread
    assert same(answer(engine, sql), answer(alone, sql), is_ordered=True)
    assert not workers.asked


@pytest.mark.parametrize(
    ("sql", "params"),
    [
        ("SELECT city, count(*), sum(qty + $1) FROM sales WHERE kind > $1 GROUP BY city", [1]),
        ("SELECT kind + ? AS more, min(price) FROM sales WHERE city = ? GROUP BY more", [2, "Ulm"]),
        ("SELECT max(weight * $factor), count($flag) FROM sales WHERE flag = $flag", {"factor": 0.5, "flag": True}),
        ("SELECT id, $text AS text FROM sales WHERE qty < $most", {"text": "it's", "most": 2**40}),
        ("SELECT id FROM sales WHERE dt >= $day AND id > $least", {"day": "2026-01-02", "least": -5}),
    ],
)
def test_parameters_are_values(
    alone: QueryEngine, spread: tuple[QueryEngine, EmbeddedWorkers], sql: str, params: Any
) -> None:
    engine, workers = spread
    assert same(answer(engine, sql, params), answer(alone, sql, params), is_ordered=False)
    assert workers.asked


_HIDDEN = "WITH b AS (SELECT people AS r FROM cities) "
_GROUPED = "WITH cities AS (SELECT kind, count(*) AS people FROM sales GROUP BY kind) "


@pytest.mark.parametrize(
    "sql",
    [
        # Compared by the collation of the query.
        "SELECT count(*) FROM sales WHERE city IN (SELECT upper(city) COLLATE nocase FROM sales WHERE id < 20)",
        "SELECT count(*) FROM sales WHERE city = (SELECT max(city) COLLATE nocase FROM sales WHERE city ILIKE 'ulm')",
        # Two rows, of no groups.
        "SELECT count(*), sum(kind) FROM sales GROUP BY GROUPING SETS ((), ())",
        "SELECT count(*), count(DISTINCT kind) FROM sales WHERE id % 7 = 9 GROUP BY GROUPING SETS ((), (), ())",
        # `cities` is the table where b is written, and something else where it is named.
        f"{_HIDDEN}SELECT sum(r) FROM ({_GROUPED}SELECT b.r FROM b, cities, cities AS c)",
        f"{_HIDDEN}SELECT id, ({_GROUPED}SELECT sum(r) FROM b, cities, cities AS c) AS v FROM sales WHERE id < 50",
        "WITH a AS (SELECT count(*) AS n FROM cities), b AS (SELECT n FROM a) SELECT a.n + x.n AS v FROM a, (WITH a AS "
        "(SELECT sum(kind) AS n FROM sales) SELECT b.n FROM b, a, a AS c) AS x, a AS d",
        # A literal ends at a NUL.
        "SELECT id, (SELECT max(name) || chr(0) || 'x' FROM cities) AS m FROM sales",
        "SELECT id FROM sales WHERE kind = 1 AND city || chr(0) IN (SELECT name || chr(0) FROM cities)",
        # One clock for all of a query.
        "SELECT id, now() = (SELECT max(now()) FROM cities) AS same FROM sales WHERE kind = 1",
        "SELECT kind, current_timestamp = (SELECT max(current_timestamp) FROM cities) AS same FROM sales GROUP BY kind",
    ],
)
@pytest.mark.parametrize("own", ["a", None])
def test_such_queries_are_the_same_wherever_they_run(
    alone: QueryEngine, spread: tuple[QueryEngine, EmbeddedWorkers], sql: str, own: str | None
) -> None:
    engine, workers = spread
    workers.own = own
    assert same(answer(engine, sql), answer(alone, sql), is_ordered=False)


def test_a_parameter_with_a_nul_is_not_cut(alone: QueryEngine, spread: tuple[QueryEngine, EmbeddedWorkers]) -> None:
    sql = "SELECT id, strlen($1) AS size FROM sales WHERE city || chr(0) || 'x' = $2"
    params = ["a\0b", "Ulm\0x"]
    found = answer(alone, sql, params)
    assert found.num_rows
    assert same(answer(spread[0], sql, params), found, is_ordered=False)


def test_a_long_value_is_computed_where_it_is_needed(
    alone: QueryEngine, spread: tuple[QueryEngine, EmbeddedWorkers]
) -> None:
    engine, workers = spread
    sql = "SELECT id, (SELECT rpad(max(city), 9000, 'ab') FROM sales) AS long FROM sales WHERE kind = 1"
    assert same(answer(engine, sql), answer(alone, sql), is_ordered=False)
    assert workers.asked
    assert max(len(fragment.sql) for _, fragment in workers.asked) < 1000


def test_an_error_is_that_of_one_node(alone: QueryEngine, spread: tuple[QueryEngine, EmbeddedWorkers]) -> None:
    engine, workers = spread
    for sql in ("SELECT CAST(city AS BIGINT) AS n FROM sales", "SELECT no_such FROM sales"):
        errors = []
        for one in (engine, alone):
            with pytest.raises(InvalidError) as caught:
                answer(one, sql)
            errors.append(str(caught.value))
        assert errors[0].split(":")[0] == errors[1].split(":")[0]
    assert workers.asked


def test_a_small_query_stays_on_one_node(served: ServedLake) -> None:
    with spread_engine(served, replace(EVERYTHING, spread_bytes=1 << 30)) as (engine, workers):
        answer(engine, "SELECT city, count(*) FROM sales GROUP BY city")
        assert not workers.asked


def test_little_is_sent_to_other_nodes(served: ServedLake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lakelet.service.query.query_spread.MOST_SENT_BYTES", 100)
    with spread_engine(served) as (engine, workers):
        # Buffered rows of the table that is split stay here.
        assert rows(engine, "SELECT count(id) AS c FROM sales") == [{"c": 400}]
        assert workers.asked
        workers.asked.clear()
        answer(engine, "SELECT s.id, c.people FROM sales s JOIN cities c ON s.city = c.name")
        workers.own = None
        assert rows(engine, "SELECT count(id) AS c FROM sales") == [{"c": 400}]
        assert not workers.asked


def test_a_deep_query_is_answered(alone: QueryEngine, spread: tuple[QueryEngine, EmbeddedWorkers]) -> None:
    sql = f"SELECT id, {' + '.join(['1'] * 150)} AS n FROM sales WHERE id < 5"
    assert same(answer(spread[0], sql), answer(alone, sql), is_ordered=False)


def test_more_rows_than_are_kept_in_memory(
    alone: QueryEngine, spread: tuple[QueryEngine, EmbeddedWorkers], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lakelet.service.query.gathered_rows._MEMORY_BYTES", 100)
    assert same(answer(spread[0], "SELECT * FROM sales"), answer(alone, "SELECT * FROM sales"), is_ordered=False)


def test_a_cancelled_query_cancels_its_fragments(served: ServedLake) -> None:
    with spread_engine(served) as (engine, workers):
        workers.when_asked = lambda: engine.cancel("one")
        with pytest.raises(InvalidError, match="cancelled"):
            engine.run(QueryRequest("SELECT city, count(*) FROM sales GROUP BY city", request_id="one"))
        workers.when_asked = lambda: None
        # All turns are free again.
        for _ in range(9):
            assert rows(engine, "SELECT count(*) AS c FROM sales WHERE id >= 0") == [{"c": 400}]
