"""Rule 29: a name in a clause of MERGE belongs to a side that has a row there, however it is written."""

import pyarrow as pa
import pytest

from lakelet import InvalidError
from tests.unit.sql.statements.changed_tables import START, filled, rows
from tests.unit.sql_session import SqlSession

SOURCE = "(VALUES (1, 'a', 100, {'f': 7}), (9, 'a', 900, {'f': 8})) AS q(id, p, w, r)"
MERGE = f"MERGE INTO t USING {SOURCE} ON t.id = q.id"
# Ways to name a column `{c}` of the side `{a}`, beside its qualified name.
WAYS = [
    "{a}.{c}",
    "{c}",
    "{c} + 1",
    "CASE WHEN {a}.{c} IS NULL THEN 1 END",
    "(SELECT {a}.{c})",
    "(SELECT max(o.v) FROM t AS o WHERE o.v = {a}.{c})",
    "(SELECT {c})",
    "list_sum(list_transform([1], lambda x: x + {a}.{c}))",
    "COALESCE({a}.{c}, 1)",
]


@pytest.fixture(params=["append", "fixed", "crossing"])
def sql(request: pytest.FixtureRequest) -> SqlSession:
    made = SqlSession()
    filled(made, request.param)
    return made


@pytest.fixture
def plain() -> SqlSession:
    made = SqlSession()
    filled(made, "append")
    return made


NEW = [
    "WHEN NOT MATCHED THEN INSERT VALUES (q.id, q.p, {}, 'x')",
    "WHEN NOT MATCHED BY TARGET THEN INSERT (id, v) VALUES (q.id, {})",
    "WHEN NOT MATCHED AND {} IS NULL THEN INSERT VALUES (q.id, q.p, 1, 'x')",
    "WHEN NOT MATCHED AND {} IS NULL THEN DO NOTHING",
    "WHEN NOT MATCHED THEN ERROR CAST({} AS VARCHAR)",
    "WHEN MATCHED THEN DELETE WHEN NOT MATCHED AND {} = 1 THEN INSERT (id) VALUES (q.id)",
]
ALONE = [
    "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET v = {}",
    "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET (v, s) = ({}, 'x')",
    "WHEN NOT MATCHED BY SOURCE AND {} IS NULL THEN DELETE",
    "WHEN NOT MATCHED BY SOURCE AND {} IS NULL THEN DO NOTHING",
    "WHEN MATCHED THEN DELETE WHEN NOT MATCHED BY SOURCE AND t.v > 1 THEN UPDATE SET v = {}",
]


@pytest.mark.parametrize(
    ("clause", "way"), [*((NEW[0], way) for way in WAYS), *((one, WAYS[0]) for one in NEW[1:]), (NEW[2], WAYS[1])]
)
def test_rule_29_the_target_has_no_row_where_nothing_matched(plain: SqlSession, clause: str, way: str) -> None:
    text = f"{MERGE} {clause.format(way.format(a='t', c='v'))}"
    plain.fails(text, r"column (t\.)?v belongs to the target, which has no row in WHEN NOT MATCHED:")


@pytest.mark.parametrize(
    ("clause", "way"),
    [
        *((ALONE[0], way) for way in (*WAYS, "{a}.r.f", "r.f")),
        *((one, WAYS[0]) for one in ALONE[1:]),
        (ALONE[2], WAYS[1]),
    ],
)
def test_rule_29_the_source_has_no_row_where_it_did_not_match(plain: SqlSession, clause: str, way: str) -> None:
    text = f"{MERGE} {clause.format(way.format(a='q', c='w'))}"
    plain.fails(text, r"column (q\.)?[wr](\.f)? belongs to the source, which has no row in WHEN NOT MATCHED BY SOURCE:")


@pytest.mark.parametrize("text", ["t.*", "q.*", "t", "COLUMNS(*)"])
@pytest.mark.parametrize(
    "clause",
    ["WHEN NOT MATCHED BY SOURCE THEN UPDATE SET v = {}", "WHEN NOT MATCHED THEN INSERT (id, v) VALUES (1, {})"],
)
def test_rule_29_all_columns_of_a_side_are_no_value(plain: SqlSession, text: str, clause: str) -> None:
    plain.fails(f"{MERGE} {clause.format(text)}", "[a-z]", kind=InvalidError)


def test_names_without_a_side_are_those_of_the_one_that_is_there(sql: SqlSession) -> None:
    text = (
        "MERGE INTO t USING (VALUES (1, 'a', 100), (9, 'a', 900)) AS q(id, p, v) ON t.id = q.id "
        "WHEN MATCHED AND t.v < (SELECT max(v) FROM t) THEN UPDATE SET v = q.v + t.v "
        "WHEN NOT MATCHED AND v > (SELECT min(v) FROM t) THEN INSERT VALUES (id, p, v, upper(p)) "
        "WHEN NOT MATCHED BY SOURCE AND id > 3 AND EXISTS (SELECT 1 FROM t AS o WHERE o.id = t.id - 1) "
        "THEN UPDATE SET s = s || p"
    )
    assert sql.rows(text)[0][1] == 4
    assert rows(sql) == [
        (1, "a", 110, "one"),
        *START[1:3],
        (4, "b", None, "fourb"),
        (5, "a", 50, "fivea"),
        (9, "a", 900, "A"),
    ]


def test_a_value_is_worked_out_for_rows_of_its_clause_only(sql: SqlSession) -> None:
    text = (
        f"{MERGE} WHEN MATCHED THEN UPDATE SET v = CASE WHEN q.id = 1 THEN 1 ELSE error('matched') END "
        "WHEN NOT MATCHED THEN INSERT VALUES (id, p, CASE WHEN id = 9 THEN 2 ELSE error('new') END, NULL) "
        "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET v = CASE WHEN id IN (2, 3, 4, 5) THEN 3 ELSE error('alone') END"
    )
    sql.rows(text)
    assert [row[2] for row in rows(sql)] == [1, 3, 3, 3, 3, 2]


def test_columns_called_like_ours_are_the_users(plain: SqlSession) -> None:
    names = [
        "__lakelet_row",
        "__lakelet_file",
        "__lakelet_clause",
        "__lakelet_source",
        "__lakelet__row",
        "__LAKELET_KEPT_0",
    ]
    source = f"(SELECT 2 AS id, {', '.join(f'{place} AS {name}' for place, name in enumerate(names))})"
    values = " + ".join(f"s.{name}" for name in names)
    sees = f"s({', '.join(('id', *names))})"
    plain.rows(f"UPDATE t SET v = {values} FROM {source} AS {sees} WHERE t.id = s.id AND __lakelet_row = 0")
    for alias in ("s", sees):
        plain.rows(
            f"MERGE INTO t USING {source} AS {alias} ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = t.v + {values}"
        )
    # Where the statement does not name them.
    data = {"id": [2, 8], "p": ["b", "c"], "v": [1, 2], "s": ["x", "y"], **{name: [0, 0] for name in names}}
    merge = "MERGE INTO t USING frame ON t.id = frame.id WHEN MATCHED THEN DO NOTHING WHEN NOT MATCHED THEN INSERT *"
    plain.rows(merge, frames={"frame": pa.table(data)})
    assert rows(plain) == [START[0], (2, "b", 45, "two"), *START[2:], (8, "c", 2, "y")]


@pytest.mark.parametrize("name", ["__lakelet_row", "__lakelet_kept_0"])
@pytest.mark.parametrize(
    "text",
    [
        "UPDATE t SET v = {}",
        "DELETE FROM t WHERE {} = 1",
        MERGE + " WHEN MATCHED AND {} = 1 THEN DELETE",
        MERGE + " WHEN NOT MATCHED THEN INSERT (id, v) VALUES (1, {})",
        MERGE + " WHEN NOT MATCHED BY SOURCE THEN UPDATE SET v = {}",
    ],
)
def test_columns_of_ours_cannot_be_named(plain: SqlSession, text: str, name: str) -> None:
    # The message shows no name of ours, not even one that the user has typed.
    plain.fails(text.replace("{}", name), "not found in FROM clause")


def test_a_row_as_a_value_has_its_own_columns(plain: SqlSession) -> None:
    plain.rows("UPDATE t SET s = to_json(t) WHERE id = 1")
    merge = (
        "MERGE INTO t USING (SELECT 2 AS id, 5 AS w) AS q ON t.id = q.id WHEN MATCHED THEN UPDATE SET s = to_json(q)"
    )
    plain.rows(merge)
    assert [row[3] for row in rows(plain)][:2] == ['{"id":1,"p":"a","v":10,"s":"one"}', '{"id":2,"w":5}']


KEYED_SOURCE = "(VALUES (1, 'a', 100), (9, 'a', 900)) AS q(id, p, v)"


@pytest.mark.parametrize("layout", ["fixed", "vectors", "crossing"])
@pytest.mark.parametrize(
    "rest",
    [
        "ON t.id = q.id AND q.v > 100 WHEN NOT MATCHED THEN INSERT VALUES (id, p, v, 'x')",
        "ON t.v = q.v WHEN NOT MATCHED THEN INSERT VALUES (id, p, v, 'x')",
        "ON t.id = q.id WHEN NOT MATCHED THEN INSERT VALUES (id - 8, p, v, 'x')",
        "ON t.id = q.id WHEN NOT MATCHED THEN INSERT (id, p) VALUES (1, 'a')",
        "USING (p, id, v) WHEN NOT MATCHED THEN INSERT BY NAME",
        "ON q.v = t.id WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT BY NAME",
    ],
)
def test_a_row_that_did_not_match_is_not_replaced(layout: str, rest: str) -> None:
    sql = SqlSession()
    filled(sql, layout)
    text = f"MERGE INTO t USING {KEYED_SOURCE} {rest}"
    sql.fails(
        text, "a row would be inserted with the key id = 1, which a row has that did not match", kind=InvalidError
    )


@pytest.mark.parametrize(
    "rest",
    [
        "ON t.id = q.id AND q.v > 1 WHEN NOT MATCHED THEN INSERT VALUES (id, p, v, 'x')",
        "ON Q.ID = T.id WHEN NOT MATCHED THEN INSERT VALUES (q.id, p, v, 'x')",
        "USING (id) WHEN NOT MATCHED THEN INSERT (p, id, v, s) VALUES (p, id, v, 'x')",
        "ON t.v = q.v WHEN NOT MATCHED AND id = 9 THEN INSERT VALUES (id, p, v, 'x')",
    ],
)
def test_keys_that_are_not_there_are_inserted(rest: str) -> None:
    sql = SqlSession()
    filled(sql, "fixed")
    assert sql.rows(f"MERGE INTO t USING {KEYED_SOURCE} {rest}")[0][1] == 1
    assert rows(sql) == [*START, (9, "a", 900, "x")]
