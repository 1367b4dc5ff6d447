"""Evaluate predicates exactly, row by row: as Arrow kernels over a batch, or as one Arrow expression.

The last word on a predicate: whatever pruning and Parquet readers left over passes here. The order of
values is DuckDB's: NaN equals itself and is greater than any number, -0.0 equals 0.0, strings compare by their
UTF-8 bytes. Arrow's kernels disagree on NaN only, so comparisons of floating-point columns are spelled out
below. `Opaque` parts go through DuckDB.

Predicates are normalised first, which lets a leaf answer FALSE where SQL says unknown.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakelet.predicate import duck
from lakelet.predicate.tree import (
    And,
    Comparison,
    Constant,
    InList,
    IsNull,
    Like,
    Not,
    Opaque,
    Or,
    Predicate,
    columns,
    needs_duckdb,
    normalise,
)

Operand: TypeAlias = pa.Array | pa.ChunkedArray | pc.Expression
_KERNELS = {
    "=": pc.equal,
    "<>": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}
_LAST_CODE_POINT = 0x10FFFF
_SURROGATES = range(0xD800, 0xE000)


def evaluate(predicate: Predicate, rows: pa.Table | pa.RecordBatch) -> npt.NDArray[np.bool_]:
    """Whether each row matches; unknown counts as no."""
    mask = row_mask(predicate, rows)
    found: npt.NDArray[np.bool_] = np.asarray(mask.to_numpy(zero_copy_only=False), dtype=np.bool_)
    return found


def row_mask(predicate: Predicate, rows: pa.Table | pa.RecordBatch) -> pa.BooleanArray:
    """Whether each row matches, as an Arrow array without NULLs."""
    mask = _decide(normalise(predicate), rows)
    if isinstance(mask, pa.ChunkedArray):
        mask = mask.combine_chunks()
    return pc.fill_null(mask, False)


def expression(predicate: Predicate, names: Mapping[str, str] | None = None) -> pc.Expression:
    """The predicate as an Arrow expression; `names` gives columns the names they have in a file.

    An Opaque part cannot be expressed: the caller keeps those back.
    """
    return _express(normalise(predicate), names or {})


def like_prefix(predicate: Like) -> tuple[str, bool]:
    """The literal text a LIKE pattern starts with, and whether that is the whole pattern."""
    text, pattern, at = "", predicate.pattern, 0
    while at < len(pattern):
        if predicate.escape is not None and pattern[at] == predicate.escape:
            at += 1
        elif pattern[at] in "%_":
            return text, False
        text += pattern[at]
        at += 1
    return text, True


def after_prefix(prefix: str) -> str | None:
    """The least string greater than every string with this prefix; None if there is none."""
    while prefix:
        following = ord(prefix[-1]) + 1
        if following <= _LAST_CODE_POINT:
            return prefix[:-1] + chr(_SURROGATES.stop if following in _SURROGATES else following)
        prefix = prefix[:-1]
    return None


def _decide(predicate: Predicate, rows: pa.Table | pa.RecordBatch) -> pa.Array | pa.ChunkedArray:
    match predicate:
        case And(terms):
            return _decide_all(terms, rows)
        case Or(terms):
            mask = _decide(terms[0], rows)
            for term in terms[1:]:
                mask = pc.or_kleene(mask, _decide(term, rows))
            return mask
        case Constant(value):
            return pa.repeat(pa.scalar(bool(value)), rows.num_rows)
        case Opaque(sql, names):
            return duck.decide(sql, rows.select(list(names)))
        case _:
            column = columns(predicate)[0]
            index = rows.schema.get_field_index(column)
            return _leaf(predicate, rows.column(index))


def _decide_all(terms: tuple[Predicate, ...], rows: pa.Table | pa.RecordBatch) -> pa.Array | pa.ChunkedArray:
    """AND, kernels first: DuckDB sees only the rows still in question, so that `s <> 'x' AND s::INT > 1` works."""
    mask: pa.Array | pa.ChunkedArray | None = None
    for term in sorted(terms, key=needs_duckdb):
        if mask is None:
            mask = _decide(term, rows)
            continue
        if not needs_duckdb(term):
            mask = pc.and_kleene(mask, _decide(term, rows))
            continue
        mask = pc.fill_null(mask.combine_chunks() if isinstance(mask, pa.ChunkedArray) else mask, False)
        if mask.true_count:
            answers = _decide(term, rows.select(list(columns(term))).filter(mask))
            answers = answers.combine_chunks() if isinstance(answers, pa.ChunkedArray) else answers
            mask = pc.replace_with_mask(mask, mask, pc.fill_null(answers, False))
    return mask


def _express(predicate: Predicate, names: Mapping[str, str]) -> pc.Expression:
    match predicate:
        case And(terms) | Or(terms):
            join = pc.and_kleene if isinstance(predicate, And) else pc.or_kleene
            built = _express(terms[0], names)
            for term in terms[1:]:
                built = join(built, _express(term, names))
            return built
        case Constant(value):
            return pc.scalar(bool(value))
        case _:
            column = columns(predicate)[0]
            return _leaf(predicate, pc.field(names.get(column, column)))


def _leaf(predicate: Predicate, column: Operand) -> Operand:
    match predicate:
        case Comparison():
            return _comparison(predicate, column)
        case InList():
            return _membership(predicate, column)
        case IsNull(_, negated):
            return pc.is_valid(column) if negated else pc.is_null(column)
        case Like():
            return _like(predicate, column)
        case Not() | And() | Or() | Constant() | Opaque():
            raise AssertionError(f"{predicate} is not a leaf of a normalised predicate")


def _comparison(predicate: Comparison, column: Operand) -> Operand:
    operator, literal = predicate.operator, predicate.literal
    kernel = _KERNELS[operator]
    if not pa.types.is_floating(literal.type):
        return kernel(column, _constant(literal, column))
    if not math.isnan(literal.as_py()):
        compared = kernel(column, _constant(literal, column))
        return pc.or_kleene(compared, pc.is_nan(column)) if operator in (">", ">=") else compared
    match operator:
        case "=" | ">=":
            return pc.is_nan(column)
        case "<>" | "<":
            return pc.invert(pc.is_nan(column))
        case "<=":
            return pc.is_valid(column)
        case _:
            return pc.and_kleene(pc.is_nan(column), pc.is_null(column))


def _constant(literal: pa.Scalar, beside: Operand) -> pa.Scalar | pc.Expression:
    return pc.scalar(literal) if isinstance(beside, pc.Expression) else literal


def _membership(predicate: InList, column: Operand) -> Operand:
    values, has_nan = predicate.values, False
    if pa.types.is_floating(values.type):
        nan = pc.is_nan(values)
        has_nan = bool(pc.any(nan).as_py())
        values = values.filter(pc.invert(nan))
        if pc.any(pc.equal(values, pa.scalar(0.0, values.type))).as_py():
            # The look-up goes by bits, and the two zeros differ in theirs.
            values = pa.concat_arrays([values, pa.array([0.0, -0.0], values.type)])
    found = pc.is_in(column, options=pc.SetLookupOptions(value_set=values, skip_nulls=True))
    if has_nan:
        found = pc.or_kleene(found, pc.is_nan(column))
    return pc.and_kleene(pc.invert(found), pc.is_valid(column)) if predicate.negated else found


def _like(predicate: Like, column: Operand) -> Operand:
    prefix, whole = like_prefix(predicate)
    if whole:
        equal = pc.equal(column, _constant(pa.scalar(prefix), column))
        return pc.invert(equal) if predicate.negated else equal
    matched = pc.match_substring_regex(column, options=pc.MatchSubstringOptions(_regex(predicate)))
    if predicate.negated:
        return pc.invert(matched)
    if not prefix:
        return matched
    # The range lets a Parquet reader skip row groups, and spares most rows the regular expression.
    matched = pc.and_kleene(pc.greater_equal(column, _constant(pa.scalar(prefix), column)), matched)
    upper = after_prefix(prefix)
    if upper is None:
        return matched
    return pc.and_kleene(pc.less(column, _constant(pa.scalar(upper), column)), matched)


def _regex(predicate: Like) -> str:
    parts, pattern, at = [], predicate.pattern, 0
    while at < len(pattern):
        if predicate.escape is not None and pattern[at] == predicate.escape:
            at += 1
            parts.append(re.escape(pattern[at]))
        elif pattern[at] in "%_":
            parts.append(".*" if pattern[at] == "%" else ".")
        else:
            parts.append(re.escape(pattern[at]))
        at += 1
    return r"(?s)\A" + "".join(parts) + r"\z"
