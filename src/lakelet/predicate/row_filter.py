"""The exact row filter of a scan: predicate pushdown into the file reader, and the residual.

A reader hands `pushdown` to the Parquet reader, which skips row groups and rows by it, and passes every batch
through `apply_residual` if `residual` is set. Where the files cannot take the push-down (another schema, rows
that still have to be merged), `apply` alone gives the same rows.

Only what no reader can get wrong is pushed down. Footers of many writers ignore NaN, and pyarrow trusts them:
[3, NaN] has min = max = 3, so a row group is skipped for `x > 5` or `x <> 3` although its NaN matches. A
condition on a floating-point column that NaN satisfies therefore stays behind, as does everything that needs
DuckDB. `x < 5` and `x = 3`, which NaN never satisfies, are pushed down.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from lakelet.model.arrow.arrow_types import arrow_schema
from lakelet.model.types import Atomic, Field
from lakelet.predicate.arrow_expression import by_position, expression_mask, referenced
from lakelet.predicate.row_mask import expression, row_mask
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
    conjunction,
    conjuncts,
    normalise,
)
from lakelet.predicate.tree import columns as columns_of

_Condition: TypeAlias = Predicate | pc.Expression


@dataclass(frozen=True, slots=True)
class RowFilter:
    """The columns to read, the pushdown and the residual of a filter; picklable.

    `columns` are the top-level columns that `apply` needs in a batch; the batch may have more.
    The push-down is exact for its part of the condition: it drops all rows which that part excludes, and no others.
    """

    columns: tuple[str, ...]
    pushdown: pc.Expression | None
    residual_columns: tuple[str, ...]
    _whole: _Condition | None
    _rest: _Condition | None

    @property
    def is_set(self) -> bool:
        """Whether there is a condition at all."""
        return self._whole is not None

    @property
    def residual(self) -> bool:
        """Whether batches that passed the push-down must still go through `apply_residual`."""
        return self._rest is not None

    def apply(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows of an unfiltered batch that match, in order."""
        return _kept(batch, self._whole, self.columns)

    def apply_residual(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows that match of a batch that the push-down has filtered, in order."""
        return _kept(batch, self._rest, self.residual_columns)


def row_filter(where: Predicate | pc.Expression | None, fields: Sequence[Field]) -> RowFilter:
    """The filter for a predicate, a pyarrow expression over these columns, or nothing."""
    if where is None:
        return RowFilter((), None, (), None, None)
    if isinstance(where, pc.Expression):
        return _from_expression(where, arrow_schema(fields))
    predicate = normalise(where)
    if predicate == Constant(True):
        return RowFilter((), None, (), None, None)
    atomic = {field.name for field in fields if isinstance(field.type, Atomic)}
    pushed: list[Predicate] = []
    kept: list[Predicate] = []
    for term in conjuncts(predicate):
        (pushed if _safe(term, atomic) else kept).append(term)
    rest = conjunction(kept) if kept else None
    return RowFilter(
        columns=columns_of(predicate),
        pushdown=expression(conjunction(pushed)) if pushed else None,
        residual_columns=() if rest is None else columns_of(rest),
        _whole=predicate,
        _rest=rest,
    )


def split_by_columns(whole: RowFilter, names: Collection[str], fields: Sequence[Field]) -> tuple[RowFilter, RowFilter]:
    """Two filters that a row must both pass: one over some columns only that can be pushed down entirely, and the rest.

    With the columns of a key, the first holds for all rows of a key or for none, so that it may go before a merge.
    """
    if isinstance(whole._whole, pc.Expression):
        is_first = whole.pushdown is not None and set(whole.columns) <= set(names)
        return (whole, row_filter(None, fields)) if is_first else (row_filter(None, fields), whole)
    if whole._whole is None:
        return whole, whole
    atomic = {field.name for field in fields if isinstance(field.type, Atomic)}
    first: list[Predicate] = []
    rest: list[Predicate] = []
    for term in conjuncts(whole._whole):
        is_first = _safe(term, atomic) and set(columns_of(term)) <= set(names)
        (first if is_first else rest).append(term)
    return row_filter(conjunction(first), fields), row_filter(conjunction(rest), fields)


def _from_expression(where: pc.Expression, schema: pa.Schema) -> RowFilter:
    names = referenced(where, schema)
    if by_position(where) or any(_has_float(schema.field(name).type) for name in names):
        return RowFilter(names, None, names, where, where)
    return RowFilter(names, where, (), where, None)


def _has_float(arrow: pa.DataType) -> bool:
    if pa.types.is_nested(arrow):
        return any(_has_float(arrow.field(index).type) for index in range(arrow.num_fields))
    return bool(pa.types.is_floating(arrow))


def _safe(predicate: Predicate, atomic: set[str]) -> bool:
    """Whether a reader that trusts footers written without NaN still finds every row."""
    match predicate:
        case And(terms) | Or(terms):
            return all(_safe(term, atomic) for term in terms)
        case Comparison(_, operator, literal) if pa.types.is_floating(literal.type):
            return operator in ("=", "<", "<=") and not math.isnan(literal.as_py())
        case InList(_, values, negated) if pa.types.is_floating(values.type):
            return not negated and not pc.any(pc.is_nan(values)).as_py()
        case IsNull(column):
            return column in atomic
        case Comparison() | InList() | Like() | Constant():
            return True
        case _:
            assert isinstance(predicate, Opaque), predicate
            return False


def _kept(batch: pa.RecordBatch, condition: _Condition | None, columns: tuple[str, ...]) -> pa.RecordBatch:
    if condition is None or not batch.num_rows:
        return batch
    if isinstance(condition, pc.Expression):
        mask = expression_mask(condition, batch.select(list(columns)))
    else:
        mask = row_mask(condition, batch)
    return batch if mask.true_count == batch.num_rows else batch.filter(mask)
