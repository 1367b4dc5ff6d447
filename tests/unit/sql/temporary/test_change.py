"""Statements that change temporary tables, alone and together with tables of the lake."""

import datetime as dt
from pathlib import Path

import pytest

from lakelet import InvalidError, NotFoundError
from tests.unit.sql.iceberg.ice_session import ice_session
from tests.unit.sql_session import SqlSession


@pytest.fixture
def sql() -> SqlSession:
    made = SqlSession()
    made.rows("CREATE DATABASE shop", "USE shop")
    made.rows("CREATE TABLE stock (item STRING, n INT, PRIMARY KEY (item) NOT ENFORCED)")
    made.rows("INSERT INTO stock VALUES ('bolt', 1), ('nut', 2), ('pin', 3)")
    made.rows("CREATE VIEW few AS FROM stock WHERE n < 3")
    made.rows("CREATE TEMP TABLE news (item VARCHAR PRIMARY KEY, n INT DEFAULT 0)")
    made.rows("INSERT INTO news VALUES ('nut', 20), ('cog', 40)")
    return made


def news(sql: SqlSession) -> list[tuple[object, ...]]:
    return sql.rows("SELECT * FROM news ORDER BY item")


def stock(sql: SqlSession) -> list[tuple[object, ...]]:
    return sql.rows("SELECT * FROM stock ORDER BY item")


class TestTarget:
    def test_rows_from_the_lake(self, sql: SqlSession) -> None:
        assert sql.rows("INSERT INTO news SELECT item, n FROM stock WHERE n = 1") == [(None, 1)]
        sql.rows("INSERT INTO news (item) SELECT item || '!' FROM few", "INSERT INTO news BY NAME SELECT 'x' AS item")
        sql.rows("INSERT INTO temp.news SELECT item || '?', n FROM stock FOR VERSION AS OF 1 WHERE item = 'pin'")
        sql.rows("WITH q AS (SELECT * FROM stock) INSERT INTO news SELECT 'w', max(n) FROM q")
        assert news(sql) == [
            *(("bolt", 1), ("bolt!", 0), ("cog", 40), ("nut", 20), ("nut!", 0), ("pin?", 3), ("w", 3), ("x", 0)),
        ]

    def test_conflicts_with_rows_of_the_lake(self, sql: SqlSession) -> None:
        text = "INSERT INTO news SELECT * FROM stock ON CONFLICT (item) DO UPDATE SET n = excluded.n + news.n RETURNING item, n"
        assert sorted(sql.rows(text)) == [("bolt", 1), ("nut", 22), ("pin", 3)]

    def test_update_and_delete(self, sql: SqlSession) -> None:
        assert sql.rows("UPDATE news SET n = news.n + s.n FROM stock AS s WHERE s.item = news.item RETURNING n") == [
            (22,)
        ]
        assert sql.rows("UPDATE temp.news SET n = temp.news.n + 1 WHERE temp.news.item = 'cog'") == [(None, 1)]
        assert sql.rows("DELETE FROM news USING few WHERE few.item = news.item") == [(None, 1)]
        assert news(sql) == [("cog", 41)]
        assert sql.rows("TRUNCATE TABLE news") == [(None, 1)]
        assert news(sql) == []

    def test_merge(self, sql: SqlSession) -> None:
        text = (
            "MERGE INTO news USING few AS s ON s.item = news.item WHEN MATCHED THEN UPDATE SET n = s.n * 100 "
            "WHEN NOT MATCHED THEN INSERT VALUES (s.item, s.n) WHEN NOT MATCHED BY SOURCE THEN DELETE RETURNING merge_action"
        )
        assert sorted(sql.rows(text)) == [("DELETE",), ("INSERT",), ("UPDATE",)]
        assert news(sql) == [("bolt", 1), ("nut", 200)]

    def test_columns_called_like_views(self, sql: SqlSession) -> None:
        sql.rows("CREATE TEMP TABLE c (few INT, stock INT, other INT)", "CREATE TEMP VIEW other AS SELECT 1 AS one")
        sql.rows(
            "INSERT INTO c (other, few, stock) VALUES (1, 2, 3)",
            "UPDATE c SET few = stock, stock = few WHERE other = 1",
        )
        sql.rows("UPDATE c SET other = o.one + 1 FROM few AS f, other AS o WHERE f.n = 2")
        assert sql.rows("SELECT few, stock, other FROM c") == [(3, 2, 2)]

    def test_common_tables_called_like_views(self, sql: SqlSession) -> None:
        sql.rows("CREATE TEMP VIEW v AS SELECT 1 AS x", "CREATE TEMP TABLE c (x INT)")
        for name in ("v", "few"):
            sql.rows(f"WITH {name} AS (SELECT 7 AS x) INSERT INTO c SELECT x FROM {name} RETURNING x")
            sql.rows(
                f"WITH a AS (SELECT 1), {name} (x, n) AS MATERIALIZED (SELECT 9, 9) UPDATE c SET x = {name}.x FROM {name}"
            )
            assert set(sql.rows("FROM c")) == {(9,)}
        sql.rows("UPDATE c SET x = s.n FROM stock FOR VERSION AS OF 1 AS s WHERE s.item = 'pin'")
        assert set(sql.rows("FROM c")) == {(3,)}

    def test_files(self, sql: SqlSession, tmp_path: Path) -> None:
        sql.rows(f"COPY news TO '{tmp_path}/n.csv'", "TRUNCATE news", f"COPY news FROM '{tmp_path}/n.csv' (HEADER)")
        assert news(sql) == [("cog", 40), ("nut", 20)]
        sql.rows(f"COPY (SELECT item || '2' AS item FROM temp.news) TO '{tmp_path}/m.parquet'")
        assert sql.rows(f"COPY news (item) FROM '{tmp_path}/m.parquet'") == [(None, 2)]

    def test_prepared(self, sql: SqlSession) -> None:
        sql.rows("PREPARE add AS INSERT INTO news VALUES ($1, $2)", "EXECUTE add('p', 5)", "EXECUTE add('q', 6)")
        sql.rows("PREPARE ask AS SELECT n FROM news WHERE item = ?")
        assert sql.rows("EXECUTE ask('q')") == [(6,)]
        sql.rows("CREATE OR REPLACE TEMP TABLE news AS SELECT 'q' AS item, 9 AS n")
        assert sql.rows("EXECUTE ask('q')") == [(9,)]

    def test_a_lake_table_of_the_name_stays_as_it_is(self, sql: SqlSession) -> None:
        sql.rows("CREATE TEMP TABLE stock AS SELECT 'temp' AS item, 7 AS n")
        sql.rows("INSERT INTO stock VALUES ('x', 8)", "UPDATE Stock SET n = n + 1", "DELETE FROM STOCK WHERE n = 8")
        with pytest.raises(InvalidError, match="OVERWRITE"):
            sql.rows("INSERT OVERWRITE stock VALUES ('x', 8)")
        assert stock(sql) == [("x", 9)]
        assert sql.rows("SELECT * FROM shop.stock ORDER BY n") == [("bolt", 1), ("nut", 2), ("pin", 3)]
        sql.rows("TRUNCATE stock", "ALTER TABLE stock ADD COLUMN z INT", "DROP TABLE stock")
        assert stock(sql) == [("bolt", 1), ("nut", 2), ("pin", 3)]


class TestSource:
    def test_of_every_statement_on_the_lake(self, sql: SqlSession) -> None:
        sql.rows("INSERT INTO stock SELECT * FROM news WHERE item = 'cog'")
        assert stock(sql)[1] == ("cog", 40)
        sql.rows("UPDATE stock SET n = stock.n + news.n FROM news WHERE news.item = stock.item AND stock.item = 'nut'")
        assert stock(sql)[2] == ("nut", 22)
        sql.rows("DELETE FROM stock USING temp.news WHERE news.item = stock.item AND news.n = 40")
        sql.rows(
            "MERGE INTO stock USING news ON news.item = stock.item WHEN MATCHED THEN UPDATE SET n = -1 "
            "WHEN NOT MATCHED THEN INSERT *"
        )
        assert stock(sql) == [("bolt", 1), ("cog", 40), ("nut", -1), ("pin", 3)]
        sql.rows("CREATE TABLE kept AS FROM news", "CREATE TEMP VIEW big AS FROM news WHERE n > 30")
        assert sql.rows("FROM kept ORDER BY n") == [("nut", 20), ("cog", 40)]
        assert sql.rows("INSERT INTO kept FROM big RETURNING item") == [("cog",)]

    def test_of_a_lake_table_of_the_same_name(self, sql: SqlSession) -> None:
        sql.rows("CREATE TEMP TABLE stock AS SELECT 'nut' AS item, 100 AS n")
        sql.rows("MERGE INTO shop.stock AS t USING stock AS s ON s.item = t.item WHEN MATCHED THEN UPDATE SET n = s.n")
        sql.rows("DELETE FROM shop.stock AS t WHERE t.item NOT IN (SELECT item FROM stock) AND t.n > 1")
        assert sql.rows("SELECT * FROM shop.stock ORDER BY n") == [("bolt", 1), ("nut", 100)]
        joined = "SELECT a.n, b.n FROM stock a JOIN shop.stock b USING (item)"
        assert sql.rows(joined) == [(100, 100)]


class TestErrors:
    @pytest.mark.parametrize(
        ("text", "reason", "at"),
        [
            ("INSERT INTO news SELECT nope FROM stock", '"nope" not found', "nope"),
            ("INSERT INTO news\nVALUES ('a', 'b')", "Could not convert", "'b'"),
            ("UPDATE temp.news SET n = q.n", '"q" not found', "q.n"),
            ("DELETE FROM news WHERE nope = 1", '"nope" not found', "nope"),
            ("INSERT INTO news VALUES (1, 2", "syntax error", None),
            ("ALTER TABLE news DROP COLUMN nope", "nope", None),
            ("INSERT INTO news VALUES ('nut', 1)", "primary key", None),
            ("INSERT INTO news SELECT item, n FROM nowhere", "nowhere", None),
            ("MERGE INTO news USING stock ON nope WHEN MATCHED THEN DELETE", "nope", None),
            ("SELECT * FROM news FOR VERSION AS OF 1", "temporary, and has no versions", None),
        ],
    )
    def test_leave_the_session_and_its_tables_as_they_were(
        self, sql: SqlSession, text: str, reason: str, at: str | None
    ) -> None:
        kind = NotFoundError if reason == "nowhere" else InvalidError
        sql.fails(text, reason, at, **({} if at is not None else {"kind": kind}))
        assert news(sql) == [("cog", 40), ("nut", 20)]
        assert stock(sql) == [("bolt", 1), ("nut", 2), ("pin", 3)]

    def test_show_no_name_of_ours(self, sql: SqlSession) -> None:
        for text in (
            "SELECT q.n FROM news",
            "UPDATE news SET n = (SELECT q.n FROM news)",
            "SELECT n FROM news, temp.news",
            "DROP TABLE temp.nothing",
            "INSERT INTO news VALUES (1, 2, 3)",
        ):
            with pytest.raises((InvalidError, NotFoundError)) as told:
                sql.rows(text)
            assert "lakelet_" not in str(told.value)
        assert "lakelet_" not in str(sql.rows("EXPLAIN SELECT * FROM news JOIN stock USING (item)"))


def test_moments_are_of_the_zone_that_is_set(sql: SqlSession) -> None:
    noon = dt.datetime(2024, 7, 1, 12, tzinfo=dt.UTC)
    for zone, text in (("UTC", "2024-07-01 12:00:00"), ("Asia/Kolkata", "2024-07-01 17:30:00")):
        sql.rows(f"SET TimeZone = '{zone}'", "CREATE OR REPLACE TEMP TABLE m (z TIMESTAMPTZ)")
        sql.rows(f"INSERT INTO m VALUES ('{text}')", f"UPDATE m SET z = '{text}' WHERE z = '{text}'")
        assert sql.rows(f"SELECT z::TIMESTAMPTZ = $noon FROM m WHERE z = '{text}'", params={"noon": noon}) == [(True,)]


def test_beside_tables_of_iceberg(tmp_path: Path) -> None:
    sql = ice_session(tmp_path)
    sql.rows("CREATE TEMP TABLE news AS FROM (VALUES ('nut', 20), ('cog', 40)) AS q(item, n)")
    sql.rows("CREATE TABLE iceberg.shop.o (item STRING, n INT)", "INSERT INTO iceberg.shop.o SELECT * FROM news")
    sql.rows("MERGE INTO iceberg.shop.o AS t USING news AS s ON s.item = t.item AND s.n = 20 WHEN MATCHED THEN DELETE")
    sql.rows("INSERT INTO news SELECT item || '!', n FROM iceberg.shop.o WHERE n = 40")
    sql.rows("UPDATE news SET n = o.n + 1 FROM iceberg.shop.o AS o WHERE o.item = news.item")
    assert news(sql) == [("cog", 41), ("cog!", 40), ("nut", 20)]
    sql.rows("CREATE TEMP VIEW joined AS SELECT o.n, news.n AS m FROM iceberg.shop.o JOIN news USING (item)")
    assert sql.rows("FROM joined") == [(40, 41)]
