from pathlib import Path

import pytest

import lakelet
from lakelet import Lake
from lakelet.sql.query.parse_tree import references
from lakelet.sql.query.shortcuts import limited
from tests.unit.sql.parsed import parsed


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT * FROM t LIMIT 3", 3),
        ("SELECT a, b AS c, 1 FROM t LIMIT 3 OFFSET 2", 5),
        ("FROM t LIMIT 0", 0),
        ("SELECT * FROM t", None),
        ("SELECT * FROM t OFFSET 2", None),
        ("SELECT * FROM t LIMIT 10%", None),
        ("SELECT * FROM t LIMIT NULL", None),
        ("SELECT * FROM t LIMIT $1", None),
        ("SELECT * FROM t LIMIT 1 + 1", None),
        ("SELECT * FROM t WHERE a = 1 LIMIT 3", None),
        ("SELECT * FROM t ORDER BY a LIMIT 3", None),
        ("SELECT DISTINCT a FROM t LIMIT 3", None),
        ("SELECT count(*) FROM t LIMIT 3", None),
        ("SELECT sum(a) OVER () FROM t LIMIT 3", None),
        ("SELECT unnest([1, 2]) FROM t LIMIT 3", None),
        ("SELECT a FROM t GROUP BY a LIMIT 3", None),
        ("SELECT a FROM t GROUP BY ALL LIMIT 3", None),
        ("SELECT a FROM t QUALIFY row_number() OVER () = 1 LIMIT 3", None),
        ("SELECT * FROM t, u LIMIT 3", None),
        ("SELECT * FROM t JOIN u ON true LIMIT 3", None),
        ("SELECT * FROM (SELECT * FROM t) LIMIT 3", None),
        ("SELECT * FROM t UNION ALL SELECT * FROM u LIMIT 3", None),
        ("SELECT * FROM t TABLESAMPLE 10% LIMIT 3", None),
        ("SELECT a FROM t USING SAMPLE 5 LIMIT 3", None),
    ],
)
def test_a_limit_is_planned_only_where_any_rows_will_do(text: str, expected: int | None) -> None:
    tree = parsed(text)
    uses = [one for one in references(tree) if one.parts == ("t",)]
    assert limited(tree, uses) == expected


@pytest.fixture(params=[False, True], ids=["append", "keyed"])
def lake(tmp_path: Path, request: pytest.FixtureRequest) -> Lake:
    found = lakelet.connect(tmp_path)
    key = ", PRIMARY KEY (id) NOT ENFORCED) WITH ('bucket' = '1', 'write-only' = 'true')" if request.param else ")"
    found.sql(f"CREATE TABLE t (id INT NOT NULL, v STRING{key}")
    for start in (0, 10, 20):
        found.sql(f"INSERT INTO t SELECT i, 'v' || (i % 3) FROM range({start}, {start + 10}) r(i)")
    return found


def count_without_reading(lake: Lake, query: str, monkeypatch: pytest.MonkeyPatch) -> int | None:
    """The count, None where DuckDB was asked for it."""
    from lakelet.sql.engine.duckdb_engine import Space

    asked: list[str] = []
    result = Space.result
    monkeypatch.setattr(Space, "result", lambda self, text, *more: asked.append(text) or result(self, text, *more))
    ((count,),) = lake.sql(query).rows()
    return None if asked else int(count)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT count(*) FROM t", 30),
        ("SELECT count() AS n FROM t AS x", 30),
        ("SELECT count(*) FROM t WHERE id < 15", 15),
        ("SELECT count(*) FROM t WHERE v = 'v0' AND id >= 20", 3),
        ("SELECT count(*) FROM t WHERE id > 100", 0),
        ("SELECT count(*) FROM t FOR VERSION AS OF 2", 20),
    ],
)
def test_a_plain_count_is_the_plans_to_answer(
    lake: Lake, query: str, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert count_without_reading(lake, query, monkeypatch) == expected


@pytest.mark.parametrize(
    "query",
    [
        "SELECT count(id) FROM t",
        "SELECT count(DISTINCT id) FROM t",
        "SELECT count(*) FILTER (id > 1) FROM t",
        "SELECT count(*) OVER () FROM t LIMIT 1",
        "SELECT count(*) FROM t WHERE hash(v) > 0",
        "SELECT count(*) FROM t LIMIT 1",
        "SELECT count(*) + 1 FROM t",
        "SELECT count(*) FROM t, t u",
        "SELECT count(*) FROM (SELECT * FROM t)",
        "SELECT count(*) FROM t HAVING count(*) > 1",
        "WITH x AS (SELECT 1) SELECT count(*) FROM t",
    ],
)
def test_any_other_count_is_duckdbs(lake: Lake, query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert count_without_reading(lake, query, monkeypatch) is None


def test_a_count_is_called_what_duckdb_calls_it(lake: Lake) -> None:
    assert lake.sql("SELECT count(*) FROM t").columns == ("count_star()",)
    assert lake.sql("SELECT count(*) AS n FROM t").columns == ("n",)


def test_a_limit_reads_no_more_files_than_it_needs(lake: Lake) -> None:
    shown = str(lake.sql("EXPLAIN SELECT * FROM t LIMIT 3").rows()[0][1])
    whole = str(lake.sql("EXPLAIN SELECT * FROM t").rows()[0][1])
    assert "files: 3 of 3" in whole
    assert "files: 3 of 3" not in shown or "by Lakelet" in shown
    assert len(lake.sql("SELECT * FROM t LIMIT 3").rows()) == 3
    assert len(lake.sql("SELECT * FROM t LIMIT 50 OFFSET 25").rows()) == 5
