import datetime as dt
from decimal import Decimal

import pytest

from lakelet.sql.engine.engine_errors import Placed
from lakelet.sql.lexer.errors import SqlError
from lakelet.sql.lexer.words import words_of
from lakelet.sql.query.time_travel import Travel, travels

VALUES = {
    "1": 1,
    "'tag'": "tag",
    "'2026-01-01'": "2026-01-01",
    "TIMESTAMP '2026-01-01'": dt.datetime(2026, 1, 1),
    "DATE '2026-01-01'": dt.date(2026, 1, 1),
    "(1 + 1)": 2,
    "$v": 7,
    "?": 7,
    "3.0": Decimal("3.0"),
    "1.5": Decimal("1.5"),
    "(NULL)": None,
    "(true)": True,
}


def found(text: str) -> tuple[list[Travel], str]:
    travelled, edits = travels(text, words_of(text), lambda expression: VALUES[expression])
    return travelled, Placed(text, tuple(edits)).changed


@pytest.mark.parametrize(
    ("text", "travel", "changed"),
    [
        ("FROM t FOR VERSION AS OF 1", Travel(("t",), "t@1", 1), 'FROM "t@1" AS "t"'),
        ("FROM t VERSION AS OF 'tag'", Travel(("t",), "t@1", "tag"), 'FROM "t@1" AS "t"'),
        ("FROM t FOR SYSTEM_VERSION AS OF 1", Travel(("t",), "t@1", 1), 'FROM "t@1" AS "t"'),
        ("FROM a.t FOR VERSION AS OF 1", Travel(("a", "t"), "t@1", 1), 'FROM "t@1" AS "t"'),
        ('FROM "a b"."t" FOR VERSION AS OF 1', Travel(("a b", "t"), "t@1", 1), 'FROM "t@1" AS "t"'),
        ("FROM t FOR VERSION AS OF 1 AS x", Travel(("t",), "t@1", 1), 'FROM "t@1" AS x'),
        ("FROM t FOR VERSION AS OF 1 x WHERE", Travel(("t",), "t@1", 1), 'FROM "t@1" x WHERE'),
        ("FROM t FOR VERSION AS OF 1 WHERE x", Travel(("t",), "t@1", 1), 'FROM "t@1" AS "t" WHERE x'),
        ("FROM t x FOR VERSION AS OF 1", Travel(("t",), "t@1", 1), 'FROM "t@1" x'),
        ("FROM t AS x FOR VERSION AS OF 1", Travel(("t",), "t@1", 1), 'FROM "t@1" AS x'),
        ("FROM t AT (VERSION => 1)", Travel(("t",), "t@1", 1), 'FROM "t@1" AS "t"'),
        (
            "FROM t$branch_x FOR VERSION AS OF 1",
            Travel(("t$branch_x",), "t$branch_x@1", 1),
            'FROM "t$branch_x@1" AS "t$branch_x"',
        ),
        ("FROM t FOR VERSION AS OF (1 + 1)", Travel(("t",), "t@1", 2), 'FROM "t@1" AS "t"'),
        ("FROM t FOR VERSION AS OF $v", Travel(("t",), "t@1", 7), 'FROM "t@1" AS "t"'),
        ("FROM t FOR VERSION AS OF ?", Travel(("t",), "t@1", 7), 'FROM "t@1" AS "t"'),
        ("FROM t FOR VERSION AS OF 3.0", Travel(("t",), "t@1", 3), 'FROM "t@1" AS "t"'),
        (
            "FROM t FOR TIMESTAMP AS OF '2026-01-01'",
            Travel(("t",), "t@1", timestamp="2026-01-01"),
            'FROM "t@1" AS "t"',
        ),
        (
            "FROM t TIMESTAMP AS OF TIMESTAMP '2026-01-01' JOIN u",
            Travel(("t",), "t@1", timestamp=dt.datetime(2026, 1, 1)),
            'FROM "t@1" AS "t" JOIN u',
        ),
        (
            "FROM t FOR SYSTEM_TIME AS OF DATE '2026-01-01'",
            Travel(("t",), "t@1", timestamp=dt.datetime(2026, 1, 1)),
            'FROM "t@1" AS "t"',
        ),
    ],
)
def test_a_version_becomes_a_name_of_its_own(text: str, travel: Travel, changed: str) -> None:
    assert found(f"SELECT * {text}") == ([travel], f"SELECT * {changed}")


def test_each_version_has_its_own_name() -> None:
    text = "SELECT * FROM t FOR VERSION AS OF 1 JOIN t VERSION AS OF 'tag' AS u ON t.id = u.id, t AS now"
    travelled, changed = found(text)
    assert [one.stand_in for one in travelled] == ["t@1", "t@2"]
    assert changed == 'SELECT * FROM "t@1" AS "t" JOIN "t@2" AS u ON t.id = u.id, t AS now'


@pytest.mark.parametrize(
    "text",
    [
        "SELECT version, timestamp FROM t",
        "SELECT 'FOR VERSION AS OF 1' FROM t",
        "SELECT * FROM t AT TIME ZONE",
        "SELECT CAST(x AS TIMESTAMP) AS of FROM t",
    ],
)
def test_what_only_looks_like_a_version_is_left_alone(text: str) -> None:
    assert found(text) == ([], text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT * FROM t FOR VERSION AS OF", "found the end"),
        ("SELECT * FROM t FOR VERSION AS OF x", "found x"),
        ("SELECT * FROM t FOR VERSION AS OF 1.5", "expected a snapshot id or the name of a tag"),
        ("SELECT * FROM t FOR VERSION AS OF (NULL)", "expected a snapshot id or the name of a tag"),
        ("SELECT * FROM t FOR VERSION AS OF (true)", "expected a snapshot id or the name of a tag"),
        ("SELECT * FROM t FOR TIMESTAMP AS OF (NULL)", "expected a moment"),
        ("SELECT * FROM (SELECT 1) FOR VERSION AS OF 1", "can only follow the name of a table"),
    ],
)
def test_a_version_that_makes_no_sense_is_refused(text: str, message: str) -> None:
    with pytest.raises(SqlError, match=message):
        found(text)
