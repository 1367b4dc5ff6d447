import datetime as dt
from decimal import Decimal

import pytest

from lakelet.model.types import Field
from lakelet.predicate.tree import Comparison, Or
from lakelet.sql.query.conditions import condition_text, pruning_predicate, pruning_texts, whole_condition
from lakelet.sql.statement import Params
from tests.unit.sql.parsed import FIELDS, uses_of


def text_of(query: str, params: Params = None, fields: tuple[Field, ...] = FIELDS) -> str | None:
    (use,) = uses_of(query)
    return condition_text(use, fields, params)


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("id = 1", '("id" = 1)'),
        ("1 < ID", '(1 < "id")'),
        ("id = -1", '("id" = -1)'),
        ("t.id >= 1 AND x.id = 2", '("id" >= 1)'),
        ("v = 'it''s'", "(\"v\" = 'it''s')"),
        ("v = ''", "(\"v\" = '')"),
        ("day = DATE '2026-01-01'", "(\"day\" = CAST('2026-01-01' AS DATE))"),
        ("v LIKE 'a%'", "(\"v\" LIKE 'a%')"),
        ("id BETWEEN 1 AND 2", '("id" BETWEEN 1 AND 2)'),
        ("id IN (1, 2)", '("id" IN (1, 2))'),
        ("id IN (1, 2.5)", '("id" IN (1, 2.5))'),
        ("id IN (1, 2e0)", None),
        ("id BETWEEN 1 AND 1e300", None),
        ("id BETWEEN 1e0 AND 2e0", '("id" BETWEEN 1e0 AND 2e0)'),
        ("v IN ('1', 1)", None),
        ("day BETWEEN '2026-01-01' AND DATE '2026-01-02'", None),
        ("id NOT IN (1)", '(NOT ("id" IN (1)))'),
        ("id IS NULL OR v IS NOT NULL", '(("id" IS NULL) OR ("v" IS NOT NULL))'),
        ("NOT (id = 1 AND v = 'a')", '(NOT (("id" = 1) AND ("v" = \'a\')))'),
        ("id = 1 AND hash(v) = 2", '("id" = 1)'),
        ("id = 1 OR hash(v) = 2", None),
        ("id = id", None),
        ("id + 1 = 2", None),
        ("id = (SELECT 1)", None),
        ("v ILIKE 'a%'", None),
        ("v COLLATE NOCASE = 'a'", None),
        ("other = 1", None),
        ("u.id = 1", None),
        ("true", None),
    ],
)
def test_terms_that_compare_columns_with_constants_are_kept(condition: str, expected: str | None) -> None:
    assert text_of(f"SELECT * FROM t WHERE {condition}") == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("t JOIN u ON t.id = 1 WHERE t.v = 'a'", '("v" = \'a\') AND ("id" = 1)'),
        ("u JOIN t ON t.id = 1", '("id" = 1)'),
        ("t, u WHERE t.id = 1", '("id" = 1)'),
        ("t JOIN u USING (id) JOIN w ON t.n = 2 WHERE t.id = 1", '("id" = 1) AND ("n" = 2)'),
        ("t LEFT JOIN u ON t.id = 1 WHERE t.v = 'a'", "(\"v\" = 'a')"),
        ("u RIGHT JOIN t ON t.id = 1 WHERE t.v = 'a'", "(\"v\" = 'a')"),
        ("t FULL JOIN u ON t.id = 1 WHERE t.v IS NULL", None),
        ("u LEFT JOIN t ON t.id = 1 WHERE t.v IS NULL", '("id" = 1)'),
        ("t RIGHT JOIN u ON t.id = 1 AND t.v = u.v WHERE t.v IS NULL", '("id" = 1)'),
        ("t LEFT JOIN u USING (id) WHERE id = 1", None),
        ("u RIGHT JOIN t USING (id) WHERE id IS NULL", None),
        ("t NATURAL LEFT JOIN u WHERE id = 1", None),
        ("t ANTI JOIN u ON t.id = 1", None),
        ("t SEMI JOIN u ON t.id = 1 WHERE t.v = 'a'", None),
        ("t ASOF JOIN u ON t.id >= u.id WHERE t.v = 'a'", None),
        ("t POSITIONAL JOIN u WHERE t.v = 'a'", None),
        ("(t JOIN u ON t.id = 1) LEFT JOIN w ON true", '("id" = 1)'),
        ("(t JOIN u ON t.id = 1) RIGHT JOIN w ON t.n = 2 WHERE t.v IS NULL", '("id" = 1) AND ("n" = 2)'),
        ("(u LEFT JOIN t ON t.id = 1) JOIN w ON t.n IS NULL WHERE t.v IS NULL", '("id" = 1)'),
        ("(u LEFT JOIN t ON t.id = 1) LEFT JOIN w ON t.n = 2", '("id" = 1)'),
        ("(t LEFT JOIN u ON t.id = 1) JOIN w ON t.n = 2 WHERE t.v = 'a'", '("v" = \'a\') AND ("n" = 2)'),
        ("(t LEFT JOIN u ON t.id = 1) RIGHT JOIN w ON t.n = 2 WHERE t.v = 'a'", '("n" = 2)'),
        ("t AS x(a, b) WHERE id = 1", None),
        ("t TABLESAMPLE 10% WHERE id = 1", None),
        ("t WHERE id = 1 USING SAMPLE 3", None),
    ],
)
def test_what_an_outer_join_may_lack_is_not_pruned(source: str, expected: str | None) -> None:
    assert text_of(f"SELECT * FROM {source}") == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1, '("id" = 1)'),
        (True, '("id" = true)'),
        ("a'b", "(\"id\" = 'a''b')"),
        (Decimal("1.50"), '("id" = 1.50)'),
        (dt.date(2026, 1, 1), "(\"id\" = CAST('2026-01-01' AS DATE))"),
        (dt.datetime(2026, 1, 1, 12), "(\"id\" = CAST('2026-01-01 12:00:00' AS TIMESTAMP))"),
        (dt.datetime(2026, 1, 1, tzinfo=dt.UTC), None),
        (1.5, None),
        (None, None),
        (Decimal("NaN"), None),
        (b"x", None),
    ],
)
def test_parameters_are_taken_by_name_and_by_place(value: object, expected: str | None) -> None:
    assert text_of("SELECT * FROM t WHERE id = $x", {"x": value}) == expected
    assert text_of("SELECT * FROM t WHERE id = ?", [value]) == expected


def test_a_parameter_without_a_value_is_left_to_duckdb() -> None:
    assert text_of("SELECT * FROM t WHERE id = $x", {"y": 1}) is None
    assert text_of("SELECT * FROM t WHERE id = $2", [1]) is None
    assert text_of("SELECT * FROM t WHERE id = $x") is None


def test_several_uses_of_a_table_prune_what_none_of_them_needs() -> None:
    both = uses_of("SELECT * FROM t WHERE id = 1 UNION ALL SELECT * FROM t WHERE v = 'a'")
    texts = pruning_texts(both, FIELDS, None)
    assert len(texts) == 2
    predicate = pruning_predicate(texts, FIELDS)
    assert isinstance(predicate, Or)
    one_whole = uses_of("SELECT * FROM t WHERE id = 1 UNION ALL SELECT * FROM t")
    assert pruning_texts(one_whole, FIELDS, None) == ()
    assert pruning_predicate((), FIELDS) is None


def test_a_condition_that_makes_no_sense_prunes_nothing() -> None:
    assert pruning_predicate(["\"id\" = 'x'"], FIELDS) is None
    assert isinstance(pruning_predicate(['"id" = 1'], FIELDS), Comparison)
    assert pruning_predicate(["NOT (" * 2000 + '"id" = 1' + ")" * 2000], FIELDS) is None


def test_a_whole_condition_is_understood_or_not_at_all() -> None:
    (use,) = uses_of("SELECT * FROM t WHERE id = 1 AND v = 'a'")
    assert whole_condition(use, FIELDS, None) == '(("id" = 1) AND ("v" = \'a\'))'
    (use,) = uses_of("SELECT * FROM t WHERE id = 1 AND hash(v) = 2")
    assert whole_condition(use, FIELDS, None) is None
