import threading
from collections.abc import Iterator

import pyarrow as pa
import pytest

from lakelet.errors import InvalidError, LakeletError, NotFoundError
from lakelet.sql.engine.duckdb_engine import Engine
from lakelet.sql.engine.engine_errors import Placed
from lakelet.sql.lexer.errors import SqlError
from lakelet.sql.query.relation import Rows

SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.string())])


def batches(columns: object, condition: object) -> object:
    names = SCHEMA.names if columns is None else [name for name in SCHEMA.names if name in columns]  # type: ignore[operator]
    table = pa.table({"id": [1, 2, 3], "v": ["a", "b", None]}, schema=SCHEMA)
    return iter(table.select(names).to_batches())


def test_spaces_do_not_see_each_other() -> None:
    engine = Engine()
    with engine.space() as one, engine.space() as other:
        one.add_view("shop", "t", "SELECT 1 AS a")
        other.add_view("shop", "t", "SELECT 2 AS a")
        one.use("shop")
        assert one.run("SELECT a FROM t") == [(1,)]
        assert other.run("SELECT a FROM shop.t") == [(2,)]
        one.add_temporary("only_here", "SELECT 3")
        with pytest.raises(LakeletError):
            other.run("SELECT * FROM only_here")
    engine.close()


def test_engines_do_not_see_each_other() -> None:
    first, second = Engine(), Engine()
    with first.space() as one, second.space() as other:
        one.add_view("main", "t", "SELECT 1 AS a")
        with pytest.raises(LakeletError):
            other.run("SELECT * FROM t")
    first.close()
    second.close()


def test_an_engine_is_closed_while_a_query_runs() -> None:
    engine, begun, ended = Engine(), threading.Event(), list[LakeletError]()

    def endless(*_: object) -> Iterator[pa.RecordBatch]:
        batch = pa.record_batch({"id": [1], "v": ["a"]}, schema=SCHEMA)
        while True:
            begun.set()
            yield batch

    def run() -> None:
        with engine.space() as space:
            try:
                space.run(f"SELECT count(*) FROM {space.add_rows(Rows(SCHEMA, endless))}")
            except LakeletError as error:
                ended.append(error)

    query = threading.Thread(target=run)
    query.start()
    begun.wait()
    engine.close()
    query.join()
    assert "interrupted" in str(ended[0])


def test_a_closed_engine_opens_again() -> None:
    engine = Engine()
    with engine.space() as space:
        assert space.run("SELECT 1") == [(1,)]
    engine.close()
    with engine.space() as space:
        assert space.run("SELECT 1") == [(1,)]


def test_rows_are_read_when_a_query_asks_and_again_when_it_asks_again() -> None:
    with Engine().space() as space:
        source = space.add_rows(Rows(SCHEMA, batches))  # type: ignore[arg-type]
        space.add_view("shop", "t", f"SELECT * FROM {source}")
        assert space.run("SELECT count(*) FROM shop.t") == [(3,)]
        assert space.run("SELECT id FROM shop.t WHERE v = 'b'") == [(2,)]
        assert space.run("SELECT a.id FROM shop.t a JOIN shop.t b USING (id) WHERE a.v IS NULL") == [(3,)]


def test_the_error_of_a_reader_is_the_error_of_the_query() -> None:
    def broken(columns: object, condition: object) -> object:
        raise NotFoundError("the file is gone")

    space = Engine().space()
    source = space.add_rows(Rows(SCHEMA, broken))  # type: ignore[arg-type]
    query = f"SELECT * FROM {source}"
    with pytest.raises(NotFoundError, match="the file is gone"):
        space.result(query, None, Placed(query)).rows()


def test_an_error_is_shown_at_its_place() -> None:
    query = "SELECT 1,\n  wrong FROM range(3)"
    with pytest.raises(SqlError) as caught:
        Engine().space().result(query, None, Placed(query))
    assert (caught.value.line, caught.value.column) == (2, 3)


def test_values_come_in_pythons_types() -> None:
    with Engine().space() as space:
        assert space.value("1 + 1") == 2
        assert space.value("$x", {"x": "a"}) == "a"
        assert str(space.value("TIMESTAMPTZ '2026-01-01 12:00:00+02'")) == "2026-01-01 10:00:00+00:00"
        with pytest.raises(LakeletError):
            space.value("wrong")


def test_what_cannot_be_a_frame_is_refused() -> None:
    with Engine().space() as space, pytest.raises(LakeletError):
        space.add_frame(5)


def test_a_setting_that_duckdb_does_not_know_is_refused() -> None:
    engine = Engine()
    with pytest.raises(InvalidError, match="nothing"):
        engine.set("nothing", "1")
    with pytest.raises(InvalidError, match="nothing"):
        engine.reset("nothing")


def test_a_running_query_is_stopped() -> None:
    import threading

    engine = Engine()
    query = "SELECT count(*) FROM range(100000000000) a"
    ended = threading.Event()

    def interrupt() -> None:
        # An interrupt that comes before the query has begun stops nothing.
        while not ended.wait(0.1):
            engine.interrupt()

    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        with pytest.raises(LakeletError, match="interrupted"):
            engine.space().result(query, None, Placed(query)).rows()
    finally:
        ended.set()
        thread.join()
    with engine.space() as space:
        assert space.run("SELECT 1") == [(1,)]


def test_values_that_are_nested_too_deeply_are_refused() -> None:
    engine = Engine()
    depth = 200
    query = f"SELECT {'[' * depth}1{']' * depth}"
    with pytest.raises(InvalidError, match="the columns of the result cannot be given"):
        engine.space().result(query, None, Placed(query))
    engine.close()
