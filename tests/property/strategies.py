"""Random types, values, options and conditions for the property tests of tables."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from tests.property.table_model import Column, Condition, Leaf, ListOf, MapOf, Row, Struct, Type

_TEXTS = [
    "",
    " ",
    "a",
    "ab",
    "b",
    "é",
    "x" * 15,
    "x" * 16 + "y",
    "x" * 40,
    "\U0001d11e" * 17,
    "it's",
    "a=b/c%d",
    "\uffff" * 20,
]
_DAYS = [dt.date(1969, 12, 31), dt.date(2024, 1, 1), dt.date(2024, 2, 29), dt.date(9999, 12, 31)]
# ORC files hold no fraction of a second before 1970, so there is none here.
_MOMENTS = [
    dt.datetime(1969, 12, 31, 23, 59, 59),
    dt.datetime(2024, 1, 1),
    dt.datetime(2024, 1, 1, 10, 11, 12, 345_000),
]
_MICROS = [dt.datetime(2024, 1, 1, 10, 11, 12, 345_678), dt.datetime(2100, 1, 1, 0, 0, 0, 1)]
_FLOATS = [0.0, -0.0, 1.5, -2.25, 1e30, math.inf, -math.inf, math.nan, 3.0]

VALUES: dict[str, list[Any]] = {
    "BOOLEAN": [True, False],
    "TINYINT": [0, 1, -1, 127, -128],
    "SMALLINT": [0, 1, -1, 32_767, -32_768],
    "INT": [0, 1, -1, 7, 2**31 - 1, -(2**31)],
    "BIGINT": [0, 1, -1, 7, 2**63 - 1, -(2**63)],
    "FLOAT": [0.0, -0.0, 1.5, -2.25, math.inf, -math.inf, math.nan],
    "DOUBLE": _FLOATS,
    "DECIMAL(6, 2)": [Decimal("0.00"), Decimal("1.50"), Decimal("-9999.99")],
    "DECIMAL(20, 4)": [Decimal("0"), Decimal("1234567890123456.7891"), Decimal("-0.0001")],
    "STRING": _TEXTS,
    "CHAR(3)": ["", "abc", "é"],
    "VARCHAR(8)": ["", "abcdefgh", "x"],
    "BYTES": [b"", b"\x00", b"\xff" * 20],
    "DATE": _DAYS,
    "TIME(3)": [dt.time(0), dt.time(23, 59, 59, 999_000)],
    "TIMESTAMP(3)": _MOMENTS,
    "TIMESTAMP(6)": _MOMENTS + _MICROS,
    "TIMESTAMP(3) WITH LOCAL TIME ZONE": [moment.replace(tzinfo=dt.UTC) for moment in _MOMENTS],
    "TIMESTAMP(6) WITH LOCAL TIME ZONE": [moment.replace(tzinfo=dt.UTC) for moment in _MOMENTS + _MICROS],
}
WIDENINGS = {
    "TINYINT": ["SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(6, 2)"],
    "SMALLINT": ["INT", "BIGINT", "DOUBLE", "DECIMAL(20, 4)"],
    "INT": ["BIGINT", "DOUBLE", "DECIMAL(20, 4)"],
    "BIGINT": ["DECIMAL(23, 4)"],
    "FLOAT": ["DOUBLE"],
    "DECIMAL(6, 2)": ["DECIMAL(20, 4)", "DECIMAL(7, 3)"],
    "DECIMAL(20, 4)": ["DECIMAL(38, 4)"],
    "CHAR(3)": ["VARCHAR(8)", "STRING"],
    "VARCHAR(8)": ["STRING"],
    "TIMESTAMP(3)": ["TIMESTAMP(6)"],
    "TIMESTAMP(3) WITH LOCAL TIME ZONE": ["TIMESTAMP(6) WITH LOCAL TIME ZONE"],
}
PARTITION_TYPES = ["STRING", "INT", "DATE", "BOOLEAN", "SMALLINT", "VARCHAR(8)", "DECIMAL(6, 2)", "TIMESTAMP(3)"]
_COMPARABLE = ("TINYINT", "SMALLINT", "INT", "BIGINT", "DOUBLE", "STRING", "CHAR", "VARCHAR", "DATE", "DECIMAL")

OPTIONS: dict[str, list[str]] = {
    "file.format": ["parquet", "orc", "avro"],
    "file.compression": ["zstd", "none"],
    "manifest.format": ["avro", "json"],
    "manifest.compression": ["zstd", "none"],
    "manifest.merge-min-count": ["2", "3", "30"],
    "manifest.target-file-size": ["1 b", "2 kb", "8 mb"],
    "manifest.full-compaction-threshold-size": ["1 b", "16 mb"],
    "target-file-size": ["1 b", "600 b", "128 mb"],
    "file.block-size": ["1 b", "1 kb", "64 mb"],
    "write.batch-memory": ["1 b", "500 b", "64 mb"],
    "metadata.stats-mode": ["none", "counts", "truncate(1)", "truncate(16)", "full"],
    "metadata.stats-dense-store": ["true", "false"],
    "metadata.stats-keep-first-n-columns": ["-1", "1", "2"],
    "source.split.target-size": ["1 b", "128 mb"],
    "source.split.open-file-cost": ["1 b", "4 mb"],
    "scan.manifest.parallelism": ["1", "3"],
    "read.batch-size": ["1", "1024"],
}


def leaves() -> st.SearchStrategy[Type]:
    """Types without children."""
    return st.sampled_from(sorted(VALUES)).map(Leaf)


def types() -> st.SearchStrategy[Type]:
    """All types, nested ones two deep."""
    members = st.lists(leaves(), min_size=1, max_size=2).map(_struct)
    nested = st.one_of(
        leaves().map(ListOf),
        leaves().map(MapOf),
        members,
        members.map(ListOf),
        members.map(MapOf),
        members.map(lambda inner: Struct([*inner.columns, Column("inner", _struct([Leaf("INT")]))])),
    )
    return st.one_of(leaves(), leaves(), nested)


def _struct(members: list[Type]) -> Struct:
    return Struct([Column("abcdef"[index], member) for index, member in enumerate(members)])


def values(data_type: Type) -> st.SearchStrategy[Any]:
    """Values of a type, NULL among them."""
    return st.one_of(st.none(), present(data_type), present(data_type))


def present(data_type: Type) -> st.SearchStrategy[Any]:
    """Values of a type that are not NULL."""
    match data_type:
        case ListOf(element):
            return st.lists(values(element), max_size=3)
        case MapOf(value):
            return st.dictionaries(st.sampled_from(["k", "l", ""]), values(value), max_size=2).map(
                lambda found: list(found.items())
            )
        case Struct(columns):
            return st.fixed_dictionaries({column.identity: values(column.type) for column in columns})
        case Leaf(text):
            known = VALUES.get(text)
            return st.sampled_from(VALUES["DECIMAL(6, 2)"][:2] if known is None else known)


def rows(columns: Struct, least: int = 0, most: int = 6) -> st.SearchStrategy[list[Row]]:
    """Rows of a table; `id` is never NULL."""
    row = st.fixed_dictionaries(
        {
            column.identity: st.integers(0, 20) if column.name == "id" else values(column.type)
            for column in columns.columns
        }
    )
    return st.lists(row, min_size=least, max_size=most)


def options(most: int = 4) -> st.SearchStrategy[dict[str, str]]:
    """Options that change how a table is stored, never what it holds."""
    chosen = st.lists(st.sampled_from(sorted(OPTIONS)), max_size=most, unique=True)
    return chosen.flatmap(lambda names: st.fixed_dictionaries({name: st.sampled_from(OPTIONS[name]) for name in names}))


def conditions(columns: Struct) -> st.SearchStrategy[Condition]:
    """Conditions over the columns whose order Python knows."""
    able = [
        column
        for column in columns.columns
        if isinstance(column.type, Leaf) and column.type.text.startswith(_COMPARABLE)
    ]
    single = st.sampled_from(able).flatmap(_about)
    return st.one_of(
        single, st.builds(_negated, single), st.builds(_both, single, single), st.builds(_either, single, single)
    )


def _about(column: Column) -> st.SearchStrategy[Condition]:
    assert isinstance(column.type, Leaf)
    known = VALUES.get(column.type.text, VALUES["DECIMAL(6, 2)"][:2])
    literals = st.sampled_from([value for value in known if not (isinstance(value, float) and math.isinf(value))])
    name, identity = f'"{column.name}"', column.identity

    def is_null(negated: bool) -> Condition:
        return Condition(
            f"{name} IS {'NOT ' if negated else ''}NULL", lambda row: (row.get(identity) is None) != negated
        )

    def compares(operator: str, literal: Any) -> Condition:
        return Condition(
            f"{name} {operator} {_sql(literal)}", lambda row: _compare(row.get(identity), operator, literal)
        )

    def among(literals: list[Any]) -> Condition:
        text = ", ".join(_sql(literal) for literal in literals)

        def test(row: Row) -> bool | None:
            value = row.get(identity)
            return None if value is None else any(_compare(value, "=", literal) for literal in literals)

        return Condition(f"{name} IN ({text})", test)

    return st.one_of(
        st.builds(is_null, st.booleans()),
        st.builds(compares, st.sampled_from(["=", "<>", "<", "<=", ">", ">="]), literals),
        st.builds(among, st.lists(literals, min_size=1, max_size=3)),
    )


def _negated(one: Condition) -> Condition:
    def test(row: Row) -> bool | None:
        value = one.test(row)
        return None if value is None else not value

    return Condition(f"NOT ({one.sql})", test)


def _both(one: Condition, other: Condition) -> Condition:
    def test(row: Row) -> bool | None:
        pair = one.test(row), other.test(row)
        return False if False in pair else None if None in pair else True

    return Condition(f"({one.sql}) AND ({other.sql})", test)


def _either(one: Condition, other: Condition) -> Condition:
    def test(row: Row) -> bool | None:
        pair = one.test(row), other.test(row)
        return True if True in pair else None if None in pair else False

    return Condition(f"({one.sql}) OR ({other.sql})", test)


def _order(value: Any) -> Any:
    if isinstance(value, float):
        return (math.isnan(value), 0.0 if math.isnan(value) else value)
    return value.encode() if isinstance(value, str) else value


def _compare(value: Any, operator: str, literal: Any) -> bool | None:
    if value is None:
        return None
    if isinstance(literal, float):
        value = float(value)
    left, right = _order(value), _order(literal)
    known = {
        "=": left == right,
        "<>": left != right,
        "<": left < right,
        "<=": left <= right,
        ">": left > right,
        ">=": left >= right,
    }
    return bool(known[operator])


def _sql(literal: Any) -> str:
    if isinstance(literal, str):
        return "'" + literal.replace("'", "''") + "'"
    if isinstance(literal, dt.date):
        return f"DATE '{literal}'"
    if isinstance(literal, float):
        return "CAST('nan' AS DOUBLE)" if math.isnan(literal) else repr(literal)
    return str(literal)
