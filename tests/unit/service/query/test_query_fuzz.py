"""Whatever is sent as a query runs or is refused by an error of Lakelet's own; nothing changes, and no path is told."""

from __future__ import annotations

import random
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelet.service.query.query_engine import QueryRequest
from lakelet.service.query.query_limits import QueryLimits
from lakelet.sql.lexer.words import words_of
from tests.tiers.examples import examples
from tests.unit.service.query.served_lake import ORDERS, USERS, engine_of, row, rows, served_lake
from tests.unit.sql.sql_soup import is_refusal

QUERIES = [
    "SELECT COUNT(*) FROM users WHERE id = 'user-123' AND timestamp >= '2023-10-01' AND payload.age > 20",
    "SELECT u.payload.name, COUNT(o.id) AS n FROM users u LEFT JOIN orders o ON u.id = o.payload.user_id GROUP BY u.payload.name",
    "SELECT u.name, COUNT(o.id) FROM users u LEFT JOIN orders o ON u.id = o.user_id GROUP BY u.name",
    "SELECT *, dt FROM users WHERE dt = '2023-10-27' ORDER BY age DESC LIMIT 3",
    "SELECT * EXCLUDE (payload) FROM users u, orders WHERE u.dt = orders.dt",
    "WITH x AS (SELECT name, age FROM users WHERE dt > '2000-01-01') SELECT x.name, user FROM x",
    "SELECT id FROM users WHERE id IN (SELECT user_id FROM orders WHERE amount > 1) UNION ALL SELECT dt::VARCHAR FROM orders",
    "SELECT table_name, tables.table_type FROM information_schema.tables JOIN information_schema.columns c USING (table_name)",
    "EXPLAIN ANALYZE SELECT max(age) OVER (PARTITION BY city) FROM default.users QUALIFY row_number() OVER () = 1",
    "SELECT list_transform([1, 2], lambda x: x + age), {'a': amount}, MAP {'k': name} FROM users, orders",
    "FROM users SELECT COLUMNS('i.*'), current_user, \"user\" WHERE session_user IS NULL",
    "SELECT read_text('/etc/passwd'), getenv('HOME') FROM '/etc/passwd', duckdb_settings()",
    "COPY users TO 'x.csv'; SET threads = 1",
]


def _stirred(rng: random.Random) -> str:
    """A query with words of others in it, some left out, some twice."""
    text = rng.choice(QUERIES)
    words = [text[word.start : word.end] for word in words_of(text)]
    other = rng.choice(QUERIES)
    others = [other[word.start : word.end] for word in words_of(other)]
    for _ in range(rng.choice([0, 1, 1, 2, 4])):
        place = rng.randrange(len(words) + 1)
        match rng.randrange(4):
            case 0:
                words[place:place] = [rng.choice(others)]
            case 1:
                del words[place : place + rng.randint(1, 3)]
            case 2:
                start = rng.randrange(len(others))
                words[place : place + 1] = others[start : start + rng.randint(1, 6)]
            case _:
                words[place:place] = words[place : place + 2]
    return " ".join(words)


@settings(max_examples=examples(5))
@given(seed=st.integers(0, 2**40))
def test_no_query_ends_in_an_error_of_another_kind(seed: int) -> None:
    stir(seed)


def stir(seed: int) -> None:
    """Many queries on one lake, decided by a number."""
    rng = random.Random(seed)
    with TemporaryDirectory() as folder, served_lake(Path(folder)) as served:
        users, orders = served.add(USERS, "users"), served.add(ORDERS, "orders")
        assert users.writer is not None
        assert orders.writer is not None
        users.writer.put_many([row("user-123", name="x", age=25)])
        users.writer.flush()
        users.writer.put_many([row("user-124", name="y", age=19)])
        orders.writer.put_many([row("o1", user_id="user-123", amount=1.5)])
        with engine_of(served, QueryLimits(seconds=20)) as engine:
            for _ in range(40):
                text = _stirred(rng)
                found = b""
                try:
                    found = engine.run(QueryRequest(text)).json()
                except Exception as error:
                    if not is_refusal(error):
                        pytest.fail(f"{type(error).__name__}: {error}\n{text!r}")
                    found = str(error).encode()
                assert folder.encode() not in found, text
                assert b"root:" not in found, text
            assert rows(engine, "SELECT count(*) AS n FROM users") == [{"n": 2}]
