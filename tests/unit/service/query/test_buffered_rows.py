"""A query sees committed and buffered rows, each once, at every moment of a flush."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lakelet.errors import UnavailableError
from lakelet.service.query.query_engine import QueryEngine, QueryRequest
from lakelet.table.write.table_commit import TableCommit
from tests.unit.service.query.served_lake import USERS, Served, ServedLake, engine_of, row, rows, served_lake

KEYED = (
    "CREATE TABLE counters (id STRING NOT NULL, n BIGINT, PRIMARY KEY (id) NOT ENFORCED) WITH ('bucket' = '2'{more})"
)
FLOATS = "CREATE TABLE floats (x DOUBLE NOT NULL, n BIGINT, PRIMARY KEY (x) NOT ENFORCED) WITH ('bucket' = '1')"


@pytest.fixture
def served(tmp_path: Path) -> Iterator[ServedLake]:
    with served_lake(tmp_path) as made:
        yield made


@pytest.fixture
def engine(served: ServedLake) -> Iterator[QueryEngine]:
    with engine_of(served) as made:
        yield made


def _put(table: Served, *given: dict[str, object]) -> None:
    assert table.writer is not None
    table.writer.put_many(list(given))


def test_rows_of_a_keyed_table_are_merged(served: ServedLake, engine: QueryEngine) -> None:
    table = served.add(KEYED.format(more=""), "counters", hides_day=False)
    assert table.writer is not None
    _put(table, *({"id": f"k{number}", "n": number} for number in range(10)))
    table.writer.flush()
    assert rows(engine, "SELECT count(*) AS c, sum(n) AS s FROM counters") == [{"c": 10, "s": 45}]
    _put(table, {"id": "k1", "n": 100}, {"id": "new", "n": 1000})
    table.writer.delete({"id": "k2"})
    assert rows(engine, "SELECT count(*) AS c, sum(n) AS s FROM counters") == [{"c": 10, "s": 45 - 1 - 2 + 100 + 1000}]
    assert rows(engine, "SELECT n FROM counters WHERE id = 'k1'") == [{"n": 100}]
    assert rows(engine, "SELECT n FROM counters WHERE id = 'k2'") == []
    assert rows(engine, "SELECT n FROM counters WHERE n = 1") == []
    assert rows(engine, "SELECT count(*) AS c FROM counters") == [{"c": 10}]
    assert len(rows(engine, "SELECT * FROM counters LIMIT 20")) == 10
    table.writer.flush()
    assert rows(engine, "SELECT count(*) AS c, sum(n) AS s FROM counters") == [{"c": 10, "s": 45 - 1 - 2 + 100 + 1000}]


def test_the_sequence_decides_between_buffered_and_committed_rows(served: ServedLake, engine: QueryEngine) -> None:
    table = served.add(KEYED.format(more=", 'sequence.field' = 'n'"), "counters", hides_day=False)
    assert table.writer is not None
    _put(table, {"id": "a", "n": 5}, {"id": "b", "n": 5})
    table.writer.flush()
    _put(table, {"id": "a", "n": 3}, {"id": "b", "n": 7}, {"id": "c", "n": 1})
    expected = [{"id": "a", "n": 5}, {"id": "b", "n": 7}, {"id": "c", "n": 1}]
    assert rows(engine, "SELECT id, n FROM counters ORDER BY id") == expected
    table.writer.flush()
    assert rows(engine, "SELECT id, n FROM counters ORDER BY id") == expected


def test_the_first_row_of_a_key_stays(served: ServedLake, engine: QueryEngine) -> None:
    table = served.add(KEYED.format(more=", 'merge-engine' = 'first-row'"), "counters", hides_day=False)
    assert table.writer is not None
    _put(table, {"id": "a", "n": 1})
    table.writer.flush()
    _put(table, {"id": "a", "n": 2}, {"id": "b", "n": 3})
    _put(table, {"id": "b", "n": 4})
    before = rows(engine, "SELECT * FROM counters ORDER BY id")
    table.writer.flush()
    assert before == rows(engine, "SELECT * FROM counters ORDER BY id") == [{"id": "a", "n": 1}, {"id": "b", "n": 3}]


def test_keys_that_duckdb_compares_in_another_way(served: ServedLake, engine: QueryEngine) -> None:
    table = served.add(FLOATS, "floats", hides_day=False)
    assert table.writer is not None
    _put(table, {"x": 0.0, "n": 1}, {"x": float("nan"), "n": 2})
    table.writer.flush()
    _put(table, {"x": -0.0, "n": 3}, {"x": float("nan"), "n": 4})
    before = rows(engine, "SELECT n FROM floats ORDER BY n")
    table.writer.flush()
    assert before == rows(engine, "SELECT n FROM floats ORDER BY n")


def test_rows_that_were_buffered_before_a_column_was_added(served: ServedLake, engine: QueryEngine) -> None:
    table = served.add(USERS, "users")
    _put(table, row("a", name="x", age=1))
    served.lake.sql("ALTER TABLE users ADD COLUMN payload.score DOUBLE")
    _put(table, row("b", name="y", age=2, score=0.5))
    assert rows(engine, "SELECT id, score, age FROM users ORDER BY id") == [
        {"id": "a", "score": None, "age": 1},
        {"id": "b", "score": 0.5, "age": 2},
    ]


def test_a_table_has_one_version_in_a_query(served: ServedLake, engine: QueryEngine) -> None:
    table = served.add(USERS, "users")
    _put(table, row("a", name="x"))
    result = engine.run(QueryRequest("SELECT count(*) AS n, (SELECT count(id) FROM users) AS m FROM users"))
    _put(table, row("b", name="y"))
    assert table.writer is not None
    table.writer.flush()
    assert result.json() == b'[{"n":1,"m":1}]'


def test_a_writer_that_is_closed(served: ServedLake, engine: QueryEngine) -> None:
    table = served.add(USERS, "users")
    _put(table, row("a", name="x"))
    assert table.writer is not None
    table.writer.close()
    assert rows(engine, "SELECT count(*) AS n FROM users") == [{"n": 1}]


def test_a_writer_that_is_being_closed(
    served: ServedLake, engine: QueryEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its rows are in memory alone until they are committed."""
    table = served.add(USERS, "users")
    _put(table, row("a", name="x"))
    found: list[object] = []
    look_back = TableCommit.look_back

    def ask(commit: TableCommit) -> Any:
        if not found:
            found.append(rows(engine, "SELECT count(*) AS n FROM users"))
        return look_back(commit)

    monkeypatch.setattr(TableCommit, "look_back", ask)
    assert table.writer is not None
    table.writer.close()
    assert found == [[{"n": 1}]]
    assert rows(engine, "SELECT count(*) AS n FROM users") == [{"n": 1}]


def test_a_writer_that_could_not_be_closed(
    served: ServedLake, engine: QueryEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = served.add(USERS, "users")
    _put(table, row("a", name="x"))

    def silent(_: TableCommit) -> Any:
        raise UnavailableError("the store is silent")

    monkeypatch.setattr(TableCommit, "look_back", silent)
    assert table.writer is not None
    with pytest.raises(UnavailableError):
        table.writer.close()
    assert rows(engine, "SELECT count(*) AS n FROM users") == [{"n": 1}]


@pytest.mark.parametrize("keyed", [False, True])
@pytest.mark.parametrize("sql", ["SELECT count(*) AS n FROM t", "SELECT count(id) AS n FROM t WHERE id <> ''"])
def test_a_count_never_goes_backwards_nor_double(
    served: ServedLake, engine: QueryEngine, keyed: bool, sql: str
) -> None:
    statement = (
        "CREATE TABLE t (id STRING NOT NULL, n BIGINT, PRIMARY KEY (id) NOT ENFORCED) WITH ('bucket' = '1')"
        if keyed
        else "CREATE TABLE t (id STRING NOT NULL, n BIGINT)"
    )
    table = served.add(statement, "t", hides_day=False)
    writer = table.writer
    assert writer is not None
    acknowledged = [0]
    done = threading.Event()
    failures: list[str] = []

    def put() -> None:
        for number in range(300):
            writer.put({"id": f"row-{number}", "n": number})
            acknowledged[0] = number + 1
            if number % 20 == 19:
                writer.flush()
        done.set()

    def query() -> None:
        last = 0
        while not done.is_set():
            least = acknowledged[0]
            found = rows(engine, sql)[0]["n"]
            if not max(least, last) <= found <= acknowledged[0] + 1:
                failures.append(f"{found} rows, expected from {max(least, last)} to {acknowledged[0] + 1}")
                return
            last = found

    threads = [threading.Thread(target=put), threading.Thread(target=query), threading.Thread(target=query)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert rows(engine, sql) == [{"n": 300}]
