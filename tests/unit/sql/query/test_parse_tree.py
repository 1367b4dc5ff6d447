import pytest

from lakelet.sql.query.parse_tree import functions, only_select, references
from tests.unit.sql.parsed import parsed


def named(text: str) -> list[str]:
    return [".".join(one.parts) for one in references(parsed(text))]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT * FROM a", ["a"]),
        ("SELECT * FROM shop.a JOIN b ON true, c", ["shop.a", "b", "c"]),
        ("SELECT 1", []),
        ("WITH x AS (SELECT * FROM a) SELECT * FROM x JOIN b ON true", ["a", "b"]),
        ("WITH a AS (SELECT * FROM a) SELECT * FROM a", ["a"]),
        ("WITH a AS (SELECT 1) SELECT * FROM shop.a", ["shop.a"]),
        ("WITH x AS (SELECT 1), y AS (SELECT * FROM x) SELECT * FROM y", []),
        ("WITH RECURSIVE r AS (SELECT 1 AS i UNION ALL SELECT i FROM r) SELECT * FROM r", []),
        ("SELECT * FROM (WITH x AS (SELECT 1) SELECT * FROM x) UNION ALL SELECT * FROM x", ["x"]),
        ("SELECT * FROM a WHERE id IN (SELECT id FROM b) AND EXISTS (FROM c)", ["a", "b", "c"]),
        ("SELECT (SELECT max(id) FROM a)", ["a"]),
        ("FROM a", ["a"]),
        ("TABLE a", ["a"]),
        ("SELECT * FROM a UNION SELECT * FROM A", ["a", "A"]),
        ("SELECT * FROM read_parquet('x')", []),
    ],
)
def test_tables_are_those_that_no_common_table_hides(text: str, expected: list[str]) -> None:
    assert sorted(named(text)) == sorted(expected)


def test_a_reference_knows_its_alias_its_place_and_its_select() -> None:
    (one,) = references(parsed("SELECT 'é', x.id FROM shop.orders AS x WHERE x.id = 1"))
    assert one.alias == "x"
    # In bytes, of which é has two.
    assert one.place == len("SELECT 'é', x.id FROM ".encode())
    assert one.select is not None
    assert one.select["where_clause"]["type"] == "COMPARE_EQUAL"


def test_the_alias_of_a_table_is_its_name_unless_there_is_another() -> None:
    assert references(parsed("SELECT * FROM shop.orders"))[0].alias == "orders"


def test_a_lone_select_is_told_from_others() -> None:
    assert only_select(parsed("SELECT 1")) is not None
    assert only_select(parsed("WITH x AS (SELECT 1) SELECT * FROM x")) is None
    assert only_select(parsed("SELECT 1 UNION SELECT 2")) is None
    assert only_select(parsed("SELECT 1; SELECT 2")) is None


def test_table_functions_are_found() -> None:
    assert len(list(functions(parsed("SELECT * FROM range(3) a JOIN (SELECT * FROM range(4)) b ON true")))) == 2
