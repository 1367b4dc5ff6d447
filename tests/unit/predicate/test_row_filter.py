import io
import math
import pickle
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from lakelet.errors import InvalidError
from lakelet.model.arrow.arrow_types import arrow_schema
from lakelet.model.type_parser import parse_type
from lakelet.model.types import Field
from lakelet.predicate.row_filter import RowFilter, row_filter, split_by_columns
from lakelet.predicate.tree import (
    TRUE,
    And,
    Comparison,
    InList,
    IsNull,
    Like,
    Opaque,
    Or,
    Predicate,
)

FIELDS = [
    Field(number, name, parse_type(text))
    for number, (name, text) in enumerate([("i", "INT"), ("x", "DOUBLE"), ("s", "STRING"), ("r", "ROW<v DOUBLE>")])
]
BATCH = pa.RecordBatch.from_pylist(
    [
        {"i": 1, "x": 3.0, "s": "abc", "r": {"v": 1.0}},
        {"i": 2, "x": math.nan, "s": "b", "r": None},
        {"i": 3, "x": 3.0, "s": None, "r": {"v": None}},
        {"i": None, "x": None, "s": "ab", "r": {"v": 2.0}},
    ],
    schema=arrow_schema(FIELDS),
)
LARGE = Comparison("i", ">", pa.scalar(1, pa.int32()))
LENGTH = Opaque('length("s") > 1', ("s",))


def positions(chosen: RowFilter, batch: pa.RecordBatch = BATCH) -> list[int | None]:
    found: list[int | None] = chosen.apply(batch)["i"].to_pylist()
    return found


def test_no_condition_keeps_everything() -> None:
    for where in (None, TRUE):
        chosen = row_filter(where, FIELDS)
        assert (chosen.columns, chosen.pushdown, chosen.residual) == ((), None, False)
        assert chosen.apply(BATCH) is BATCH


def test_plain_comparisons_are_pushed_down_whole() -> None:
    chosen = row_filter(And((LARGE, Like("s", "b%"))), FIELDS)
    assert chosen.columns == ("i", "s")
    assert not chosen.residual
    assert pa.table(BATCH).filter(chosen.pushdown)["i"].to_pylist() == [2]
    assert positions(chosen) == [2]


def test_what_needs_duckdb_stays_behind() -> None:
    chosen = row_filter(And((LARGE, LENGTH)), FIELDS)
    assert chosen.residual
    assert (chosen.columns, chosen.residual_columns) == (("i", "s"), ("s",))
    assert pa.table(BATCH).filter(chosen.pushdown)["i"].to_pylist() == [2, 3]
    assert positions(row_filter(LENGTH, FIELDS)) == [1, None]
    assert row_filter(Or((LARGE, LENGTH)), FIELDS).pushdown is None
    assert positions(row_filter(Or((LARGE, LENGTH)), FIELDS)) == [1, 2, 3, None]


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        (Comparison("x", ">", pa.scalar(5.0)), [2]),
        (Comparison("x", ">=", pa.scalar(5.0)), [2]),
        (Comparison("x", "<>", pa.scalar(3.0)), [2]),
        (Comparison("x", "=", pa.scalar(math.nan)), [2]),
        (Comparison("x", "<", pa.scalar(5.0)), [1, 3]),
        (Comparison("x", "=", pa.scalar(3.0)), [1, 3]),
        (InList("x", pa.array([7.0, math.nan])), [2]),
        (InList("x", pa.array([3.0]), negated=True), [2]),
        (InList("x", pa.array([3.0, 4.0])), [1, 3]),
        (Or((Comparison("x", ">", pa.scalar(5.0)), Comparison("i", "=", pa.scalar(1, pa.int32())))), [1, 2]),
    ],
)
def test_rule_13_footers_without_nan_lose_no_row(predicate: Predicate, expected: list[int]) -> None:
    file = io.BytesIO()
    pq.write_table(pa.table(BATCH), file)
    footer = pq.ParquetFile(pa.BufferReader(file.getvalue())).metadata.row_group(0).column(1).statistics
    assert (footer.min, footer.max) == (3.0, 3.0), "the footer must ignore NaN for this test to mean anything"
    chosen = row_filter(predicate, FIELDS)
    fragment = ds.ParquetFileFormat().make_fragment(pa.BufferReader(file.getvalue()))
    read = fragment.to_table(schema=BATCH.schema, filter=chosen.pushdown)
    kept = [chosen.apply_residual(batch) for batch in read.to_batches()]
    assert [row["i"] for batch in kept for row in batch.to_pylist()] == expected
    assert positions(chosen) == expected


def test_bounded_comparisons_of_floats_are_pushed_down() -> None:
    assert row_filter(Comparison("x", "<", pa.scalar(5.0)), FIELDS).pushdown is not None
    assert row_filter(Comparison("x", ">", pa.scalar(5.0)), FIELDS).pushdown is None


def test_null_of_a_nested_column_stays_behind() -> None:
    chosen = row_filter(IsNull("r"), FIELDS)
    assert chosen.pushdown is None
    assert positions(chosen) == [2]


def test_pyarrow_expressions_keep_arrows_meaning() -> None:
    chosen = row_filter(pc.field("i") > 1, FIELDS)
    assert (chosen.columns, chosen.residual) == (("i",), False)
    assert positions(chosen) == [2, 3]
    floating = row_filter((pc.field("x") != 3.0) | (pc.field("i") == 1), FIELDS)
    assert (floating.pushdown, floating.residual) == (None, True)
    assert positions(floating) == [1, 2]
    nested = row_filter(pc.field("r", "v") > 1, FIELDS)
    assert (nested.columns[-1], nested.pushdown) == ("r", None)
    assert positions(nested) == [None]
    first = row_filter(pc.field(0) == 1, FIELDS)
    assert (first.columns, first.pushdown) == (("i", "x", "s", "r"), None)
    assert positions(first, BATCH.select(["s", "r", "x", "i"])) == [1]


@pytest.mark.parametrize("expression", [pc.field("missing") > 1, pc.field("i") + 1, pc.field("s") > 1])
def test_expressions_that_are_no_condition_are_refused(expression: pc.Expression) -> None:
    with pytest.raises(InvalidError, match="where"):
        row_filter(expression, FIELDS)


def test_a_value_duckdb_cannot_convert_is_an_invalid_request() -> None:
    with pytest.raises(InvalidError, match="abc"):
        row_filter(Opaque('CAST("s" AS INT) = 1', ("s",)), FIELDS).apply(BATCH)


def test_duckdb_cannot_reach_files() -> None:
    with pytest.raises(InvalidError):
        row_filter(Opaque("(SELECT count(*) FROM read_text('/etc/hostname')) > 0", ()), FIELDS).apply(BATCH)


def test_filters_survive_pickling_and_threads() -> None:
    chosen: RowFilter = pickle.loads(pickle.dumps(row_filter(And((LARGE, Opaque('"i" % 2 = 0', ("i",)))), FIELDS)))
    numbers = pa.array(range(1000), pa.int32())
    batches = [pa.record_batch({"i": pc.add(numbers, pa.scalar(1000 * part, pa.int32()))}) for part in range(16)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(chosen.apply, batches))
    for part, batch in enumerate(found):
        first = 1000 * part
        assert batch["i"].to_pylist() == [
            number for number in range(first, first + 1000) if number > 1 and number % 2 == 0
        ]


class TestSplitByColumns:
    """What may go before a merge: conditions on some columns only, if they can be pushed down entirely."""

    def split(self, where: Predicate | pc.Expression | None) -> tuple[RowFilter, RowFilter]:
        first, rest = split_by_columns(row_filter(where, FIELDS), {"i", "x"}, FIELDS)
        assert not first.residual
        kept = rest.apply(first.apply(BATCH))
        assert kept["i"].to_pylist() == positions(row_filter(where, FIELDS))
        return first, rest

    def test_terms_go_their_own_way(self) -> None:
        first, rest = self.split(And((LARGE, Like("s", "b%"), LENGTH)))
        assert (first.columns, rest.columns) == (("i",), ("s",))
        assert positions(first) == [2, 3]

    def test_a_term_over_other_columns_too_stays_together(self) -> None:
        first, rest = self.split(Or((LARGE, Like("s", "ab%"))))
        assert (first.columns, rest.columns) == ((), ("i", "s"))

    def test_rule_13_what_nan_satisfies_is_not_pushed_down(self) -> None:
        first, rest = self.split(Comparison("x", ">", pa.scalar(5.0)))
        assert (first.columns, rest.columns) == ((), ("x",))

    def test_an_expression_goes_as_a_whole(self) -> None:
        first, rest = self.split(pc.field("i") > 1)
        assert (first.columns, rest.columns) == (("i",), ())
        for where in (pc.field("s") == "b", (pc.field("i") > 1) & (pc.field("s") == "b"), pc.field("x") > 5):
            first, rest = self.split(where)
            assert first.pushdown is None
            assert rest.columns

    def test_nothing_is_nothing(self) -> None:
        first, rest = self.split(None)
        assert (first.pushdown, rest.pushdown) == (None, None)
