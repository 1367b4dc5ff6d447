import threading
from pathlib import Path

import pytest

import lakelet
from lakelet import InvalidError, Lake, LakeletError, NotFoundError
from lakelet.sql import Session


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    found = lakelet.connect(tmp_path)
    found.sql(
        "CREATE DATABASE shop; CREATE TABLE shop.t (id INT, v STRING); INSERT INTO shop.t VALUES (1, 'a'), (2, 'b')"
    )
    return found


def test_several_statements_give_what_the_last_one_gives(lake: Lake) -> None:
    assert lake.sql("USE shop; SELECT * FROM t; SELECT count(*) FROM t;").rows() == [(2,)]


def test_a_statement_that_fails_ends_the_text(lake: Lake) -> None:
    with pytest.raises(NotFoundError):
        lake.sql("CREATE TABLE shop.a (x INT); SELECT * FROM shop.nothing; CREATE TABLE shop.b (x INT)")
    assert lake.tables("shop") == ["a", "t"]


@pytest.mark.parametrize("text", ["", "  ", ";;", "-- nothing", "/* nothing */"])
def test_an_empty_text_is_refused(lake: Lake, text: str) -> None:
    with pytest.raises(InvalidError, match="empty"):
        lake.sql(text)


@pytest.mark.parametrize("text", ["SELECT '\ud800'", "\ud800", 5, None, b"SELECT 1"])
def test_what_is_no_text_is_refused(lake: Lake, text: object) -> None:
    with pytest.raises(InvalidError):
        lake.sql(text)  # type: ignore[arg-type]


@pytest.mark.parametrize("params", [5, "abc", b"abc", 1.5, {1, 2}])
def test_parameters_are_a_mapping_or_a_list(lake: Lake, params: object) -> None:
    with pytest.raises(InvalidError, match=r"params: expected a mapping for \$name, or a list"):
        lake.sql("SELECT ?", params=params)  # type: ignore[arg-type]
    with pytest.raises(InvalidError, match="params"):
        lake.sql("INSERT INTO shop.t (id) VALUES (?)", params=params)  # type: ignore[arg-type]


@pytest.mark.parametrize("frames", [5, "f", ["f"]])
def test_frames_are_a_mapping(lake: Lake, frames: object) -> None:
    with pytest.raises(InvalidError, match="frames: expected a mapping of names to data"):
        lake.sql("SELECT 1", frames=frames)  # type: ignore[arg-type]


@pytest.mark.parametrize("frame", [5, "text", [{"a": 1}], {"a": [1]}, None])
def test_a_frame_that_is_no_table_is_named(lake: Lake, frame: object) -> None:
    with pytest.raises(LakeletError, match=r"\bf'") as raised:
        lake.sql("SELECT * FROM f", frames={"f": frame})
    assert "lakelet_" not in str(raised.value)


def test_what_is_too_deep_is_refused(lake: Lake) -> None:
    deep = "NOT (" * 950 + "id = 1" + ")" * 950
    with pytest.raises(InvalidError, match=r"nested|depth"):
        lake.sql(f"SELECT count(*) FROM shop.t WHERE {deep}").rows()
    # What Python finds too deep and DuckDB does not is not pruned by.
    less = "NOT (" * 300 + "id = 1" + ")" * 300
    assert lake.sql(f"SELECT count(*) FROM shop.t WHERE {less}").rows() == [(1,)]


def test_sessions_have_their_own_database_and_settings(lake: Lake) -> None:
    one, other = Session(lake), Session(lake)
    one.run("USE shop")
    one.run("SET TimeZone = 'Asia/Tokyo'")
    assert one.run("SELECT count(*) FROM t").rows() == [(2,)]
    with pytest.raises(NotFoundError):
        other.run("SELECT count(*) FROM t")
    zone = "SELECT current_setting('TimeZone')"
    assert (one.run(zone).rows(), other.run(zone).rows()) == ([("Asia/Tokyo",)], [("UTC",)])
    one.run("RESET TimeZone")
    assert one.run(zone).rows() == [("UTC",)]
    one.close()
    other.close()


def test_the_zone_is_utc_wherever_the_machine_is(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        assert Session(lake).run("SELECT current_setting('TimeZone')").rows() == [("UTC",)]
    finally:
        monkeypatch.undo()
        time.tzset()


def test_two_lakes_are_queried_at_once(tmp_path: Path) -> None:
    lakes = [lakelet.connect(tmp_path / name) for name in ("a", "b")]
    for number, lake in enumerate(lakes):
        lake.sql(f"CREATE TABLE t (id INT); INSERT INTO t VALUES ({number})")
    results = [lake.sql("SELECT id FROM t") for lake in lakes]
    assert [result.rows() for result in results] == [[(0,)], [(1,)]]


def test_results_of_one_session_are_open_side_by_side(lake: Lake) -> None:
    first = lake.sql("SELECT id FROM shop.t ORDER BY id")
    second = lake.sql("SELECT v FROM shop.t ORDER BY id")
    lake.sql("INSERT INTO shop.t VALUES (3, 'c')")
    # What a query sees is what was there when it was made.
    assert first.rows() == [(1,), (2,)]
    assert second.rows() == [("a",), ("b",)]


def test_threads_share_a_lake(lake: Lake) -> None:
    found: list[object] = []

    def ask(number: int) -> None:
        for _ in range(5):
            found.append(lake.sql("SELECT count(*), max(id) FROM shop.t WHERE id <> $n", {"n": number + 10}).rows())

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [[(2, 2)]] * 20


@pytest.mark.parametrize(
    ("text", "params", "expected"),
    [
        ("SELECT v FROM shop.t WHERE id = $id", {"id": 2}, [("b",)]),
        ("SELECT v FROM shop.t WHERE id = ?", [2], [("b",)]),
        ("SELECT v FROM shop.t WHERE id = $1 AND v = $2", (2, "b"), [("b",)]),
        ("SELECT v FROM shop.t WHERE id IN ($a, $b) AND v = $b2", {"a": 1, "b": 2, "b2": "a"}, [("a",)]),
        ("SELECT count(*) FROM shop.t FOR VERSION AS OF $v WHERE id < $n", {"v": 1, "n": 2}, [(1,)]),
        ("SELECT $x", {"x": None}, [(None,)]),
    ],
)
def test_parameters(lake: Lake, text: str, params: object, expected: object) -> None:
    assert lake.sql(text, params).rows() == expected  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "params"),
    [
        ("SELECT $x", None),
        ("SELECT $x", {}),
        ("SELECT $x", {"y": 1}),
        ("SELECT ?", []),
        ("SELECT ?", [1, 2]),
        ("SELECT 1", [1]),
        ("SELECT $x", {"x": object()}),
        ("SELECT ?", ["\ud800"]),
        ("SELECT * FROM shop.t FOR VERSION AS OF $v", None),
        ("SELECT * FROM shop.t FOR VERSION AS OF $v", {"v": "x"}),
        ("SELECT * FROM shop.t FOR VERSION AS OF $v", {"v": 1.5}),
    ],
)
def test_wrong_parameters_are_refused(lake: Lake, text: str, params: object) -> None:
    with pytest.raises(lakelet.LakeletError) as caught:
        lake.sql(text, params).rows()  # type: ignore[arg-type]
    assert not isinstance(caught.value, lakelet.InternalError)


@pytest.mark.parametrize("text", ["CREATE INDEX v ON t (a)", "ATTACH 'x'", "BEGIN", "VACUUM"])
def test_other_statements_of_duckdb_are_refused(lake: Lake, text: str) -> None:
    with pytest.raises(InvalidError, match="line 1, column"):
        lake.sql(text)


def test_unread_results_do_not_pile_up(lake: Lake) -> None:
    for _ in range(50):
        lake.sql("SELECT * FROM shop.t")
    result = lake.sql("SELECT count(*) FROM duckdb_databases() WHERE database_name LIKE 'lakelet_%'").rows()
    assert result[0][0] <= 52
    with lake.sql("SELECT * FROM shop.t") as closed:
        closed.close()
