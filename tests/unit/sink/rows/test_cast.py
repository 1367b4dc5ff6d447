"""Conversion of input rows: what converts, what is refused, and which row is named."""

import datetime as dt
import random
import uuid
from decimal import Context, Decimal
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from lakelet.errors import InvalidError
from lakelet.model.arrow.arrow_types import to_arrow
from lakelet.model.type_parser import parse_type
from lakelet.model.types import Field
from lakelet.sink.rows.cast import RowCaster


def cast(values: pa.Array, kind: str, *, first_row: int = 0) -> pa.Array:
    caster = RowCaster([Field(0, "c", parse_type(kind))])
    return caster.cast(pa.record_batch({"c": values}), first_row=first_row).column("c")


DAY = dt.date(2024, 1, 2)
NOON = dt.datetime(2024, 1, 2, 12)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (pa.array([1, None], pa.int64()), "TINYINT"),
        (pa.array([1, None], pa.uint64()), "BIGINT"),
        (pa.array([1], pa.int8()), "BIGINT"),
        (pa.array([1], pa.int64()), "DECIMAL(3, 2)"),
        (pa.array([Decimal("7")], pa.decimal128(5, 0)), "INT"),
        (pa.array([Decimal("7.00")], pa.decimal128(5, 2)), "INT"),
        (pa.array([1], pa.int32()), "DOUBLE"),
        (pa.array([1.5, None, float("inf")], pa.float64()), "FLOAT"),
        (pa.array([1.5], pa.float16()), "FLOAT"),
        (pa.array([Decimal("1.50")], pa.decimal128(10, 2)), "DECIMAL(3, 1)"),
        (pa.array([Decimal("1.5")], pa.decimal256(40, 1)), "DECIMAL(3, 1)"),
        (pa.array(["a"], pa.large_string()), "STRING"),
        (pa.array(["a"], pa.string_view()), "CHAR(1)"),
        (pa.array(["a", None, "a"]).dictionary_encode(), "STRING"),
        (pa.array([b"ab"], pa.binary(2)), "BYTES"),
        (pa.array([b"ab"], pa.large_binary()), "VARBINARY(2)"),
        (pa.array([DAY], pa.date64()), "DATE"),
        (pa.array([dt.time(1, 2, 3)], pa.time64("us")), "TIME(3)"),
        (pa.array([dt.time(1, 2, 3)], pa.time32("s")), "TIME(0)"),
        (pa.array([NOON], pa.timestamp("s")), "TIMESTAMP(6)"),
        (pa.array([NOON], pa.timestamp("ns")), "TIMESTAMP(3)"),
        (pa.array([NOON], pa.timestamp("us", "UTC")), "TIMESTAMP(3) WITH LOCAL TIME ZONE"),
        (pa.array([[1], None, []], pa.large_list(pa.int64())), "ARRAY<INT>"),
        (pa.array([[1, 2]], pa.list_(pa.int16(), 2)), "ARRAY<INT>"),
        (pa.array([{"b": 1, "a": "x"}, None]), "ROW<a STRING, b INT>"),
        (pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int64())), "MAP<STRING, INT>"),
        (pa.array([[("k", 2)]], pa.map_(pa.string(), pa.int32())), "MULTISET<STRING>"),
        (pa.nulls(2), "INT"),
        (pa.nulls(2), "ARRAY<ROW<a INT>>"),
        (pa.array([True, None]), "BOOLEAN"),
        (pa.array([1.0, None, -(2.0**53)]), "BIGINT"),
        (pa.array([1.0, 2.0**24], pa.float32()), "BIGINT"),
        (pa.array([1.5, None, -0.5]), "DECIMAL(3, 1)"),
        (pa.array([Decimal("1.5"), None]), "DOUBLE"),
        (pa.array([Decimal(2**60)], pa.decimal128(22, 2)), "DOUBLE"),
        (pa.array([Decimal("1.5")], pa.decimal256(50, 3)), "FLOAT"),
        (pa.array([[Decimal("1.5")], None, []]).slice(1), "ARRAY<DOUBLE>"),
        (pa.array([[1.0]], pa.list_(pa.float64(), 1)), "ARRAY<INT>"),
        (pa.array([{"a": Decimal("0.5")}, None]), "ROW<a DOUBLE>"),
        (pa.array([[("k", Decimal("0.5"))], None], pa.map_(pa.string(), pa.decimal128(3, 1))), "MAP<STRING, DOUBLE>"),
    ],
)
def test_conversions_that_keep_every_value(values: pa.Array, kind: str) -> None:
    caster = RowCaster([Field(0, "c", parse_type(kind))])
    found = cast(values, kind)
    assert found.type == caster.schema.field("c").type
    assert [_plain(value) for value in found.to_pylist()] == [_plain(value) for value in values.to_pylist()]
    found.validate(full=True)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return dict(sorted(value.items()))
    return value.to_pydatetime() if hasattr(value, "to_pydatetime") else value


def test_an_instant_stays_the_same_whatever_its_zone() -> None:
    berlin = pa.array([dt.datetime(2024, 1, 2, 12)], pa.timestamp("ms", "UTC")).cast(
        pa.timestamp("ms", "Europe/Berlin")
    )
    assert cast(berlin, "TIMESTAMP(3) WITH LOCAL TIME ZONE").to_pylist() == [dt.datetime(2024, 1, 2, 12, tzinfo=dt.UTC)]


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (pa.array(["1"]), "INT"),
        (pa.array([1]), "STRING"),
        (pa.array([1]), "BOOLEAN"),
        (pa.array([True]), "INT"),
        (pa.array(["a"]), "BYTES"),
        (pa.array([b"a"]), "STRING"),
        (pa.array(["2024-01-01"]), "DATE"),
        (pa.array([NOON], pa.timestamp("ms")), "TIMESTAMP(3) WITH LOCAL TIME ZONE"),
        (pa.array([DAY]), "TIMESTAMP(3) WITH LOCAL TIME ZONE"),
        (pa.array([NOON], pa.timestamp("ms", "UTC")), "DATE"),
        (pa.array([dt.timedelta(1)]), "BIGINT"),
        (pa.array([uuid.UUID(int=1)]), "INT"),
        (pa.array([NOON], pa.timestamp("ms", "UTC")), "TIMESTAMP(3)"),
        (pa.array([1]), "ARRAY<INT>"),
        (pa.array([["x"]]), "ARRAY<INT>"),
        (pa.array([{"a": 1}]), "MAP<STRING, INT>"),
        (pa.array([[("k", "v")]], pa.map_(pa.string(), pa.string())), "MAP<STRING, INT>"),
        (pa.array([{"a": "x"}]), "ROW<a INT>"),
        (pa.array([1]), "ROW<a INT>"),
        (pa.array(["1"]).dictionary_encode(), "INT"),
    ],
)
def test_types_that_do_not_convert(values: pa.Array, kind: str) -> None:
    with pytest.raises(
        InvalidError, match=r"column 'c(\.\w+)?' is .*; the data has .*, which does not convert without loss"
    ):
        cast(values, kind)


@pytest.mark.parametrize(
    ("values", "kind", "offender"),
    [
        (pa.array([1, 2, 128, 300]), "TINYINT", "row 102 with 128"),
        (pa.array([1, -1], pa.int64()), "DECIMAL(3, 2)", None),
        (pa.array([1, 100], pa.int64()), "DECIMAL(3, 2)", "row 101 with 100"),
        (pa.array([2**63], pa.uint64()), "BIGINT", "row 100 with 9223372036854775808"),
        (pa.array([Decimal("1.5")], pa.decimal128(5, 1)), "INT", "row 100 with Decimal('1.5')"),
        (
            pa.array([Decimal("1.50"), Decimal("1.55")], pa.decimal128(5, 2)),
            "DECIMAL(3, 1)",
            "row 101 with Decimal('1.55')",
        ),
        (pa.array([2**53 + 1]), "DOUBLE", "row 100 with 9007199254740993"),
        (pa.array([1.0, 1.5]), "BIGINT", "row 101 with 1.5"),
        (pa.array([2.0**53, 2.0**53 + 2]), "BIGINT", "row 101 with 9007199254740994.0"),
        (pa.array([2.0**24, 2.0**24 + 2], pa.float32()), "BIGINT", "row 101 with 16777218.0"),
        (pa.array([1.0, float("nan")]), "INT", "row 101 with nan"),
        (pa.array([1.0, 300.0]), "TINYINT", "row 101 with 300.0"),
        (pa.array([1.5, 1.25]), "DECIMAL(3, 1)", "row 101 with 1.25"),
        (pa.array([1.5, float("inf")]), "DECIMAL(3, 1)", "row 101 with inf"),
        (pa.array([Decimal(1), Decimal(2**53 + 1)], pa.decimal128(20, 0)), "DOUBLE", "row 101 with Decimal"),
        (pa.array([Decimal(1), Decimal(2**24 + 1)], pa.decimal128(20, 0)), "FLOAT", "row 101 with Decimal"),
        (pa.array([[Decimal(2**53 + 1)]], pa.list_(pa.decimal128(20, 0))), "ARRAY<DOUBLE>", "row 100 with"),
        (pa.array([NOON.replace(hour=0), NOON], pa.timestamp("ms")), "DATE", "row 101 with datetime.datetime(2024"),
        (pa.array([2**63 - 1], pa.timestamp("us")), "TIMESTAMP(3)", "row 100 with infinity"),
        (pa.array([-(2**63) + 1], pa.timestamp("us")), "TIMESTAMP(0)", "row 100 with -infinity"),
        (pa.array([1.5, 0.1]), "FLOAT", "row 101 with 0.1"),
        (pa.array([1.5, 1e300]), "FLOAT", "row 101 with 1e+300"),
        (pa.array([float("nan"), float("-inf")]), "FLOAT", None),
        (pa.array([NOON, NOON.replace(microsecond=1)], pa.timestamp("us")), "TIMESTAMP(3)", "row 101 with"),
        (pa.array([dt.time(1, 2, 3, 4)], pa.time64("us")), "TIME(3)", "row 100 with"),
        (pa.array([[1], [2, 2**40]]), "ARRAY<INT>", "row 101 with"),
        (pa.array([[1.5], None, [0.5, 0.1]]), "ARRAY<FLOAT>", "row 102 with [0.5, 0.1]"),
        (pa.array([{"a": {"b": 1.5}}, None, {"a": {"b": 0.1}}]), "ROW<z INT, a ROW<b FLOAT>>", "row 102 with"),
        (pa.array([[("k", 0.1)]], pa.map_(pa.string(), pa.float64())), "MAP<STRING, FLOAT>", "row 100 with"),
        (pa.array([[1.5], None, [float("nan"), None]]), "ARRAY<FLOAT>", None),
    ],
)
def test_values_that_do_not_fit_name_the_first_row(values: pa.Array, kind: str, offender: str | None) -> None:
    if offender is None:
        cast(values, kind, first_row=100)
        return
    with pytest.raises(InvalidError) as caught:
        cast(values, kind, first_row=100)
    assert offender in str(caught.value)
    assert "column 'c'" in str(caught.value)


@pytest.mark.parametrize(
    ("values", "kind", "reason"),
    [
        (pa.array([1, None]), "INT NOT NULL", "column 'c' is NOT NULL, but row 101 has NULL"),
        (pa.array([{"a": 1}, {"a": None}]), "ROW<a INT NOT NULL>", r"column 'c\.a' is NOT NULL"),
        (pa.array([[1], [None]]), "ARRAY<INT NOT NULL>", r"column 'c\.element' is NOT NULL"),
        (
            pa.array([[("k", None)]], pa.map_(pa.string(), pa.int32())),
            "MAP<STRING, INT NOT NULL>",
            r"column 'c\.value' is NOT NULL",
        ),
        (
            pa.array([[{"a": {"b": None}}]]),
            "ARRAY<ROW<a ROW<b INT NOT NULL>>>",
            r"column 'c\.element\.a\.b' is NOT NULL",
        ),
        (pa.array(["abc", "abcd"]), "CHAR(3)", r"column 'c' is CHAR\(3\), but row 101 has a value of length 4"),
        (pa.array(["éééé"]), "VARCHAR(3)", "length 4"),
        (pa.array([b"abcd"]), "BINARY(3)", "length 4"),
        (pa.array([["abcd"]]), "ARRAY<CHAR(3)>", r"column 'c\.element'"),
        (pa.array([[("abcd", 1)]], pa.map_(pa.string(), pa.int32())), "MAP<CHAR(3), INT>", r"column 'c\.key'"),
    ],
)
def test_values_that_the_type_forbids(values: pa.Array, kind: str, reason: str) -> None:
    with pytest.raises(InvalidError, match=reason):
        cast(values, kind, first_row=100)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (pa.array([{"a": 1}, None]), "ROW<a INT NOT NULL>"),
        (pa.array([None, [1]]), "ARRAY<INT NOT NULL>"),
        (pa.array([None, [("k", 1)]], pa.map_(pa.string(), pa.int32())), "MAP<STRING, INT NOT NULL>"),
        (pa.array([{"a": {"b": 1}}, {"a": None}, None]), "ROW<a ROW<b INT NOT NULL>>"),
        (pa.array(["ééé", None]), "CHAR(3)"),
    ],
)
def test_nothing_below_a_null_counts(values: pa.Array, kind: str) -> None:
    assert cast(values, kind).to_pylist() == values.to_pylist()


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (pa.array([["a", "b"], None, ["abcd"]]), "ARRAY<CHAR(3)>"),
        (pa.array([["abcd"], ["a", "b"], None, ["c", "abcd"]]).slice(1), "ARRAY<CHAR(3)>"),
        (pa.array([None, {"a": "x"}, {"a": "abcd"}]), "ROW<a CHAR(3)>"),
        (pa.array([{"a": [None]}, None, {"a": ["abcd"]}]), "ROW<a ARRAY<CHAR(3)>>"),
        (
            pa.array([[("k", "v"), ("l", "v")], None, [("k", "abcd")]], pa.map_(pa.string(), pa.string())),
            "MAP<STRING, CHAR(3)>",
        ),
        (pa.array([[{"a": 1}, None], [], [None, {"a": None}]]), "ARRAY<ROW<a INT NOT NULL>>"),
    ],
)
def test_the_row_of_a_value_inside_others_is_named(values: pa.Array, kind: str) -> None:
    with pytest.raises(InvalidError, match="row 102 has"):
        cast(values, kind, first_row=100)


def test_a_slice_is_checked_only_where_it_looks() -> None:
    longer = pa.array([[("abcd", 1)], [("k", 1)]], pa.map_(pa.string(), pa.int32())).slice(1)
    assert cast(longer, "MAP<CHAR(3), INT>").to_pylist() == [[("k", 1)]]
    values = pa.array([{"a": None}, {"a": 1}, {"a": None}]).slice(1, 1)
    assert cast(values, "ROW<a INT NOT NULL>").to_pylist() == [{"a": 1}]
    lists = pa.array([[None], [1], [None]]).slice(1, 1)
    assert cast(lists, "ARRAY<INT NOT NULL>").to_pylist() == [[1]]
    maps = pa.array([[("k", None)], [("k", 1)]], pa.map_(pa.string(), pa.int32())).slice(1, 1)
    assert cast(maps, "MAP<STRING, INT NOT NULL>").to_pylist() == [[("k", 1)]]


class TestColumns:
    FIELDS = (
        Field(0, "a", parse_type("INT NOT NULL")),
        Field(1, "b", parse_type("STRING"), default="dflt"),
        Field(2, "c", parse_type("DOUBLE")),
    )

    def test_are_matched_by_name_and_filled_in(self) -> None:
        found = RowCaster(self.FIELDS).cast(pa.record_batch({"c": [1.0], "a": [1]}))
        assert found.to_pylist() == [{"a": 1, "b": "dflt", "c": 1.0}]
        assert RowCaster(self.FIELDS).cast(pa.record_batch({"a": [1], "b": pa.nulls(1)})).to_pylist() == [
            {"a": 1, "b": None, "c": None}
        ]

    def test_unknown_missing_and_double_ones_are_refused(self) -> None:
        caster = RowCaster(self.FIELDS)
        with pytest.raises(InvalidError, match="the column 'd', which is not in the table; its columns are a, b, c"):
            caster.cast(pa.record_batch({"a": [1], "d": [1]}))
        with pytest.raises(InvalidError, match="column 'a' is INT NOT NULL without a default"):
            caster.cast(pa.record_batch({"b": ["x"]}))
        with pytest.raises(InvalidError, match="the column 'a' 2 times"):
            caster.cast(pa.RecordBatch.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"]))

    def test_a_row_lacks_only_what_may_be_null(self) -> None:
        caster = RowCaster([Field(0, "r", parse_type("ROW<a INT NOT NULL, b INT>"))])
        assert caster.cast(pa.record_batch({"r": pa.array([{"a": 1}])})).to_pylist() == [{"r": {"a": 1, "b": None}}]
        with pytest.raises(InvalidError, match="the data lacks the field 'a'"):
            caster.cast(pa.record_batch({"r": pa.array([{"b": 1}])}))
        with pytest.raises(InvalidError, match="the field 'z', which is not among a, b"):
            caster.cast(pa.record_batch({"r": pa.array([{"a": 1, "z": 1}])}))

    def test_each_schema_of_the_input_is_checked(self) -> None:
        caster = RowCaster(self.FIELDS)
        caster.cast(pa.record_batch({"a": [1]}))
        with pytest.raises(InvalidError, match="does not convert"):
            caster.cast(pa.record_batch({"a": ["1"]}))


MS, US, NS = (pa.timestamp(unit) for unit in ("ms", "us", "ns"))


@pytest.mark.parametrize(
    ("kind", "arrow", "good", "bad"),
    [
        ("TIMESTAMP(0)", MS, -2000, 1),
        ("TIMESTAMP(1)", MS, 1100, 1110),
        ("TIMESTAMP(2)", MS, 1110, 1111),
        ("TIMESTAMP(4)", US, 1_000_100, 1_000_010),
        ("TIMESTAMP(5)", US, 1_000_010, 1_000_001),
        ("TIMESTAMP(7)", NS, 100, 10),
        ("TIMESTAMP(8)", NS, 10, 1),
        ("TIMESTAMP(0) WITH LOCAL TIME ZONE", pa.timestamp("ms", "UTC"), 1000, 999),
        ("TIME(0)", pa.time32("ms"), 1000, 1001),
        ("TIME(2)", pa.time32("ms"), 1010, 1011),
    ],
)
def test_times_have_the_digits_of_their_type(kind: str, arrow: pa.DataType, good: int, bad: int) -> None:
    kept = pa.array([None, good, good], arrow)
    assert cast(kept, kind) == kept
    values = pa.array([good, None, bad], arrow)
    reason = "column 'c.*' is TIME.*, but row {} has .*, with more digits"
    with pytest.raises(InvalidError, match=reason.format(12)):
        cast(values, kind, first_row=10)
    lists = pa.ListArray.from_arrays([0, 2, 3], values)
    with pytest.raises(InvalidError, match=reason.format(1)):
        cast(lists, f"ARRAY<{kind}>")
    with pytest.raises(InvalidError, match=reason.format(2)):
        cast(pa.StructArray.from_arrays([values], names=["a"]), f"ROW<a {kind}>")
    maps = pa.MapArray.from_arrays([0, 1, 2], pa.array([good, bad], arrow), pa.array([1, 1], pa.int32()))
    for outer in (f"MAP<{kind}, INT>", f"MULTISET<{kind}>"):
        with pytest.raises(InvalidError, match=reason.format(1)):
            cast(maps, outer)


@pytest.mark.parametrize("kind", ["TIMESTAMP(3)", "TIMESTAMP(6)", "TIMESTAMP(9)"])
def test_every_value_of_a_whole_unit_fits(kind: str) -> None:
    assert cast(pa.array([1, -1], to_arrow(parse_type(kind))), kind).null_count == 0


POLARS_WORDS = ["x", None, "y", "x"]


@pytest.mark.parametrize("words", [pl.Categorical(), pl.Enum(["y", "x"])], ids=["categorical", "enum"])
def test_categories_of_polars(words: pl.DataType) -> None:
    def array(values: object, dtype: object) -> pa.Array:
        return pa.table(pl.DataFrame({"c": values}, schema={"c": dtype})).column("c").combine_chunks()

    assert cast(array(POLARS_WORDS, words), "STRING").to_pylist() == POLARS_WORDS
    lists = [["x", None], None, [], ["y"]]
    assert cast(array(lists, pl.List(words)), "ARRAY<STRING>").to_pylist() == lists
    assert cast(array(lists, pl.List(words)).slice(2), "ARRAY<STRING>").to_pylist() == lists[2:]
    rows = [{"a": "x"}, None, {"a": None}]
    assert cast(array(rows, pl.Struct({"a": words})), "ROW<a STRING>").to_pylist() == rows


@pytest.mark.parametrize("digits", [(5, 2), (15, 15), (18, 4), (38, 10), (38, 38)])
@pytest.mark.parametrize("kind", ["FLOAT", "DOUBLE"])
def test_a_decimal_becomes_the_nearest_number(digits: tuple[int, int], kind: str) -> None:
    precision, scale = digits
    randomness = random.Random(precision + scale)
    reach = min(10**precision, 2 ** (24 if kind == "FLOAT" else 53) * 10**scale) - 1
    values = [Decimal(randomness.randint(-reach, reach)).scaleb(-scale, Context(prec=50)) for _ in range(500)]
    wanted = [np.float32(str(value)) if kind == "FLOAT" else float(value) for value in values]
    assert cast(pa.array(values, pa.decimal128(*digits)), kind).to_pylist() == wanted


def test_midnights_and_days_are_each_other() -> None:
    midnight = dt.datetime(2024, 1, 2)
    assert cast(pa.array([midnight, None], pa.timestamp("us")), "DATE").to_pylist() == [DAY, None]
    assert cast(pa.array([DAY, None]), "TIMESTAMP(3)").to_pylist() == [midnight, None]


@pytest.mark.parametrize("start", [0, 1])
def test_uuids_are_their_text_or_their_bytes(start: int) -> None:
    values = [uuid.UUID(int=5), uuid.uuid5(uuid.NAMESPACE_DNS, "a"), None, uuid.UUID(int=2**128 - 1)]
    array = pa.array(values).slice(start)
    assert cast(array, "STRING").to_pylist() == [value and str(value) for value in values[start:]]
    assert cast(array, "BINARY(16)").to_pylist() == [value and value.bytes for value in values[start:]]
    lists = pa.ListArray.from_arrays(pa.array([0, 2, 4], pa.int32()), pa.array(values))
    assert cast(lists, "ARRAY<STRING>").to_pylist() == [
        [value and str(value) for value in pair] for pair in (values[:2], values[2:])
    ]


_TIME_ARRAYS = [
    ("TIME(3)", pa.time32("ms"), [0, 86_399_999], [-1, 86_400_000]),
    ("TIME(0)", pa.time32("s"), [0, 86_399], [-1, 86_400]),
    ("TIME(3)", pa.time64("us"), [0, 86_399_999_000], [-1000, 86_400_000_000]),
    ("DATE", pa.date32(), [-719_162, 2_932_896], [-719_163, 2_932_897, 2**31 - 1, -(2**31) + 1]),
    ("TIMESTAMP(0)", pa.timestamp("s"), [-62135596800, 253402300799], [-62135596801, 253402300800]),
    ("TIMESTAMP(3)", pa.timestamp("ms"), [-62135596800_000, 253402300799_999], [-62135596800_001, 253402300800_000]),
    ("TIMESTAMP(6)", pa.timestamp("us"), [-62135596800_000_000], [2**63 - 1, -(2**63) + 1, 253402300800_000_000]),
    ("TIMESTAMP(6) WITH LOCAL TIME ZONE", pa.timestamp("us", "UTC"), [253402300799_999_999], [2**63 - 1]),
    ("TIMESTAMP(9)", pa.timestamp("ns"), [-(2**63) + 1, 2**63 - 1], [-(2**63)]),
]


@pytest.mark.parametrize(("kind", "arrow", "good", "bad"), _TIME_ARRAYS)
@pytest.mark.parametrize("nesting", ["{}", "ARRAY<{}>", "ROW<a {}>", "MAP<STRING, {}>"])
def test_rule_28_times_that_nobody_can_show_are_refused(
    kind: str, arrow: pa.DataType, good: list[int], bad: list[int], nesting: str
) -> None:
    def nested(number: int) -> pa.Array:
        value = pa.array([number], pa.int32() if arrow.bit_width == 32 else pa.int64()).view(arrow)
        match nesting:
            case "{}":
                return value
            case "ARRAY<{}>":
                return pa.ListArray.from_arrays(pa.array([0, 1], pa.int32()), value)
            case "ROW<a {}>":
                return pa.StructArray.from_arrays([value], ["a"])
            case _:
                return pa.MapArray.from_arrays(pa.array([0, 1], pa.int32()), pa.array(["k"]), value)

    for number in good:
        assert len(cast(nested(number), nesting.format(kind))) == 1
    for number in bad:
        with pytest.raises(InvalidError, match=r"column 'c(\.\w+)?' is .*row 7 has "):
            cast(nested(number), nesting.format(kind), first_row=7)


@pytest.mark.parametrize(
    ("arrow", "number", "shown"),
    [
        (pa.time32("ms"), 86_400_000, "24:00:00"),
        (pa.time32("ms"), -1, "-00:00:00.001"),
        (pa.time32("s"), 90_061, "25:01:01"),
        (pa.time64("us"), 86_400_001_000, "24:00:00.001"),
    ],
)
def test_a_time_outside_the_day_is_shown_as_it_is(arrow: pa.DataType, number: int, shown: str) -> None:
    value = pa.array([number], pa.int32() if arrow.bit_width == 32 else pa.int64()).view(arrow)
    with pytest.raises(InvalidError, match=f"row 0 has {shown}$"):
        cast(value, "TIME(3)")
