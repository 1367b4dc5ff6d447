"""Conditions on the day of a partition, derived from those on its timestamp.

    timestamp >= '2024-01-19 10:00'    gives as well    dt >= '2024-01-19'

The tables of the service have their rows in partitions by the UTC day of the timestamp. With the condition on the day, a plan
skips the manifests of other days; files it would skip in any case, by the statistics of the timestamp.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta

import pyarrow as pa

from lakelet.errors import InvalidError
from lakelet.model.types import Field
from lakelet.predicate.tree import And, Comparison, InList, Or, Predicate, normalise
from lakelet.sql.lexer.quotes import literal, quoted

MOMENT, DAY = "timestamp", "dt"
_EPOCH = date(1970, 1, 1)
_DAY_US = 86_400_000_000
# A moment before another may be on the same day.
_SIGNS = {"=": "=", "<": "<=", "<=": "<=", ">": ">=", ">=": ">="}


def with_days(texts: Sequence[str], fields: Sequence[Field]) -> tuple[str, ...]:
    """Conditions, each with what it says about the day."""
    return tuple(_with_day(text, fields) for text in texts)


def _with_day(text: str, fields: Sequence[Field]) -> str:
    if MOMENT not in text:
        return text
    from lakelet.predicate.where import parse_where  # noqa: PLC0415 - it takes a while to load.

    try:
        found = _days(normalise(parse_where(text, fields)))
    except (InvalidError, RecursionError, OverflowError):
        return text
    return text if found is None else f"{text} AND {found}"


def _days(predicate: Predicate) -> str | None:
    """What a predicate says about the day, as SQL; None where it says nothing."""
    match predicate:
        case And(terms):
            told = [one for one in map(_days, terms) if one is not None]
            return f"({' AND '.join(told)})" if told else None
        case Or(terms):
            every = [_days(term) for term in terms]
            return None if None in every else f"({' OR '.join(one or '' for one in every)})"
        case Comparison(column, operator, value) if column == MOMENT and operator in _SIGNS:
            return f"({quoted(DAY)} {_SIGNS[operator]} {_day(value)})"
        case InList(column, values, negated) if column == MOMENT and not negated:
            days = sorted({_day(value) for value in values if value.is_valid})
            return f"({quoted(DAY)} IN ({', '.join(days)}))" if days else None
    return None


def _day(moment: pa.Scalar) -> str:
    """The UTC day of a moment as a literal; OverflowError for one outside of the calendar."""
    return f"DATE {literal((_EPOCH + timedelta(days=moment.cast(pa.int64()).as_py() // _DAY_US)).isoformat())}"
