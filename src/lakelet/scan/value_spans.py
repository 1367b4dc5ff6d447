"""The values of one column with which a condition may be true, as spans of their numbers in a `range-bitmap` index.

NULL has the number after the last. A term that is not about the column allows every number, so that terms about one column
that contradict each other leave none, however AND and OR nest them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from lakelet.format.index.file.range_bitmap import RangeBitmapIndex
from lakelet.predicate.tree import And, Comparison, InList, IsNull, Or, Predicate

Spans = list[tuple[int, int]]
"""Numbers from the first up to before the second, in order and apart from each other."""


def value_spans(index: RangeBitmapIndex, column: str, condition: Predicate) -> Spans:
    """The numbers with which a row may make the condition true."""
    count = index.count
    match condition:
        case And(terms):
            found = [(0, count + 1)]
            for term in terms:
                found = _both(found, value_spans(index, column, term)) if found else found
            return found
        case Or(terms):
            return _joined([span for term in terms for span in value_spans(index, column, term)])
        case Comparison(name, operator, literal) if name == column:
            (begin,), (end,) = (one.tolist() for one in index.bounds(pa.array([literal], literal.type)))
            return _compared(operator, begin, end, count)
        case InList(name, values, negated) if name == column:
            if negated and values.null_count:
                return []
            begins, ends = index.bounds(values.drop_null())
            found = _joined(np.stack([begins, ends], axis=1).tolist())
            return _others(found, count) if negated else found
        case IsNull(name, negated) if name == column:
            return _kept([(0, count)] if negated else [(count, count + index.has_null())])
    return [(0, count + 1)]


def _compared(operator: str, begin: int, end: int, count: int) -> Spans:
    match operator:
        case "=":
            return _kept([(begin, end)])
        case "<>":
            return _kept([(0, begin), (end, count)])
        case "<":
            return _kept([(0, begin)])
        case "<=":
            return _kept([(0, end)])
        case ">":
            return _kept([(end, count)])
    return _kept([(begin, count)])


def _kept(spans: Sequence[tuple[int, int]]) -> Spans:
    return [(begin, end) for begin, end in spans if begin < end]


def _joined(spans: Sequence[Sequence[int]]) -> Spans:
    found: Spans = []
    for begin, end in sorted(_kept([(begin, end) for begin, end in spans])):
        if found and begin <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((begin, end))
    return found


def _others(spans: Spans, count: int) -> Spans:
    edges = [0, *(edge for span in spans for edge in span), count]
    return _kept(list(zip(edges[::2], edges[1::2], strict=True)))


def _both(one: Spans, other: Spans) -> Spans:
    found: Spans = []
    at = place = 0
    while at < len(one) and place < len(other):
        found.append((max(one[at][0], other[place][0]), min(one[at][1], other[place][1])))
        if one[at][1] < other[place][1]:
            at += 1
        else:
            place += 1
    return _kept(found)
