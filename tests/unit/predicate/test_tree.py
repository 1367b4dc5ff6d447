import pickle

import pyarrow as pa
import pytest

from lakelet.errors import InvalidError
from lakelet.predicate.row_mask import after_prefix, evaluate, expression, like_prefix
from lakelet.predicate.tree import (
    FALSE,
    TRUE,
    And,
    Comparison,
    Constant,
    InList,
    IsNull,
    Like,
    Not,
    Opaque,
    Operator,
    Or,
    Predicate,
    always,
    columns,
    conjunction,
    conjuncts,
    disjunction,
    never,
    normalise,
)

A = Comparison("a", "=", pa.scalar(1))
B = IsNull("b")
C = Opaque('"c" + "a" > 1', ("c", "a"))


def test_columns_are_named_once_in_order() -> None:
    assert columns(Or((And((B, A)), Not(C), TRUE))) == ("b", "a", "c")


@pytest.mark.parametrize(
    ("operator", "opposite"), [("=", "<>"), ("<>", "="), ("<", ">="), (">=", "<"), (">", "<="), ("<=", ">")]
)
def test_not_turns_a_comparison_around(operator: Operator, opposite: Operator) -> None:
    literal = pa.scalar(1)
    assert normalise(Not(Comparison("a", operator, literal))) == Comparison("a", opposite, literal)


def test_not_is_pushed_through_and_and_or() -> None:
    pushed = normalise(Not(Or((A, And((B, Not(Like("s", "x%"))))))))
    assert pushed == And((Comparison("a", "<>", pa.scalar(1)), Or((IsNull("b", negated=True), Like("s", "x%")))))


def test_not_of_sql_stays_sql() -> None:
    assert normalise(Not(C)) == Opaque('NOT CAST(("c" + "a" > 1) AS BOOLEAN)', ("c", "a"))
    assert normalise(Not(Not(C))) == C


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        (Constant(None), FALSE),
        (Not(Constant(None)), FALSE),
        (Not(TRUE), FALSE),
        (Comparison("a", "=", pa.scalar(None, pa.int64())), FALSE),
        (Not(Comparison("a", "=", pa.scalar(None, pa.int64()))), FALSE),
        (never("a"), FALSE),
        (Not(never("a")), IsNull("a", negated=True)),
        (always("a"), IsNull("a", negated=True)),
        (Not(always("a")), FALSE),
        (InList("a", pa.array([1, None]), negated=True), FALSE),
        (Not(InList("a", pa.array([1, None]))), FALSE),
        (InList("a", pa.array([None], pa.int64())), FALSE),
        (Not(InList("a", pa.array([], pa.int64()))), IsNull("a", negated=True)),
    ],
)
def test_unknown_counts_as_no_at_the_leaves_only(predicate: Predicate, expected: Predicate) -> None:
    assert normalise(predicate) == expected


def test_nulls_leave_a_list_that_is_not_negated() -> None:
    kept = normalise(InList("a", pa.array([1, None, 2])))
    assert isinstance(kept, InList)
    assert kept.values.to_pylist() == [1, 2]


def test_joins_flatten_and_drop_what_decides_nothing() -> None:
    assert conjunction([A, And((B, TRUE))]) == And((A, B))
    assert conjunction([]) == TRUE
    assert conjunction([A, FALSE]) == FALSE
    assert disjunction([A, Or((B, FALSE))]) == Or((A, B))
    assert disjunction([]) == FALSE
    assert disjunction([A, TRUE]) == TRUE
    assert conjuncts(And((A, B))) == (A, B)
    assert conjuncts(A) == (A,)


def test_predicates_survive_pickling() -> None:
    predicate = And((A, B, C, Like("s", "a%"), InList("a", pa.array([1, 2]))))
    copy = pickle.loads(pickle.dumps(predicate))
    assert copy.terms[:4] == predicate.terms[:4]
    assert copy.terms[4].values.equals(pa.array([1, 2]))


def test_like_prefix_stops_at_the_first_wildcard() -> None:
    assert like_prefix(Like("s", "ab%c")) == ("ab", False)
    assert like_prefix(Like("s", "_b")) == ("", False)
    assert like_prefix(Like("s", "a#%b#_", "#")) == ("a%b_", True)


def test_after_prefix_is_the_least_greater_string() -> None:
    assert after_prefix("abc") == "abd"
    assert after_prefix("a\ud7ff") == "a\ue000"
    assert after_prefix("a\U0010ffff") == "b"
    assert after_prefix("\U0010ffff") is None


def test_evaluate_rule_13_nan_is_the_greatest_value() -> None:
    table = pa.table({"x": pa.array([1.0, float("nan"), None, -0.0])})

    def kept(operator: Operator, value: float) -> list[bool]:
        found: list[bool] = evaluate(Comparison("x", operator, pa.scalar(value)), table).tolist()
        return found

    nan = float("nan")
    assert kept(">", 0.5) == [True, True, False, False]
    assert kept(">=", nan) == [False, True, False, False]
    assert kept(">", nan) == [False, False, False, False]
    assert kept("<", nan) == [True, False, False, True]
    assert kept("<=", nan) == [True, True, False, True]
    assert kept("<>", nan) == [True, False, False, True]
    assert kept("=", 0.0) == [False, False, False, True]
    assert evaluate(InList("x", pa.array([nan, 0.0])), table).tolist() == [False, True, False, True]
    assert evaluate(InList("x", pa.array([nan, 0.0]), negated=True), table).tolist() == [True, False, False, False]


def test_evaluate_takes_tables_of_several_chunks_and_no_rows() -> None:
    table = pa.table({"a": pa.chunked_array([[1, 2], [3, None]])})
    predicate = Or((Comparison("a", ">", pa.scalar(2)), Opaque('"a" = 1', ("a",))))
    assert evaluate(predicate, table).tolist() == [True, False, True, False]
    assert evaluate(predicate, table.slice(0, 0)).tolist() == []


def test_expression_uses_the_names_of_a_file() -> None:
    table = pa.table({"old_a": [1, 2]})
    assert table.filter(expression(A, {"a": "old_a"})).num_rows == 1


def test_sql_is_only_asked_about_rows_that_the_other_terms_keep() -> None:
    table = pa.table({"s": ["1", "x", "3", None], "n": [1, 1, 0, 1]})
    guard = Comparison("s", "<>", pa.scalar("x"))
    number = Opaque('CAST("s" AS INT) > 0', ("s",))
    assert evaluate(And((number, guard)), table).tolist() == [True, False, True, False]
    assert evaluate(And((number, guard, Opaque('"n" / 2 > 0', ("n",)))), table).tolist() == [True, False, False, False]
    with pytest.raises(InvalidError, match="'x'"):
        evaluate(number, table)


def test_sql_without_columns_is_decided_for_every_row() -> None:
    table = pa.table({"a": [1, 2, 3]})
    dice = Opaque("random() >= 0", ())
    assert evaluate(dice, table).tolist() == [True, True, True]
    assert evaluate(And((dice, A)), table.to_batches()[0]).tolist() == [True, False, False]
