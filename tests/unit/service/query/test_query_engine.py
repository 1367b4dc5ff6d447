"""Queries of the service: the seed's SQL, buffered rows, names, limits, and how a query ends."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from lakelet.errors import InvalidError, LakeletError, NotFoundError, OverloadedError, PermissionDeniedError
from lakelet.service.query.query_engine import QueryEngine, QueryRequest
from lakelet.service.query.query_limits import QueryLimitError, QueryLimits
from lakelet.service.query.query_run import QueryCancelledError
from tests.unit.service.query.served_lake import ORDERS, USERS, ServedLake, engine_of, row, rows, served_lake

ENDLESS = "SELECT count(*) FROM range(100000000000) a, range(100000) b WHERE a.range % 7 = b.range"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedLake]:
    with served_lake(tmp_path_factory.mktemp("served")) as made:
        users, orders = made.add(USERS, "users"), made.add(ORDERS, "orders")
        assert users.writer is not None
        assert orders.writer is not None
        users.writer.put_many([row("user-123", name="张三", age=25, city="北京")])
        users.writer.flush()
        users.writer.put_many([row("user-124", "2024-01-02T03:04:05.5Z", name="Bob", age=19)])
        orders.writer.put_many([row("o1", user_id="user-123", amount=1.5), row("o2", user_id="user-123", amount=2.0)])
        made.add(
            "CREATE TABLE bare (id STRING NOT NULL, timestamp TIMESTAMP(6) WITH LOCAL TIME ZONE, "
            "payload_rest STRING, dt DATE) PARTITIONED BY (dt)",
            "bare",
        )
        made.add("CREATE TABLE plain (id BIGINT, dt DATE, name STRING)", "plain", hides_day=False)
        made.lake.sql("INSERT INTO plain VALUES (1, DATE '2024-01-01', 'x')")
        yield made


@pytest.fixture(scope="module")
def engine(served: ServedLake) -> Iterator[QueryEngine]:
    with engine_of(served) as made:
        yield made


def test_the_count_of_the_seed(engine: QueryEngine) -> None:
    sql = "SELECT COUNT(*) FROM users WHERE id = 'user-123' AND timestamp >= '2023-10-01' AND payload.age > 20"
    assert rows(engine, sql) == [{"count_star()": 1}]


def test_the_join_of_the_seed(engine: QueryEngine) -> None:
    sql = (
        "SELECT u.payload.name, COUNT(o.id) as order_count FROM users u LEFT JOIN orders o ON u.id = o.payload.user_id "
        "GROUP BY u.payload.name"
    )
    found = rows(engine, sql)
    assert sorted(found, key=str) == [{"name": "Bob", "order_count": 0}, {"name": "张三", "order_count": 2}]


def test_the_join_of_the_seed_with_bare_names(engine: QueryEngine) -> None:
    sql = "SELECT u.name, COUNT(o.id) FROM users u LEFT JOIN orders o ON u.id = o.user_id GROUP BY u.name"
    found = rows(engine, sql)
    assert sorted(found, key=str) == [{"name": "Bob", "count(o.id)": 0}, {"name": "张三", "count(o.id)": 2}]


def test_the_selection_of_the_seed(engine: QueryEngine) -> None:
    sql = "SELECT * FROM users WHERE id = 'user-123' AND timestamp >= '2023-01-01'"
    assert rows(engine, sql) == [
        {
            "id": "user-123",
            "timestamp": "2023-10-27T10:00:00Z",
            "payload": {"name": "张三", "age": 25, "city": "北京"},
            "payload_rest": None,
        }
    ]


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        ("SELECT name FROM users WHERE age = 19", [{"name": "Bob"}]),
        ("SELECT NAME FROM Users WHERE AGE = 19", [{"NAME": "Bob"}]),
        ("SELECT max(age) AS a FROM users", [{"a": 25}]),
        ("SELECT id FROM users u WHERE EXISTS (SELECT 1 FROM orders WHERE user_id = u.id)", [{"id": "user-123"}]),
        ("SELECT id FROM users u WHERE (SELECT sum(amount) FROM orders o WHERE o.user_id = u.id) > 3", [{"id": "user-123"}]),
        ("SELECT user_id, name FROM orders JOIN users ON user_id = users.id LIMIT 1", [{"user_id": "user-123", "name": "张三"}]),
        ("SELECT name AS n FROM users ORDER BY age DESC", [{"n": "张三"}, {"n": "Bob"}]),
        ("SELECT upper(name) AS name FROM users WHERE name = 'BOB'", [{"name": "BOB"}]),
        ("WITH x AS (SELECT name, id FROM users) SELECT x.name FROM x WHERE x.id = 'user-124'", [{"name": "Bob"}]),
        ("SELECT dt FROM users WHERE id = 'user-124'", [{"dt": "2024-01-02"}]),
        ("SELECT * EXCLUDE (payload, timestamp) FROM users WHERE dt = '2024-01-02'", [{"id": "user-124", "payload_rest": None}]),
        ("SELECT * EXCLUDE payload FROM bare WHERE dt = '2024-01-02'", []),
        ("SELECT u.* EXCLUDE (timestamp, payload) FROM users u WHERE u.dt = '2024-01-02'",
         [{"id": "user-124", "payload_rest": None}]),
        ("FROM users WHERE dt < '2000-01-01'", []),
        ('SELECT id FROM "default".users WHERE id = \'user-124\'', [{"id": "user-124"}]),
        ("SELECT id FROM default.users WHERE id = 'user-124'", [{"id": "user-124"}]),
        ("SELECT count(*) AS n FROM bare", [{"n": 0}]),
        ("SELECT payload FROM bare", []),
        ("SELECT count(*) AS n FROM users", [{"n": 2}]),
        ("SELECT id FROM users ORDER BY id LIMIT 1", [{"id": "user-123"}]),
        ("SELECT 1 AS a; ", [{"a": 1}]),
        ("SELECT name, name, upper(name) AS u FROM users WHERE name = 'Bob' AND name > ''",
         [{"name": "Bob", "name_1": "Bob", "u": "BOB"}]),
        ("-- begin\nSELECT /* ; */ ';' AS a", [{"a": ";"}]),
    ],
)  # fmt: skip
def test_queries_and_their_rows(engine: QueryEngine, sql: str, found: list[dict[str, object]]) -> None:
    assert rows(engine, sql) == found


def test_the_day_is_hidden_from_a_star_alone(engine: QueryEngine) -> None:
    assert list(rows(engine, "SELECT * FROM users LIMIT 1")[0]) == ["id", "timestamp", "payload", "payload_rest"]
    both = rows(engine, "SELECT *, dt FROM users WHERE dt = '2024-01-02'")
    assert list(both[0]) == ["id", "timestamp", "payload", "payload_rest", "dt"]
    joined = rows(engine, "SELECT * FROM users u JOIN orders o ON u.id = o.user_id WHERE u.dt > '2000-01-01' LIMIT 1")
    assert [name for name in joined[0] if "dt" in name] == []
    assert list(rows(engine, "FROM users WHERE dt = '2024-01-02'")[0]) == ["id", "timestamp", "payload", "payload_rest"]


def test_a_table_of_others_shows_its_day(served: ServedLake, engine: QueryEngine) -> None:
    assert rows(engine, "SELECT * FROM plain WHERE dt = '2024-01-01'") == [{"id": 1, "dt": "2024-01-01", "name": "x"}]


def test_a_column_goes_before_a_payload_field(engine: QueryEngine) -> None:
    assert rows(engine, "SELECT DISTINCT name FROM plain, users") == [{"name": "x"}]


@pytest.mark.parametrize("sql", ["SELECT payload.agee FROM users", "SELECT u.agee FROM users u", "SELECT agee FROM users",
                                 "SELECT u.payload.agee FROM users u", "SELECT 1 FROM users WHERE payload['agee'] = 1",
                                 "SELECT (SELECT agee) FROM users"])  # fmt: skip
def test_an_unknown_payload_field_names_known_ones(engine: QueryEngine, sql: str) -> None:
    with pytest.raises(InvalidError, match="age") as caught:
        rows(engine, sql)
    assert "city" in str(caught.value)
    assert "agee" in str(caught.value)


def test_a_payload_without_fields_says_so(engine: QueryEngine) -> None:
    for sql in ("SELECT payload.x FROM bare", "SELECT x FROM bare", "SELECT b.x FROM bare b"):
        with pytest.raises(InvalidError, match="no field yet"):
            rows(engine, sql)


def test_a_payload_field_goes_before_a_function_of_the_session(tmp_path: Path) -> None:
    statement = USERS.replace("name STRING", "user STRING, current_role STRING")
    with served_lake(tmp_path) as served, engine_of(served) as engine:
        users = served.add(statement, "users")
        assert users.writer is not None
        users.writer.put_many([row("a", user="x", current_role="y")])
        assert rows(engine, "SELECT user, current_role AS r, \"user\" AS q FROM users WHERE user = 'x'") == [
            {"user": "x", "r": "y", "q": "x"}
        ]
        assert rows(engine, "SELECT user FROM (SELECT 1 AS user), users") == [{"user": 1}]
        for sql in ("SELECT session_user FROM users", "SELECT user", "SELECT current_catalog FROM users"):
            with pytest.raises(InvalidError):
                rows(engine, sql)


def test_an_ambiguous_payload_field(engine: QueryEngine) -> None:
    with pytest.raises(InvalidError, match=r"ambiguous: it may be a\.payload\.name or b\.payload\.name"):
        rows(engine, "SELECT name FROM users a, users b")


def test_unknown_tables_and_syntax_errors_have_their_place(engine: QueryEngine) -> None:
    with pytest.raises(NotFoundError, match=r"line 1, column 15: table 'userz' is not served.*users"):
        rows(engine, "SELECT * FROM userz")
    with pytest.raises(InvalidError, match="line 2, column"):
        rows(engine, "SELECT *\nFROM users WHERE")


def test_one_statement_a_request(engine: QueryEngine) -> None:
    for sql in ("SELECT 1; SELECT 2", "", ";", "-- nothing"):
        with pytest.raises(InvalidError, match="expected one statement"):
            rows(engine, sql)


def test_a_long_text(engine: QueryEngine) -> None:
    ids = ", ".join(f"'user-{number}'" for number in range(4000))
    assert rows(engine, f"SELECT count(*) AS n FROM users WHERE id IN ({ids})") == [{"n": 2}]
    assert len(rows(engine, f"SELECT id FROM users WHERE id IN ({ids})")) == 2


def test_parameters(engine: QueryEngine) -> None:
    assert rows(engine, "SELECT id FROM users WHERE age > $least AND id <> $id", {"least": 18, "id": "user-123"}) == [
        {"id": "user-124"}
    ]
    assert rows(engine, "SELECT id FROM users WHERE payload.age = ?", [25]) == [{"id": "user-123"}]
    assert rows(engine, "SELECT count(*) AS n FROM users WHERE id = ?", ["user-123"]) == [{"n": 1}]
    with pytest.raises(InvalidError):
        rows(engine, "SELECT $a")


def test_the_zone_of_a_query_is_its_own(engine: QueryEngine) -> None:
    sql = "SELECT id FROM users WHERE timestamp >= '2023-10-27 18:00:00' ORDER BY id"
    assert [one["id"] for one in rows(engine, sql, time_zone="Asia/Shanghai")] == ["user-123", "user-124"]
    assert [one["id"] for one in rows(engine, sql)] == ["user-124"]
    with pytest.raises(InvalidError):
        rows(engine, sql, time_zone="Nowhere/Else")


def test_values_as_json(engine: QueryEngine) -> None:
    sql = (
        "SELECT 9007199254740993 AS i, 170141183460469231731687303715884105727::HUGEINT AS h, 1.50::DECIMAL(9, 2) AS d, "
        "'nan'::DOUBLE AS n, '-inf'::FLOAT AS f, TIMESTAMPTZ '2024-01-01 00:00:00.25+02' AS t, DATE '2024-01-01' AS y, "
        "[1.5::DECIMAL(2, 1)] AS l, {'a': {'b': 'inf'::DOUBLE}} AS s, MAP {'k': 1} AS m, 'ab'::BLOB AS b, NULL AS z, 1 AS i"
    )
    assert rows(engine, sql) == [
        {
            "i": 9007199254740993,
            "h": 170141183460469231731687303715884105727,
            "d": "1.50",
            "n": "NaN",
            "f": "-Infinity",
            "t": "2023-12-31T22:00:00.25Z",
            "y": "2024-01-01",
            "l": ["1.5"],
            "s": {"a": {"b": "Infinity"}},
            "m": {"k": 1},
            "b": "YWI=",
            "z": None,
            "i_1": 1,
        }
    ]


def test_rows_as_arrow(engine: QueryEngine) -> None:
    result = engine.run(QueryRequest("SELECT u.id, o.id FROM users u JOIN orders o ON o.user_id = u.id ORDER BY 2"))
    assert result.schema.names == ["id", "id_1"]
    assert result.reader().read_all().to_pylist() == [
        {"id": "user-123", "id_1": "o1"},
        {"id": "user-123", "id_1": "o2"},
    ]
    assert engine.run(QueryRequest("SELECT count(*) FROM users")).reader().read_all().to_pylist() == [
        {"count_star()": 2}
    ]


def test_a_json_array_in_parts_keeps_the_order(engine: QueryEngine) -> None:
    sql = "SELECT range AS i FROM range(300000) ORDER BY i DESC"
    parts = list(engine.run(QueryRequest(sql)).json_parts())
    assert len(parts) > 1
    assert [one["i"] for one in json.loads(b"".join(parts))] == list(range(299999, -1, -1))


def test_explain_shows_no_paths(served: ServedLake, engine: QueryEngine) -> None:
    for word in ("EXPLAIN", "explain /* x */ analyze"):
        found = rows(engine, f"{word} SELECT u.name FROM users u JOIN orders o ON u.id = o.user_id")
        assert "JOIN" in found[0]["explain_value"]
        assert str(served.wal_folder.parent) not in str(found)
        assert ".parquet" not in str(found)


def test_information_schema_shows_served_tables_alone(served: ServedLake, engine: QueryEngine) -> None:
    served.lake.sql("CREATE TABLE IF NOT EXISTS secret (id BIGINT)")
    sql = "SELECT table_name FROM information_schema.tables ORDER BY tables.table_name"
    assert [one["table_name"] for one in rows(engine, sql)] == ["bare", "orders", "plain", "users"]
    columns = rows(engine, "SELECT c.column_name FROM information_schema.columns c WHERE table_name = 'users'")
    assert [one["column_name"] for one in columns] == ["id", "timestamp", "payload", "payload_rest"]
    assert rows(engine, "SELECT schema_name FROM INFORMATION_SCHEMA.schemata") == [{"schema_name": "default"}]
    assert str(served.wal_folder.parent) not in str(rows(engine, "FROM information_schema.columns"))
    for sql in ("FROM secret", "FROM default.secret", "FROM information_schema.views", "FROM duckdb_tables"):
        with pytest.raises((PermissionDeniedError, NotFoundError)):
            rows(engine, sql)


def test_a_request_sees_the_tables_that_it_is_given(served: ServedLake, engine: QueryEngine) -> None:
    few = ServedLake(served.lake, served.wal_folder, {"users": served.tables["users"]})
    assert json.loads(engine.run(QueryRequest("SELECT count(*) AS n FROM users"), few).json()) == [{"n": 2}]
    with pytest.raises(NotFoundError):
        engine.run(QueryRequest("SELECT * FROM orders"), few)
    listed = engine.run(QueryRequest("SELECT table_name FROM information_schema.tables"), few).json()
    assert json.loads(listed) == [{"table_name": "users"}]


# ---------------------------------------------------------------------- limits


def test_limits_of_rows_and_bytes(served: ServedLake) -> None:
    with engine_of(served, QueryLimits(rows=10)) as engine:
        assert len(rows(engine, "SELECT * FROM range(10)")) == 10
        with pytest.raises(QueryLimitError, match="more than 10 rows"):
            rows(engine, "SELECT * FROM range(11)")
        with pytest.raises(QueryLimitError, match="more than 10 rows"):
            list(engine.run(QueryRequest("SELECT * FROM range(11)")).batches())
    with (
        engine_of(served, QueryLimits(bytes=1000)) as engine,
        pytest.raises(QueryLimitError, match="more than 1000 bytes"),
    ):
        rows(engine, "SELECT lpad('x', 2000, 'y')")
    with engine_of(served, QueryLimits(sql_bytes=20)) as engine, pytest.raises(InvalidError, match="at most 20 bytes"):
        rows(engine, "SELECT 'a long text of some bytes'")


@pytest.mark.parametrize("params", [None, [7]])
def test_a_limit_of_time(served: ServedLake, params: list[object] | None) -> None:
    sql = ENDLESS if params is None else ENDLESS.replace("7", "?")
    with engine_of(served, QueryLimits(seconds=0.2)) as engine:
        with pytest.raises(QueryLimitError, match=r"longer than 0\.2 seconds"):
            rows(engine, sql, params)
        assert rows(engine, "SELECT 1 AS a") == [{"a": 1}]
    with engine_of(served) as engine, pytest.raises(QueryLimitError, match=r"longer than 0\.1 seconds"):
        rows(engine, sql, params, timeout_seconds=0.1)


def test_a_query_is_cancelled_by_its_request(served: ServedLake) -> None:
    with engine_of(served) as engine:
        assert not engine.cancel("r1")
        caught: list[BaseException] = []

        def run() -> None:
            try:
                rows(engine, ENDLESS, request_id="r1")
            except InvalidError as error:
                caught.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        while not engine.cancel("r1"):
            pass
        thread.join()
        assert [type(error) for error in caught] == [QueryCancelledError]
        assert not engine.cancel("r1")


def test_queries_wait_for_their_turn(served: ServedLake) -> None:
    with engine_of(served, QueryLimits(running=1, wait_seconds=0.01)) as engine:
        first = engine.run(QueryRequest("SELECT 1"))
        with pytest.raises(OverloadedError, match="1 queries are running"):
            engine.run(QueryRequest("SELECT 2"))
        first.close()
        assert rows(engine, "SELECT 3 AS a") == [{"a": 3}]
        with pytest.raises(InvalidError):
            rows(engine, "SELECT nothing")
        batches = engine.run(QueryRequest("SELECT * FROM range(1000000)")).batches()
        next(batches)
        batches.close()
        assert rows(engine, "SELECT 4 AS a") == [{"a": 4}]


@pytest.mark.parametrize("end", ["read", "unread", "part", "too many rows", "refused"])
def test_nothing_is_left_of_a_query(served: ServedLake, end: str) -> None:
    with engine_of(served, QueryLimits(rows=500_000)) as engine:
        rows(engine, "SELECT 1")
        before = _catalogs(engine)
        result = engine.run(QueryRequest("SELECT u.id FROM users u, range(250000)"))
        match end:
            case "read":
                assert result.reader().read_all().num_rows == 500_000
            case "unread":
                assert result.schema.names == ["id"]
                result.close()
            case "part":
                batches = result.batches()
                next(batches)
                batches.close()
            case "too many rows":
                result.close()
                with pytest.raises(QueryLimitError):
                    list(engine.run(QueryRequest("SELECT u.id FROM users u, range(1000000)")).batches())
            case "refused":
                result.close()
                with pytest.raises(InvalidError):
                    rows(engine, "SELECT nothing FROM users")
        assert _catalogs(engine) == before


def _catalogs(engine: QueryEngine) -> int:
    with engine._sandbox.bare_space() as space:
        found: int = space.run("SELECT count(*) FROM duckdb_databases()")[0][0]
        return found


def test_slow_queries_are_logged(served: ServedLake, caplog: pytest.LogCaptureFixture) -> None:
    with engine_of(served, QueryLimits(slow_seconds=0)) as engine, caplog.at_level(logging.WARNING):
        rows(engine, "SELECT $secret AS a", {"secret": "hidden"}, request_id="r7")
    assert "slow query r7" in caplog.text
    assert "1 rows" in caplog.text
    assert "hidden" not in caplog.text


def test_a_lost_file_is_told_without_its_path(tmp_path: Path) -> None:
    with served_lake(tmp_path) as served, engine_of(served) as engine:
        users = served.add(USERS, "users", writes=False)
        users.table.write([row("a", name="x")])
        for file in tmp_path.rglob("*.parquet"):
            file.write_bytes(b"PAR1 no longer PAR1")
        with pytest.raises(LakeletError) as caught:
            rows(engine, "SELECT * FROM users")
        assert str(tmp_path) not in str(caught.value)
