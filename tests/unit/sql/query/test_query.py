from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lakelet
from lakelet import InvalidError, Lake, LakeletError, NotFoundError
from lakelet.sql import Session
from lakelet.sql.query.relation import Rows


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    found = lakelet.connect(tmp_path / "lake")
    found.sql("CREATE DATABASE shop; USE shop; CREATE TABLE t (id INT, v STRING) WITH ('write-only' = 'true')")
    found.sql("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    found.sql("INSERT INTO t VALUES (3, 'c')")
    return found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # One table under several names is pruned for all of them at once.
        ("SELECT id FROM shop.t UNION ALL SELECT id FROM t WHERE id = 3", [1, 2, 3, 3]),
        ("SELECT id FROM t WHERE id = 3 UNION ALL SELECT id FROM shop.t", [1, 2, 3, 3]),
        ("SELECT id FROM SHOP.T WHERE id = 1 UNION ALL SELECT id FROM T WHERE v = 'c'", [1, 3]),
        ("SELECT a.id FROM t a, shop.t b WHERE a.id = 1 AND b.id = 3", [1]),
        # Names of common tables hide tables where they hold, and nowhere else.
        ("WITH t AS (SELECT id FROM t WHERE id < 3) SELECT id FROM t", [1, 2]),
        ("SELECT id FROM (WITH t AS (SELECT 9 AS id) SELECT id FROM t) UNION ALL SELECT id FROM t", [1, 2, 3, 9]),
        ("WITH x AS (SELECT id FROM t), y AS (SELECT id FROM x) SELECT id FROM y WHERE id > 1", [2, 3]),
        # A condition below an outer join, in a subquery, in a window.
        ("SELECT b.id FROM t a LEFT JOIN t b ON a.id = b.id AND b.id = 3 WHERE b.id IS NOT NULL", [3]),
        ("SELECT a.id FROM t a LEFT JOIN t b ON b.id = 3 AND a.id = b.id WHERE b.id IS NULL", [1, 2]),
        ("SELECT id FROM t WHERE id = (SELECT max(id) FROM t WHERE v < 'c')", [2]),
        ("SELECT id FROM t o WHERE EXISTS (SELECT 1 FROM t i WHERE i.id = o.id + 1 AND i.v = 'c')", [2]),
        ("SELECT id FROM t WHERE id = 1 OR (SELECT count(*) FROM t) = 3", [1, 2, 3]),
        # A column's alias does not hide the column in WHERE.
        ("SELECT id + 2 AS id FROM t WHERE id = 1", [3]),
        ("SELECT x.id FROM t AS x WHERE x.id > 1 AND v = 'c'", [3]),
        ("FROM t SELECT id WHERE id > 2", [3]),
    ],
)
def test_conditions_prune_only_what_they_are_about(lake: Lake, text: str, expected: list[int]) -> None:
    assert sorted(row[0] for row in lake.sql(text).rows()) == expected


def test_files_are_tables_beside_those_of_the_lake(lake: Lake, tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [2, 3], "price": [5, 6]}), tmp_path / "prices.parquet")
    (tmp_path / "names.csv").write_text("id,name\n1,one\n3,three\n")
    (tmp_path / "more.json").write_text('[{"id": 3, "note": "x"}]')
    query = (
        f"SELECT t.id, p.price, n.name, m.note FROM t JOIN '{tmp_path}/prices.parquet' p USING (id) "
        f"JOIN read_csv('{tmp_path}/names.csv') n USING (id) JOIN '{tmp_path}/more.json' m USING (id)"
    )
    assert lake.sql(query).rows() == [(3, 6, "three", "x")]
    with pytest.raises(NotFoundError, match="nothing"):
        lake.sql(f"SELECT * FROM '{tmp_path}/nothing.parquet'")


def test_relations_come_before_tables(lake: Lake) -> None:
    schema = pa.schema([("mine", pa.int64())])
    rows = Rows(schema, lambda columns, condition: iter(pa.table({"mine": [7]}, schema=schema).to_batches()))
    context = Session(lake).context
    assert context.query("SELECT * FROM t", relations={"T": rows}).rows() == [(7,)]
    assert context.query("SELECT * FROM x", relations={"x": pa.table({"a": [1]})}).rows() == [(1,)]
    scan = lake.table("shop.t").scan(where="id = 3")
    assert context.query("SELECT id FROM x", relations={"x": scan}).rows() == [(3,)]
    limited = lake.table("shop.t").scan(limit=1)
    assert context.query("SELECT count(*) FROM x", relations={"x": limited}).rows() == [(1,)]


def test_a_scan_keeps_its_own_condition_whatever_the_query_asks(lake: Lake) -> None:
    context = Session(lake).context
    scan = lake.table("shop.t").scan(where="id > 1")
    assert context.query("SELECT count(*) FROM x", relations={"x": scan}).rows() == [(2,)]
    assert context.query("SELECT count(*) FROM x WHERE id < 3", relations={"x": scan}).rows() == [(1,)]
    assert context.query("SELECT count(*) FROM x WHERE id = 1", relations={"x": scan}).rows() == [(0,)]
    assert len(context.query("SELECT id FROM x LIMIT 5", relations={"x": scan}).rows()) == 2


def test_tables_called_like_duckdbs_own_are_the_lakes(lake: Lake) -> None:
    lake.sql("CREATE TABLE pg_orders (a INT); INSERT INTO pg_orders VALUES (1)")
    assert lake.sql("SELECT a FROM pg_orders").rows() == [(1,)]
    assert lake.sql("SELECT count(*) > 0 FROM pg_class").to_arrow().num_rows == 1


def test_pivots_find_their_tables(lake: Lake) -> None:
    assert lake.sql("PIVOT t ON v USING count(*) GROUP BY id ORDER BY id").rows()[0][0] == 1
    with pytest.raises(LakeletError):
        lake.sql("PIVOT nothing ON v USING count(*)").rows()


def test_one_query_at_a_time(lake: Lake) -> None:
    with pytest.raises(InvalidError):
        Session(lake).context.query("SELECT 1; SELECT 2")


def test_unknown_names_are_shown_at_their_place(lake: Lake) -> None:
    with pytest.raises(NotFoundError, match=r"line 2, column 6.*did you mean t"):
        lake.sql("SELECT 'ü', *\nFROM tt")
    with pytest.raises(NotFoundError, match="line 1, column 15"):
        lake.sql("SELECT * FROM shop.nothing WHERE 1 = 1")
