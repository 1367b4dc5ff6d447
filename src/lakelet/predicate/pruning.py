"""Prune files by their statistics: which may hold a matching row, evaluated for all files at once.

Planning prunes partitions, manifests and data files alike: here they are all "files", one
element per file in each `ColumnRange`. The results are conservative. `may_match` is False only where no
row can match; `always_match` is True only where every row does. Nothing here reads a file.

What statistics promise (and what they do not):

- A NULL minimum or maximum is unknown, unless the null count equals the row count: then all rows are NULL.
- A null count of 0 beside a NULL bound is unknown too: that is how writers mark statistics they gave up on.
- NaN is the greatest value, so a maximum that is not NaN says there is none; -0.0 equals 0.0.
- Bounds of strings and bytes are cut short and rounded up: values lie between them, yet equal bounds do not
  prove that every row has that value, unless the range is `exact`.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow.fs import LocalFileSystem

from lakelet.model.row_arrays import Mask
from lakelet.predicate.arrow_expression import by_position, referenced
from lakelet.predicate.row_mask import after_prefix, evaluate, like_prefix
from lakelet.predicate.tree import (
    And,
    Comparison,
    Constant,
    InList,
    IsNull,
    Like,
    Opaque,
    Or,
    Predicate,
    needs_duckdb,
    normalise,
)
from lakelet.predicate.tree import columns as columns_of

__all__ = [
    "ColumnRange",
    "Mask",
    "always_match",
    "evaluate",
    "may_match",
    "partition_range",
    "prune_expression",
]


@dataclass(frozen=True, slots=True)
class ColumnRange:
    """The statistics of one column, one element per file: bounds of its values, and NULL counts.

    `exact` means that the bounds are values of rows, neither cut nor rounded: partition values are.
    """

    min: pa.Array | None
    max: pa.Array | None
    null_counts: pa.Array | None
    row_counts: pa.Array
    exact: bool = False


def partition_range(values: pa.Array, row_counts: pa.Array | None = None) -> ColumnRange:
    """The range of a partition column: every row of a file has the one value, or NULL."""
    rows = pa.repeat(pa.scalar(1, pa.int64()), len(values)) if row_counts is None else row_counts.cast(pa.int64())
    nulls = pc.if_else(pc.is_null(values), rows, pa.scalar(0, pa.int64()))
    return ColumnRange(values, values, nulls, rows, exact=True)


def may_match(predicate: Predicate, columns: Mapping[str, ColumnRange], rows: int) -> Mask:
    """False where provably no row matches; `rows` is the number of files."""
    return _Pruner(columns, rows).decide(normalise(predicate), np.ones(rows, np.bool_)).may


def always_match(predicate: Predicate, columns: Mapping[str, ColumnRange], rows: int) -> Mask:
    """True where provably every row matches; `rows` is the number of files."""
    return _Pruner(columns, rows).decide(normalise(predicate), np.ones(rows, np.bool_)).always


def prune_expression(
    expression: pc.Expression, columns: Mapping[str, ColumnRange], schema: pa.Schema, rows: int
) -> Mask:
    """Like `may_match` for a caller's pyarrow expression, by pyarrow's own simplification.

    Each file becomes a fragment whose guarantee is what its statistics prove; pyarrow then lists the fragments
    that the expression can hold for. Nothing is opened: a fragment's path is its number.
    """
    from pyarrow import dataset  # noqa: PLC0415 - it loads pandas where that is installed, which takes a second.

    names = [name for name in referenced(expression, schema) if name in columns]
    if by_position(expression) or not names or not rows:
        return np.ones(rows, np.bool_)
    proved: list[list[pc.Expression]] = [[] for _ in range(rows)]
    for name in names:
        bounds = _Bounds(columns[name], rows)
        if bounds.type in (None, schema.field(name).type):
            _add_guarantees(proved, name, bounds)
    layout, nowhere = dataset.ParquetFileFormat(), LocalFileSystem()
    fragments = [
        layout.make_fragment(
            str(number), nowhere, partition_expression=reduce(operator.and_, terms) if terms else pc.scalar(True)
        )
        for number, terms in enumerate(proved)
    ]
    kept = dataset.FileSystemDataset(fragments, schema, layout).get_fragments(filter=expression)
    mask = np.zeros(rows, np.bool_)
    mask[[int(fragment.path) for fragment in kept]] = True
    return mask


def _add_guarantees(proved: list[list[pc.Expression]], name: str, bounds: _Bounds) -> None:
    """Add the guarantees of each file. Arrow understands `bound OR is_null`, one bound at a time."""
    field, low, high = pc.field(name), bounds.column.min, bounds.column.max
    missing = field.is_null()
    floating = bounds.type is not None and pa.types.is_floating(bounds.type)
    for number, terms in enumerate(proved):
        if bounds.all_null[number]:
            terms.append(missing)
            continue
        if low is not None and bounds.constant[number]:
            terms.append(field == pc.scalar(low[number]))
            continue
        if floating:
            # A bound says nothing of NaN rows, and Arrow simplifies comparisons with a NaN literal wrongly.
            continue
        limits = []
        if low is not None and low[number].is_valid:
            limits.append(field >= pc.scalar(low[number]))
        if high is not None and high[number].is_valid:
            limits.append(field <= pc.scalar(high[number]))
        terms.extend(limits if bounds.no_nulls[number] else [limit | missing for limit in limits])


@dataclass(frozen=True, slots=True)
class _Verdict:
    may: Mask
    always: Mask


class _Pruner:
    def __init__(self, columns: Mapping[str, ColumnRange], rows: int) -> None:
        self.columns = columns
        self.rows = rows
        self.bounds: dict[str, _Bounds] = {}

    def decide(self, predicate: Predicate, within: Mask) -> _Verdict:
        """Evaluate a predicate for the files in `within`; the results of the others are undefined."""
        match predicate:
            case And(terms):
                may, always = within, np.ones(self.rows, np.bool_)
                # What needs DuckDB comes last, and only where the rest left something to decide.
                for term in sorted(terms, key=needs_duckdb):
                    verdict = self.decide(term, may)
                    may, always = may & verdict.may, always & verdict.always
                return _Verdict(may, always & may)
            case Or(terms):
                verdicts = [self.decide(term, within) for term in terms]
                either = np.logical_or.reduce([verdict.may for verdict in verdicts])
                return _Verdict(either, np.logical_or.reduce([verdict.always for verdict in verdicts]))
            case Constant(value):
                mask = np.full(self.rows, bool(value))
                return _Verdict(mask, mask)
            case _:
                return self.leaf(predicate, within)

    def leaf(self, predicate: Predicate, within: Mask) -> _Verdict:
        names = columns_of(predicate)
        unknown = _Verdict(np.ones(self.rows, np.bool_), np.zeros(self.rows, np.bool_))
        if not names or any(name not in self.columns for name in names):
            return unknown
        bounds = [self.bound(name) for name in names]
        verdict = unknown if isinstance(predicate, Opaque) else _from_range(predicate, bounds[0])
        constant = np.flatnonzero(np.logical_and.reduce([within, *(bound.constant for bound in bounds)]))
        if not len(constant):
            return verdict
        at = pa.array(constant)
        values = {name: bound.values.take(at) for name, bound in zip(names, bounds, strict=True)}
        decided = evaluate(predicate, pa.table(values))
        may, always = verdict.may.copy(), verdict.always.copy()
        may[constant] = decided
        always[constant] = decided
        return _Verdict(may, always)

    def bound(self, name: str) -> _Bounds:
        if name not in self.bounds:
            self.bounds[name] = _Bounds(self.columns[name], self.rows)
        return self.bounds[name]


class _Bounds:
    """One column's ranges as masks over files; False always means "not known to be so"."""

    def __init__(self, column: ColumnRange, rows: int) -> None:
        self.rows = rows
        self.exact = column.exact
        self.min = None if column.min is None else _sortable(column.min)
        self.max = None if column.max is None else _sortable(column.max)
        self.type = column.min.type if column.min is not None else column.max.type if column.max is not None else None
        counted = np.zeros(rows, np.bool_) if column.null_counts is None else _flags(pc.is_valid(column.null_counts))
        nulls = np.zeros(rows, np.int64) if column.null_counts is None else _numbers(column.null_counts)
        total = _numbers(column.row_counts)
        bounded = self.known(self.min) & self.known(self.max)
        self.all_null: Mask = counted & (nulls == total)
        self.has_nulls: Mask = counted & (nulls > 0)
        self.no_nulls: Mask = counted & (nulls == 0) & (bounded | (total == 0))
        self.column = column

    def known(self, bound: pa.Array | None) -> Mask:
        return np.zeros(self.rows, np.bool_) if bound is None else _flags(pc.is_valid(bound))

    @cached_property
    def one_value(self) -> Mask:
        """All rows that are not NULL have the value `min`."""
        if self.min is None or self.max is None or self.type is None:
            return np.zeros(self.rows, np.bool_)
        trusted = self.exact or not _may_be_cut(self.type)
        return _flags(pc.equal(self.min, self.max)) & trusted

    @cached_property
    def constant(self) -> Mask:
        """Every row is known: all have one value, or all are NULL."""
        if not self.exact or self.column.min is None:
            return np.zeros(self.rows, np.bool_)
        return (self.one_value & self.no_nulls) | (self.all_null & ~self.known(self.min))

    @property
    def values(self) -> pa.Array:
        return self.column.min

    def compare(self, bound: pa.Array | None, operator: str, literal: pa.Scalar) -> Mask:
        return np.zeros(self.rows, np.bool_) if bound is None else _flags(_KERNELS[operator](bound, literal))


_KERNELS = {"<": pc.less, "<=": pc.less_equal, ">": pc.greater, ">=": pc.greater_equal, "=": pc.equal}


def _from_range(predicate: Predicate, bounds: _Bounds) -> _Verdict:
    if isinstance(predicate, IsNull):
        none, every = bounds.no_nulls, bounds.all_null
        return _Verdict(~every, none) if predicate.negated else _Verdict(~none, every)
    wanted = _literal_type(predicate)
    if bounds.type is not None and bounds.type != wanted:
        # Statistics of another type than the column's present one; comparing them would be a guess.
        never, always = np.zeros(bounds.rows, np.bool_), np.zeros(bounds.rows, np.bool_)
    else:
        match predicate:
            case Comparison():
                never, always = _comparison(predicate, bounds)
            case InList():
                never, always = _membership(predicate, bounds)
            case Like():
                never, always = _like(predicate, bounds)
            case _:
                raise AssertionError(f"{predicate} is not a leaf of a normalised predicate")
    return _Verdict(~(never | bounds.all_null), always & bounds.no_nulls)


def _literal_type(predicate: Predicate) -> pa.DataType:
    match predicate:
        case Comparison(_, _, literal):
            return literal.type
        case InList(_, values):
            return values.type
    return pa.string()


def _comparison(predicate: Comparison, bounds: _Bounds) -> tuple[Mask, Mask]:
    """Where no value, and where every value, satisfies the comparison."""
    literal = _sortable(pa.repeat(predicate.literal, 1))[0]
    low, high = bounds.min, bounds.max
    match predicate.operator:
        case "=":
            never = bounds.compare(low, ">", literal) | bounds.compare(high, "<", literal)
            return never, bounds.one_value & bounds.compare(low, "=", literal)
        case "<>":
            always = bounds.compare(low, ">", literal) | bounds.compare(high, "<", literal)
            return bounds.one_value & bounds.compare(low, "=", literal), always
        case "<":
            return bounds.compare(low, ">=", literal), bounds.compare(high, "<", literal)
        case "<=":
            return bounds.compare(low, ">", literal), bounds.compare(high, "<=", literal)
        case ">":
            return bounds.compare(high, "<=", literal), bounds.compare(low, ">", literal)
        case _:
            return bounds.compare(high, "<", literal), bounds.compare(low, ">=", literal)


def _membership(predicate: InList, bounds: _Bounds) -> tuple[Mask, Mask]:
    if bounds.min is None or bounds.max is None:
        return np.zeros(bounds.rows, np.bool_), np.zeros(bounds.rows, np.bool_)
    values = pc.unique(_sortable(predicate.values))
    known = bounds.known(bounds.min) & bounds.known(bounds.max)
    low, high, listed = _ranks(bounds.min, bounds.max, values)
    listed = np.sort(listed)
    # The least listed value that is not below the minimum decides whether any lies inside the range.
    at = np.searchsorted(listed, low)
    inside = np.append(listed, np.iinfo(np.int64).max)[at] <= high
    outside = known & ~inside
    one = known & bounds.one_value & inside
    return (one, outside) if predicate.negated else (outside, one)


def _ranks(low: pa.Array, high: pa.Array, values: pa.Array) -> tuple[npt.NDArray[np.int64], ...]:
    """Numbers in the order of the values; those of NULLs mean nothing."""
    ranked = _numbers(pc.rank(pa.concat_arrays([low, high, values]), sort_keys="ascending", tiebreaker="dense"))
    return ranked[: len(low)], ranked[len(low) : 2 * len(low)], ranked[2 * len(low) :]


def _like(predicate: Like, bounds: _Bounds) -> tuple[Mask, Mask]:
    prefix, whole = like_prefix(predicate)
    if whole:
        return _comparison(Comparison(predicate.column, "<>" if predicate.negated else "=", pa.scalar(prefix)), bounds)
    if not prefix:
        return np.zeros(bounds.rows, np.bool_), np.zeros(bounds.rows, np.bool_)
    outside = bounds.compare(bounds.max, "<", pa.scalar(prefix))
    upper = after_prefix(prefix)
    if upper is not None:
        outside |= bounds.compare(bounds.min, ">=", pa.scalar(upper))
    if predicate.negated:
        return np.zeros(bounds.rows, np.bool_), outside
    return outside, np.zeros(bounds.rows, np.bool_)


def _sortable(values: pa.Array) -> pa.Array:
    """Values whose Arrow order is the table's order: floats as integers that sort with NaN last and one zero."""
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if not pa.types.is_floating(values.type):
        return values
    missing = _flags(pc.is_null(values))
    plain = pc.fill_null(values.cast(pa.float64()), 0.0).to_numpy(zero_copy_only=False) + 0.0
    bits = plain.view(np.int64)
    keys = np.where(bits < 0, bits ^ np.int64(np.iinfo(np.int64).max), bits)
    keys[np.isnan(plain)] = np.iinfo(np.int64).max
    return pa.array(keys, mask=missing)


def _may_be_cut(arrow: pa.DataType) -> bool:
    return bool(pa.types.is_string(arrow) or pa.types.is_binary(arrow))


def _flags(values: pa.Array) -> Mask:
    found: Mask = np.asarray(pc.fill_null(values, False).to_numpy(zero_copy_only=False), dtype=np.bool_)
    return found


def _numbers(values: pa.Array) -> npt.NDArray[np.int64]:
    found: npt.NDArray[np.int64] = np.asarray(
        pc.fill_null(values.cast(pa.int64()), 0).to_numpy(zero_copy_only=False), dtype=np.int64
    )
    return found
