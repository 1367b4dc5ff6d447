"""Table references of a statement, by its tokens alone."""

from __future__ import annotations

import pytest

from lakelet.errors import InvalidError
from lakelet.sql.lexer.spark_references import references
from lakelet.sql.lexer.spark_words import words_of


def spans(text: str) -> list[str]:
    return [text[found.start : found.end] for found in references(words_of(text))]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT 1", []),
        ("SELECT * FROM orders", []),
        ("SELECT * FROM spark_catalog.shop.orders", ["spark_catalog.shop.orders"]),
        ("SELECT * FROM a.b.c.d", []),
        (
            "SELECT ice.shop.o.id FROM ice.shop.o VERSION AS OF 'dev' JOIN shop.o",
            ["ice.shop.o VERSION AS OF 'dev'", "shop.o"],
        ),
        ("SELECT * FROM shop.orders", ["shop.orders"]),
        ("select o.id from shop . orders o", ["shop . orders"]),
        ("SELECT * FROM `my shop`.`or``ders`", ["`my shop`.`or``ders`"]),
        ("SELECT * FROM shop.orders$branch_dev b", ["shop.orders$branch_dev"]),
        ("SELECT * FROM a.b, c.d x, e JOIN f.g ON x.y = f.g, h.i", ["a.b", "c.d", "f.g", "h.i"]),
        ("SELECT * FROM (a.b JOIN (c.d) USING (x)) CROSS JOIN e.f", ["a.b", "c.d", "e.f"]),
        ("SELECT * FROM ((SELECT 1 FROM a.b)), ((c.d))", ["a.b", "c.d"]),
        ("(SELECT 1 FROM a.b) UNION ALL (SELECT 2 FROM c.d)", ["a.b", "c.d"]),
        ("WITH a AS (SELECT * FROM shop.x) SELECT * FROM a WHERE i IN (SELECT k.f FROM shop.k)", ["shop.x", "shop.k"]),
        ("SELECT (SELECT max(x) FROM a.b), EXISTS (SELECT 1 FROM c.d) FROM e.f", ["a.b", "c.d", "e.f"]),
        ("SELECT extract(year FROM t.x), trim(BOTH 'x' FROM t.y) FROM a.b t", ["a.b"]),
        ("SELECT t.x IS DISTINCT FROM t.y, t.x IS NOT DISTINCT FROM t.z FROM a.b t", ["a.b"]),
        ("SELECT 'FROM a.b', \"FROM c.d\" /* FROM e.f */ FROM g.h -- FROM i.j", ["g.h"]),
        ("SELECT '🙂 ünï' FROM shop.orders", ["shop.orders"]),
        ("SELECT 1 FROM a.b WHERE x IN (1, c.d) GROUP BY x, e.f ORDER BY g.h, i.j", ["a.b"]),
        ("SELECT * FROM a.b LATERAL VIEW explode(b.x) t AS c, d.e", ["a.b"]),
        ("SELECT * FROM a.b, LATERAL (SELECT * FROM c.d WHERE c.d.x = b.y)", ["a.b", "c.d"]),
        ("SELECT * FROM a.b PIVOT (sum(x) FOR y IN (1, 2)), c.d", ["a.b", "c.d"]),
        ("SELECT * FROM a.b TABLESAMPLE (5 ROWS) s", ["a.b"]),
        ("SELECT * FROM db.f(1), range(3), TABLE(db.g(2))", []),
        ("SELECT * FROM f(TABLE(a.b), TABLE c.d)", ["a.b", "c.d"]),
        ("SELECT * FROM parquet.`/a/b`", ["parquet.`/a/b`"]),
        ("SELECT t.from.a FROM a.b t", ["a.b"]),
        ("FROM a.b SELECT x", ["a.b"]),
        ("FROM a.b |> SELECT x, y.z |> JOIN c.d USING (x)", ["a.b", "c.d"]),
        ("FROM a.b | AGGREGATE sum(x), c.d GROUP BY y | JOIN e.f USING (y)", ["a.b", "e.f"]),
        ("SELECT 1 FROM a.b JOIN c.d ON b.x | 1 = d.x, e.f", ["a.b", "c.d", "e.f"]),
        ("SELECT /*+ BROADCAST(o), REPARTITION(3) */ x.y FROM a.b o", ["a.b"]),
        ("SELECT r'\\', ' FROM c.d, (' FROM a.b", ["a.b"]),
        ("TABLE a.b", ["a.b"]),
        ("INSERT INTO a.b SELECT * FROM c.d", ["a.b", "c.d"]),
        ("INSERT INTO a.b (x, y) VALUES (1, 'c.d')", ["a.b"]),
        ("INSERT OVERWRITE a.b SELECT 1", ["a.b"]),
        ("INSERT OVERWRITE TABLE a.b SELECT 1", ["a.b"]),
        ("DELETE FROM a.b WHERE x = 1", ["a.b"]),
        ("UPDATE a.b SET x = c.d", ["a.b"]),
        ("EXPLAIN EXTENDED SELECT * FROM a.b", ["a.b"]),
        ("CACHE TABLE c AS SELECT * FROM a.b", ["a.b"]),
        ("ANALYZE TABLE a.b COMPUTE STATISTICS", ["a.b"]),
    ],
)
def test_references(text: str, expected: list[str]) -> None:
    assert spans(text) == expected


@pytest.mark.parametrize(
    ("clause", "version", "timestamp"),
    [
        ("VERSION AS OF 3", 3, None),
        ("for version as of 3", 3, None),
        ("VERSION AS OF 'v1'", "v1", None),
        ("FOR SYSTEM_VERSION AS OF 3", 3, None),
        ("TIMESTAMP AS OF '2026-01-01'", None, "2026-01-01"),
        ("FOR TIMESTAMP AS OF TIMESTAMP '2026-01-01'", None, "2026-01-01"),
        ("FOR SYSTEM_TIME AS OF '2026-01-01'", None, "2026-01-01"),
    ],
)
def test_time_travel_is_part_of_the_reference(clause: str, version: int | str | None, timestamp: str | None) -> None:
    text = f"SELECT * FROM a.b {clause} AS t, c.d"
    first, second = references(words_of(text))
    assert text[first.start : first.end] == f"a.b {clause}"
    assert (first.version, first.timestamp) == (version, timestamp)
    assert (second.database, second.table, second.version, second.timestamp) == ("c", "d", None, None)


@pytest.mark.parametrize("clause", ["VERSION AS OF x", "VERSION AS OF 1.5", "VERSION AS OF", "TIMESTAMP AS OF now()"])
def test_versions_are_literals(clause: str) -> None:
    with pytest.raises(InvalidError, match="AS OF: expected"):
        references(words_of(f"SELECT * FROM a.b {clause}"))


def test_an_alias_that_reads_like_time_travel_is_none() -> None:
    assert spans("SELECT * FROM a.b version WHERE x = 1") == ["a.b"]
    assert spans("SELECT * FROM a.b timestamp") == ["a.b"]
