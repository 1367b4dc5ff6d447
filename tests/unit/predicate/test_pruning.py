import math

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lakelet.errors import InvalidError
from lakelet.predicate.pruning import (
    ColumnRange,
    always_match,
    may_match,
    partition_range,
    prune_expression,
)
from lakelet.predicate.tree import (
    FALSE,
    TRUE,
    And,
    Comparison,
    InList,
    IsNull,
    Like,
    Not,
    Opaque,
    Or,
    Predicate,
)

ROWS = 4


def column(low: list[object], high: list[object], nulls: list[int | None], arrow: pa.DataType) -> ColumnRange:
    counts = pa.repeat(pa.scalar(ROWS, pa.int64()), len(low))
    return ColumnRange(pa.array(low, arrow), pa.array(high, arrow), pa.array(nulls, pa.int64()), counts)


# File 0: 0..9 no nulls. 1: 10..19 one null. 2: all null. 3: unknown. 4: 5..5 no nulls. 5: bounds, nulls unknown.
NUMBERS = column([0, 10, None, None, 5, 0], [9, 19, None, None, 5, 9], [0, 1, ROWS, None, 0, None], pa.int64())
T, F = True, False


def compare(operator: str, value: int) -> Predicate:
    return Comparison("x", operator, pa.scalar(value))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("predicate", "may", "always"),
    [
        (compare("=", 5), [T, F, F, T, T, T], [F, F, F, F, T, F]),
        (compare("=", 15), [F, T, F, T, F, F], [F, F, F, F, F, F]),
        (compare("<>", 5), [T, T, F, T, F, T], [F, F, F, F, F, F]),
        (compare("<>", 50), [T, T, F, T, T, T], [T, F, F, F, T, F]),
        (compare("<", 5), [T, F, F, T, F, T], [F, F, F, F, F, F]),
        (compare("<=", 9), [T, F, F, T, T, T], [T, F, F, F, T, F]),
        (compare(">", 9), [F, T, F, T, F, F], [F, F, F, F, F, F]),
        (compare(">=", 0), [T, T, F, T, T, T], [T, F, F, F, T, F]),
        (Not(compare(">=", 0)), [F, F, F, T, F, F], [F, F, F, F, F, F]),
        (IsNull("x"), [F, T, T, T, F, T], [F, F, T, F, F, F]),
        (IsNull("x", negated=True), [T, T, F, T, T, T], [T, F, F, F, T, F]),
        (InList("x", pa.array([5, 100])), [T, F, F, T, T, T], [F, F, F, F, T, F]),
        (InList("x", pa.array([-1, 9, 10])), [T, T, F, T, F, T], [F, F, F, F, F, F]),
        (InList("x", pa.array([5, 100]), negated=True), [T, T, F, T, F, T], [F, F, F, F, F, F]),
        (InList("x", pa.array([50]), negated=True), [T, T, F, T, T, T], [T, F, F, F, T, F]),
        (TRUE, [T] * 6, [T] * 6),
        (FALSE, [F] * 6, [F] * 6),
        (Opaque('"x" = 5', ("x",)), [T] * 6, [F] * 6),
        (And((compare(">", 3), compare("<", 3))), [T, F, F, T, F, T], [F] * 6),
        (Or((compare("=", 5), IsNull("x"))), [T, T, T, T, T, T], [F, F, T, F, T, F]),
    ],
)
def test_numbers(predicate: Predicate, may: list[bool], always: list[bool]) -> None:
    assert may_match(predicate, {"x": NUMBERS}, 6).tolist() == may
    assert always_match(predicate, {"x": NUMBERS}, 6).tolist() == always


def test_columns_without_statistics_are_unknown() -> None:
    assert may_match(compare("=", 1), {}, 2).tolist() == [T, T]
    assert always_match(IsNull("x", negated=True), {}, 2).tolist() == [F, F]
    bare = ColumnRange(None, None, None, pa.array([1, 1]))
    for predicate in (compare("=", 1), IsNull("x"), InList("x", pa.array([1])), Like("x", "a%")):
        assert may_match(predicate, {"x": bare}, 2).tolist() == [T, T]
        assert always_match(predicate, {"x": bare}, 2).tolist() == [F, F]


def test_rule_13_nan_is_the_greatest_value_and_zeros_are_equal() -> None:
    nan = math.nan
    ranges = {"x": column([1.0, 1.0, nan, -0.0], [3.0, nan, nan, -0.0], [0, 0, 0, 0], pa.float64())}

    def ask(operator: str, value: float) -> tuple[list[bool], list[bool]]:
        predicate = Comparison("x", operator, pa.scalar(value))  # type: ignore[arg-type]
        return may_match(predicate, ranges, 4).tolist(), always_match(predicate, ranges, 4).tolist()

    assert ask(">", 5.0) == ([F, T, T, F], [F, F, T, F])
    assert ask("=", nan) == ([F, T, T, F], [F, F, T, F])
    assert ask("<>", nan) == ([T, T, F, T], [T, F, F, T])
    assert ask("<", nan) == ([T, T, F, T], [T, F, F, T])
    assert ask("<=", nan) == ([T, T, T, T], [T, T, T, T])
    assert ask("<=", 3.0) == ([T, T, F, T], [T, F, F, T])
    assert ask("=", 0.0) == ([F, F, F, T], [F, F, F, T])
    assert ask("<", 0.0) == ([F, F, F, F], [F, F, F, F])
    assert may_match(InList("x", pa.array([nan, 0.0])), ranges, 4).tolist() == [F, T, T, T]


def test_rule_14_equal_bounds_of_strings_prove_no_constant() -> None:
    files = {"x": column(["ab", "ab", None], ["ab", "ac", None], [0, 0, 0], pa.string())}
    equal = Comparison("x", "=", pa.scalar("ab"))
    assert may_match(equal, files, 3).tolist() == [T, T, T]
    assert always_match(equal, files, 3).tolist() == [F, F, F]
    assert may_match(Not(equal), files, 3).tolist() == [T, T, T]
    assert may_match(InList("x", pa.array(["ab"]), negated=True), files, 3).tolist() == [T, T, T]


def test_rule_14_a_null_count_of_zero_beside_null_bounds_is_unknown() -> None:
    files = {"x": column([None], [None], [0], pa.string())}
    assert may_match(IsNull("x"), files, 1).tolist() == [T]
    assert always_match(IsNull("x", negated=True), files, 1).tolist() == [F]


def test_rule_15_statistics_of_another_type_prune_nothing() -> None:
    files = {"x": column([10], [20], [0], pa.int32())}
    assert may_match(compare("=", 5), files, 1).tolist() == [T]
    assert always_match(compare(">", 5), files, 1).tolist() == [F]
    assert may_match(IsNull("x"), files, 1).tolist() == [F]
    assert prune_expression(pc.field("x") == 5, files, pa.schema([("x", pa.int64())]), 1).tolist() == [T]


def test_like_prunes_by_prefix() -> None:
    files = {"x": column(["a", "abc", "abd", "b"], ["aa", "abcz", "ac", "c"], [0, 0, 0, 0], pa.string())}
    assert may_match(Like("x", "abc%"), files, 4).tolist() == [F, T, F, F]
    assert may_match(Like("x", "%abc"), files, 4).tolist() == [T, T, T, T]
    assert may_match(Like("x", "b"), files, 4).tolist() == [F, F, F, T]
    assert may_match(Like("x", "abc%", negated=True), files, 4).tolist() == [T, T, T, T]
    assert always_match(Like("x", "abc%", negated=True), files, 4).tolist() == [T, F, T, T]


def test_partition_values_decide_both_ways() -> None:
    ranges = {"x": partition_range(pa.array(["ab", "b", None])), "y": partition_range(pa.array([1, 2, 3]))}
    cases: list[tuple[Predicate, list[bool]]] = [
        (Comparison("x", "=", pa.scalar("ab")), [T, F, F]),
        (Comparison("x", "<>", pa.scalar("ab")), [F, T, F]),
        (Like("x", "%b"), [T, T, F]),
        (IsNull("x"), [F, F, T]),
        (Opaque('length("x") = "y"', ("x", "y")), [F, F, F]),
        (Opaque('length("x") + 1 > "y"', ("x", "y")), [T, F, F]),
    ]
    for predicate, expected in cases:
        assert may_match(predicate, ranges, 3).tolist() == expected
        assert always_match(predicate, ranges, 3).tolist() == expected


def test_sql_is_only_asked_about_partitions_that_the_other_terms_keep() -> None:
    ranges = {"x": partition_range(pa.array(["1", "bad", "3"]))}
    predicate = And((Opaque('CAST("x" AS INT) > 1', ("x",)), Comparison("x", "<>", pa.scalar("bad"))))
    assert may_match(predicate, ranges, 3).tolist() == [F, F, T]
    assert always_match(predicate, ranges, 3).tolist() == [F, F, T]


def test_exact_bounds_that_differ_are_only_bounds() -> None:
    manifests = ColumnRange(pa.array(["a"]), pa.array(["c"]), pa.array([0]), pa.array([3]), exact=True)
    assert may_match(Comparison("x", "=", pa.scalar("b")), {"x": manifests}, 1).tolist() == [T]
    assert may_match(Comparison("x", "=", pa.scalar("d")), {"x": manifests}, 1).tolist() == [F]


def test_expressions_prune_by_what_statistics_prove() -> None:
    schema = pa.schema([("x", pa.int64()), ("s", pa.string())])
    x = pc.field("x")

    def kept(expression: pc.Expression) -> list[bool]:
        found: list[bool] = prune_expression(expression, {"x": NUMBERS}, schema, 6).tolist()
        return found

    assert kept(x == 5) == [T, F, F, T, T, T]
    assert kept((x > 9) & (pc.field("s") == "a")) == [F, T, F, T, F, F]
    assert kept(x.is_null()) == [F, T, T, T, F, T]
    assert kept(pc.is_null(x > 100)) == [F, T, T, T, F, T]
    assert kept(pc.field("s") == "a") == [T] * 6
    assert kept(pc.field(0) == 5) == [T] * 6
    with pytest.raises(InvalidError):
        kept(pc.field("missing") == 5)
    with pytest.raises(InvalidError, match="expected a condition"):
        kept(x + 1)


def test_expressions_on_partition_values() -> None:
    ranges = {"x": partition_range(pa.array([math.nan, 1.0, None]))}
    schema = pa.schema([("x", pa.float64())])
    assert prune_expression(pc.field("x") != 1, ranges, schema, 3).tolist() == [T, F, F]
    assert prune_expression(~(pc.field("x") < 1), ranges, schema, 3).tolist() == [T, T, F]


def test_expressions_with_floating_point_bounds_do_not_prune() -> None:
    files = {"x": column([1.0], [2.0], [0], pa.float64())}
    assert prune_expression(pc.field("x") > 5, files, pa.schema([("x", pa.float64())]), 1).tolist() == [T]
