import datetime as dt
import math
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelet.errors import InvalidError
from lakelet.format.rows.binary_row import EMPTY_ROW, decode_row
from lakelet.format.stats.file_statistics import StatsCollector, round_up, truncated_bounds
from lakelet.model.arrow.arrow_types import to_arrow
from lakelet.model.type_parser import parse_type
from lakelet.model.types import Field
from tests.golden.binary_rows import column_of

LONG = "abcdefghijklmnopqrstuvwxyz"
MOMENT = dt.datetime(2024, 1, 1, 10, 11, 12, 500123)
# A row of every type, and what Java Paimon 1.4.2 stores of it with truncate(16).
ROW: dict[str, tuple[str, object, object, object]] = {
    "a": ("BIGINT", 1, 1, 1),
    "s": ("STRING", LONG, LONG[:16], "abcdefghijklmnoq"),
    "d": ("DOUBLE", 1.5, 1.5, 1.5),
    "b": ("BYTES", bytes(20), None, None),
    "arr": ("ARRAY<INT>", [1, None], None, None),
    "dec": ("DECIMAL(20, 3)", Decimal("1.500"), Decimal("1.500"), Decimal("1.500")),
    "small": ("DECIMAL(9, 3)", Decimal("1.500"), Decimal("1.500"), Decimal("1.500")),
    "ts": ("TIMESTAMP(6)", MOMENT, MOMENT, MOMENT),
    "dt": ("DATE", dt.date(2024, 1, 1), dt.date(2024, 1, 1), dt.date(2024, 1, 1)),
    "bo": ("BOOLEAN", True, True, True),
    "ti": ("TIME(3)", dt.time(10, 11, 12, 500000), dt.time(10, 11, 12, 500000), dt.time(10, 11, 12, 500000)),
    "ts9": ("TIMESTAMP(9)", 1704103872500123456, 1704103872500123456, 1704103872500123456),
    "f": ("FLOAT", 1.5, 1.5, 1.5),
}
NAMES = tuple(ROW)
FIELDS = [Field(index, name, parse_type(ROW[name][0])) for index, name in enumerate(NAMES)]
TYPES = [field.type for field in FIELDS]


def batch_of(fields: list[Field], *columns: list[object]) -> pa.RecordBatch:
    arrays = [column_of(column, field.type) for field, column in zip(fields, columns, strict=True)]
    return pa.record_batch(arrays, names=[field.name for field in fields])


WITH_NULLS = batch_of(FIELDS, *[[ROW[name][1], None] for name in NAMES])


def bounds(type_text: str, *batches: list[object], mode: str = "truncate(16)") -> tuple[object, object, int | None]:
    field = Field(0, "c", parse_type(type_text))
    collector = StatsCollector([field], mode)
    for values in batches:
        collector.update(batch_of([field], values))
    stats, _ = collector.finish()
    assert stats.null_counts is not None
    (low,) = decode_row(stats.min_values, [field.type])
    (high,) = decode_row(stats.max_values, [field.type])
    return low, high, stats.null_counts[0]


def test_every_type() -> None:
    collector = StatsCollector(FIELDS, "truncate(16)")
    collector.update(WITH_NULLS)
    stats, names = collector.finish()
    assert decode_row(stats.min_values, TYPES) == tuple(ROW[name][2] for name in NAMES)
    assert decode_row(stats.max_values, TYPES) == tuple(ROW[name][3] for name in NAMES)
    assert stats.null_counts == (1,) * len(NAMES)
    assert names is None


def test_only_nulls_and_no_rows() -> None:
    for rows in (0, 3):
        collector = StatsCollector(FIELDS)
        collector.update(pa.record_batch([pa.nulls(rows, to_arrow(kind)) for kind in TYPES], names=list(NAMES)))
        stats, _ = collector.finish()
        assert decode_row(stats.min_values, TYPES) == (None,) * len(NAMES)
        assert decode_row(stats.max_values, TYPES) == (None,) * len(NAMES)
        assert stats.null_counts == (rows,) * len(NAMES)


def test_mode_none_leaves_everything_out() -> None:
    collector = StatsCollector(FIELDS, "none")
    collector.update(WITH_NULLS)
    stats, names = collector.finish()
    assert (stats.min_values, stats.max_values, stats.null_counts, names) == (EMPTY_ROW, EMPTY_ROW, (), ())


def test_mode_counts_keeps_no_bounds() -> None:
    collector = StatsCollector(FIELDS, "counts")
    collector.update(WITH_NULLS)
    stats, names = collector.finish()
    assert decode_row(stats.min_values, TYPES) == (None,) * len(NAMES)
    assert stats.null_counts == (1,) * len(NAMES)
    assert names is None


def test_mode_full_keeps_text_whole() -> None:
    assert bounds("STRING", [LONG, None], mode="full") == (LONG, LONG, 1)


def test_a_field_has_its_own_mode() -> None:
    collector = StatsCollector(FIELDS, "none", field_modes={"s": "FULL", "a": "counts"})
    collector.update(WITH_NULLS)
    stats, names = collector.finish()
    assert names == ("a", "s")
    assert decode_row(stats.min_values, TYPES[:2]) == (None, LONG)
    assert stats.null_counts == (1, 1)


def test_first_columns_only_unless_a_field_says_otherwise() -> None:
    def names(keep_first: int, **field_modes: str) -> tuple[str, ...] | None:
        collector = StatsCollector(FIELDS, keep_first=keep_first, field_modes=field_modes)
        collector.update(WITH_NULLS)
        return collector.finish()[1]

    assert names(2) == ("a", "s")
    assert names(2, dt="full") == ("a", "s", "dt")
    assert names(0) == ()
    assert names(-1) is None
    assert names(99) is None


def test_sparse_storage_keeps_every_place() -> None:
    collector = StatsCollector(FIELDS, "none", field_modes={"s": "truncate(3)"}, dense=False)
    collector.update(WITH_NULLS)
    stats, names = collector.finish()
    assert names is None
    assert decode_row(stats.max_values, TYPES) == tuple("abd" if name == "s" else None for name in NAMES)
    assert stats.null_counts == tuple(1 if name == "s" else None for name in NAMES)


@pytest.mark.parametrize("mode", ["bogus", "truncate(0)", "truncate(-1)", "truncate", " full ", ""])
def test_unknown_modes_are_refused(mode: str) -> None:
    with pytest.raises(InvalidError, match="statistics mode"):
        StatsCollector(FIELDS, mode)
    with pytest.raises(InvalidError, match="statistics mode"):
        StatsCollector(FIELDS, field_modes={"a": mode})


def test_batches_are_folded() -> None:
    assert bounds("INT", [5, None], [], [None], [-3, 4]) == (-3, 5, 2)
    assert bounds("STRING", ["m"], ["b", "z"], [None]) == ("b", "z", 1)
    assert bounds("DECIMAL(5, 2)", [Decimal("-1.50"), Decimal("3.00")], [Decimal("-2.00")]) == (
        Decimal("-2.00"),
        Decimal("3.00"),
        0,
    )
    assert bounds("DECIMAL(5, 2)", [Decimal("1.50"), None]) == (Decimal("1.50"), Decimal("1.50"), 1)


def test_sliced_decimals_are_looked_at_where_they_are() -> None:
    field = Field(0, "c", parse_type("DECIMAL(9, 2)"))
    values: list[object] = [Decimal("-9.00"), Decimal("1.00"), Decimal("2.00"), Decimal("9.00")]
    collector = StatsCollector([field])
    collector.update(batch_of([field], values).slice(1, 2))
    stats, _ = collector.finish()
    assert decode_row(stats.min_values, [field.type]) == (Decimal("1.00"),)
    assert decode_row(stats.max_values, [field.type]) == (Decimal("2.00"),)


@pytest.mark.parametrize("kind", ["FLOAT", "DOUBLE"])
def test_rule_13_nan_is_the_greatest_value(kind: str) -> None:
    nan = math.nan
    assert repr(bounds(kind, [1.0, nan, 3.0])) == "(1.0, nan, 0)"
    assert repr(bounds(kind, [nan, None])) == "(nan, nan, 1)"
    assert repr(bounds(kind, [nan], [2.0])) == "(2.0, nan, 0)"
    assert repr(bounds(kind, [2.0], [nan, nan], [-1.0, None])) == "(-1.0, nan, 1)"
    assert repr(bounds(kind, [math.inf, -math.inf])) == "(-inf, inf, 0)"


@pytest.mark.parametrize("kind", ["FLOAT", "DOUBLE"])
@pytest.mark.parametrize("values", [[0.0], [-0.0], [0.0, -0.0], [-0.0, 0.0]])
def test_rule_13_zeros_are_equal(kind: str, values: list[object]) -> None:
    assert repr(bounds(kind, values)) == "(-0.0, 0.0, 0)"
    assert repr(bounds(kind, *[[value] for value in values])) == "(-0.0, 0.0, 0)"


def test_rule_13_columns_with_nan_are_named_whatever_the_mode() -> None:
    fields = [Field(0, "x", parse_type("DOUBLE")), Field(1, "y", parse_type("FLOAT")), Field(2, "z", parse_type("INT"))]
    for mode in ("none", "counts", "truncate(16)", "full"):
        collector = StatsCollector(fields, mode)
        collector.update(batch_of(fields, [1.0, math.nan], [1.0, None], [1, 2]))
        assert collector.nan_columns == {"x"}
        collector.update(batch_of(fields, [1.0], [math.nan], [1]))
        assert collector.nan_columns == {"x", "y"}


# Text of one row beside a NULL, and the bounds Java Paimon 1.4.2 stores, but for the one noted.
@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("a" * 16, "a" * 16, "a" * 16),
        ("é" * 16, "é" * 16, "é" * 16),
        ("é" * 17, "é" * 16, "é" * 15 + "ê"),
        ("a" * 15 + "😀b", "a" * 15 + "😀", "a" * 15 + "😁"),
        ("😀" * 17, "😀" * 16, "😀" * 15 + "😁"),
        ("a" * 15 + "\x7fb", "a" * 15 + "\x7f", "a" * 15 + "\x80"),
        ("a" * 15 + "\uffffb", "a" * 15 + "\uffff", "a" * 15 + "\U00010000"),
        ("a" * 15 + "\U0010ffffb", "a" * 15 + "\U0010ffff", "a" * 14 + "b"),
        # Java stores a "?" here, which is less than the value.
        ("a" * 15 + "\ud7ffb", "a" * 15 + "\ud7ff", "a" * 15 + "\ue000"),
        ("\U0010ffff" * 17, None, None),
    ],
)
def test_rule_14_text_is_cut_by_characters(text: str, low: str | None, high: str | None) -> None:
    assert bounds("STRING", [text, None]) == (low, high, 1)


def test_rule_14_a_maximum_that_cannot_be_rounded_up_hides_the_minimum_too() -> None:
    assert bounds("STRING", ["a", "\U0010ffff" * 17]) == (None, None, 0)


@given(values=st.lists(st.text(max_size=6), min_size=1), characters=st.integers(1, 4))
def test_rule_14_cut_bounds_hold(values: list[str], characters: int) -> None:
    low, high = truncated_bounds(min(values), max(values), characters)
    if low is not None and high is not None:
        assert len(low) <= characters
        assert len(high) <= characters
        assert all(low <= value <= high for value in values)


def test_round_up() -> None:
    assert round_up("ab") == "ac"
    assert round_up("a\U0010ffff\U0010ffff") == "b"
    assert round_up("") is None


def test_another_number_of_columns_is_refused() -> None:
    with pytest.raises(InvalidError, match="1"):
        StatsCollector(FIELDS[:1]).update(WITH_NULLS)
