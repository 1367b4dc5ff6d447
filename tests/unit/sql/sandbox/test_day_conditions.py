"""What conditions on a timestamp say about its day."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelet.model.type_parser import parse_type
from lakelet.model.types import Field
from lakelet.predicate.row_filter import row_filter
from lakelet.predicate.where import parse_where
from lakelet.sql.sandbox.day_conditions import with_days

FIELDS = (
    Field(0, "timestamp", parse_type("TIMESTAMP(6) WITH LOCAL TIME ZONE")),
    Field(1, "dt", parse_type("DATE")),
    Field(2, "n", parse_type("INT")),
)
FIRST = datetime(2024, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("(\"timestamp\" >= '2024-01-19 10:00:00')", "(\"dt\" >= DATE '2024-01-19')"),
        ("(\"timestamp\" < '2024-01-19')", "(\"dt\" <= DATE '2024-01-19')"),
        ("(\"timestamp\" = '2024-01-19 23:30:00-01:00')", "(\"dt\" = DATE '2024-01-20')"),
        ("(\"timestamp\" > '1969-12-31 23:00:00')", "(\"dt\" >= DATE '1969-12-31')"),
        ("(\"timestamp\" <> '2024-01-19')", None),
        ('("timestamp" IS NULL)', None),
        ('("timestamp" > \'2024-01-19\' OR "n" = 1)', None),
        ('("n" = 1)', None),
    ],
)
def test_days(text: str, days: str | None) -> None:
    assert with_days([text], FIELDS) == (text if days is None else f"{text} AND {days}",)


_MOMENTS = st.integers(0, 4 * 24).map(lambda hours: FIRST + timedelta(hours=hours / 2))
_TERMS = st.tuples(st.sampled_from(["=", "<", "<=", ">", ">=", "<>"]), _MOMENTS).map(
    lambda pair: f"(\"timestamp\" {pair[0]} '{pair[1].isoformat()}')"
)
_TEXTS = st.recursive(
    _TERMS | st.just('("n" = 1)') | st.lists(_MOMENTS, min_size=1, max_size=3).map(
        lambda found: f"(\"timestamp\" IN ({', '.join(repr(one.isoformat()) for one in found)}))"
    ),
    lambda inner: st.tuples(inner, st.sampled_from(["AND", "OR"]), inner).map(lambda three: f"({' '.join(three)})")
    | inner.map(lambda text: f"(NOT {text})"),
    max_leaves=5,
)  # fmt: skip


@given(text=_TEXTS, moments=st.lists(_MOMENTS | st.none(), max_size=8), n=st.integers(0, 1))
def test_no_row_is_lost_by_its_day(text: str, moments: list[datetime | None], n: int) -> None:
    rows = pa.record_batch(
        {
            "timestamp": pa.array(moments, pa.timestamp("us", "UTC")),
            "dt": pa.array([moment and moment.date() for moment in moments], pa.date32()),
            "n": pa.array([n] * len(moments), pa.int32()),
        }
    )
    (derived,) = with_days([text], FIELDS)
    before, after = (row_filter(parse_where(one, FIELDS), FIELDS).apply(rows) for one in (text, derived))
    assert before.equals(after)
