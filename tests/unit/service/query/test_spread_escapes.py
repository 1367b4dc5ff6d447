"""What a query does together with other nodes reaches no more than it reaches alone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from lakelet.errors import InternalError, InvalidError, LakeletError, NotFoundError, PermissionDeniedError
from lakelet.service.query.query_engine import QueryEngine, QueryRequest
from lakelet.sql.sandbox.spread import Fragment, GivenRows
from tests.unit.service.query.embedded_workers import EmbeddedWorkers, spread_engine
from tests.unit.service.query.served_lake import USERS, Served, ServedLake, row, served_lake
from tests.unit.sql.sandbox.escapes import SOURCES

# Where a source or a subquery may stand in a query whose parts are spread.
_PLACES = (
    "WITH x AS (SELECT * FROM {0}) SELECT count(*) FROM x, users",
    "SELECT count(*) FROM users WHERE id IN (SELECT id FROM {0})",
    "SELECT count(*) FROM users WHERE dt > (SELECT max(dt) FROM {0})",
    "SELECT id FROM users u WHERE EXISTS (SELECT 1 FROM {0} AS s WHERE s.id = u.id)",
    "SELECT id FROM users UNION ALL SELECT id FROM {0}",
    "SELECT max(n) FROM (SELECT count(*) AS n FROM users JOIN {0} AS s USING (id) GROUP BY dt)",
    "SELECT id, rank() OVER (ORDER BY id) FROM users WHERE id = (SELECT any_value(id) FROM {0})",
    "SELECT dt, count(*) FROM (SELECT id, dt FROM users UNION ALL SELECT id, dt FROM {0}) GROUP BY ROLLUP (dt)",
    "SELECT * FROM users, LATERAL (SELECT * FROM {0} AS s WHERE s.id = users.id)",
)
# Names of ours, under which rows of other nodes or frames of the engine stand.
_OURS = (
    *("lakelet_partials", "lakelet_partials_2", "lakelet_part", "lakelet_parts", "lakelet_rows_1"),
    *("temp.main.lakelet_partials", "temp.main.lakelet_rows_1", "temp.lakelet_rows_2", "main.lakelet_partials"),
)


class Readable:
    """The tables that a caller may read: all but the secret one."""

    def __init__(self, served: ServedLake) -> None:
        self._served = served

    def names(self) -> list[str]:
        return [name for name in self._served.names() if name != "secret"]

    def open(self, name: str) -> Served:
        if name == "secret":
            raise NotFoundError(name)
        return self._served.open(name)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedLake]:
    folder = tmp_path_factory.mktemp("spread-escapes")
    (folder / "secret.csv").write_text("id\n424242\n")
    with served_lake(folder) as made:
        for name in ("users", "secret"):
            writer = made.add(USERS.replace("TABLE users", f"TABLE {name}"), name).writer
            assert writer is not None
            for part in range(3):
                writer.put_many([row(f"{name}-{part}-{number}", age=number) for number in range(5)])
                writer.flush()
        yield made


@pytest.fixture(scope="module", params=["a", None])
def spread(served: ServedLake, request: pytest.FixtureRequest) -> Iterator[tuple[QueryEngine, EmbeddedWorkers]]:
    with spread_engine(served) as (engine, workers):
        workers.own = request.param
        yield engine, workers


def _run(spread: tuple[QueryEngine, EmbeddedWorkers], served: ServedLake, sql: str) -> list[dict[str, object]]:
    with spread[0].run(QueryRequest(sql), Readable(served)) as result:
        found: list[dict[str, object]] = json.loads(result.json())
    return found


@pytest.mark.parametrize("place", _PLACES)
def test_nothing_else_is_read_together(
    spread: tuple[QueryEngine, EmbeddedWorkers], served: ServedLake, place: str
) -> None:
    folder = Path(served.lake.location).parent
    inside = next(Path(served.lake.location).rglob("secret/**/*.parquet"))
    spread[1].asked.clear()
    for source in (*SOURCES, *_OURS, "secret", "default.secret", "'{secret}'", '"{inside}"'):
        sql = place.format(source.format(secret=folder / "secret.csv", inside=inside, folder=folder))
        with pytest.raises(LakeletError) as caught:
            _run(spread, served, sql)
        assert isinstance(caught.value, InvalidError | PermissionDeniedError | NotFoundError), (sql, caught.value)
        assert not isinstance(caught.value, InternalError), sql
        assert "424242" not in str(caught.value)
    assert not spread[1].asked


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("WITH secret AS (SELECT id FROM users) SELECT count(*) AS n FROM secret", [{"n": 15}]),
        (
            "WITH secret AS (SELECT id FROM users) SELECT count(*) AS n FROM secret a JOIN secret b USING (id)",
            [{"n": 15}],
        ),
        ("SELECT count(*) AS n FROM (SELECT id FROM users) AS secret WHERE secret.id LIKE 'users%'", [{"n": 15}]),
        (
            "SELECT count(*) AS n FROM users WHERE id IN (WITH secret AS (SELECT id FROM users) FROM secret)",
            [{"n": 15}],
        ),
    ],
)
def test_a_name_of_the_query_is_not_that_of_a_table(
    spread: tuple[QueryEngine, EmbeddedWorkers], served: ServedLake, sql: str, rows: list[dict[str, object]]
) -> None:
    spread[1].asked.clear()
    assert _run(spread, served, sql) == rows
    assert {table.name for _, fragment in spread[1].asked for table in fragment.tables} <= {"users"}


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM users",
        "SELECT * FROM secret",
        "SELECT * FROM lakelet_partials_2",
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT getenv('HOME') FROM lakelet_partials",
        "ATTACH ':memory:' AS other",
    ],
)
def test_a_fragment_over_rows_of_others_reads_nothing_else(
    spread: tuple[QueryEngine, EmbeddedWorkers], text: str
) -> None:
    given = GivenRows("lakelet_partials", pa.schema([("lakelet_c0", pa.int64())]), ())
    running = spread[1].engines["b"].fragments.prepare(Fragment(text, None, (), (given,)), 10.0)
    with pytest.raises((InvalidError, PermissionDeniedError, NotFoundError)):
        list(running.batches())


def test_rows_of_others_take_no_name_of_a_table(spread: tuple[QueryEngine, EmbeddedWorkers]) -> None:
    given = GivenRows("users", pa.schema([("id", pa.string())]), ())
    running = spread[1].engines["b"].fragments.prepare(Fragment("SELECT * FROM users", None, (), (given,)), 10.0)
    with pytest.raises(InternalError, match="begins with lakelet_"):
        list(running.batches())
