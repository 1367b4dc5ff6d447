"""Filters given as pyarrow expressions: the columns they reference, and the row mask.

Such an expression keeps Arrow's meaning (NaN compares unequal to everything), unlike SQL text. pyarrow does
not tell what an expression refers to, so the columns are found from its text, which names every column it
reads; a name found by accident costs a column, never a row.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from lakelet.errors import InvalidError


def referenced(expression: pc.Expression, schema: pa.Schema) -> tuple[str, ...]:
    """Top-level columns the expression may read, in schema order; InvalidError if it is no condition over them."""
    text = str(expression)
    names = tuple(schema.names)
    if "FieldPath(" not in text:
        # References by position only hold for the whole schema.
        found = tuple(name for name in names if name in text)
        if _kind(expression, schema, found) == pa.bool_():
            return found
    kind = _kind(expression, schema, names)
    if kind is None:
        kind = _bound_type(expression, _no_rows(schema))
    if kind != pa.bool_():
        raise InvalidError(f"where: expected a condition, found an expression of type {kind}: {text}")
    return names


def by_position(expression: pc.Expression) -> bool:
    """Whether the expression reads columns by their position, as `pc.field(0)` does."""
    return "FieldPath(" in str(expression)


def expression_mask(expression: pc.Expression, batch: pa.RecordBatch) -> pa.BooleanArray:
    """Whether each row is kept; unknown counts as no. The batch has exactly the referenced columns."""
    mask = _project(expression, pa.Table.from_batches([batch])).column(0)
    return pc.fill_null(mask.combine_chunks(), False)


def _kind(expression: pc.Expression, schema: pa.Schema, names: tuple[str, ...]) -> pa.DataType | None:
    """The type of the expression over these columns only; None if it needs others."""
    try:
        return _bound_type(expression, _no_rows(schema).select(list(names)))
    except InvalidError:
        return None


def _no_rows(schema: pa.Schema) -> pa.Table:
    # Arrow's own `empty_table` knows no uuid inside of a nested column.
    return pa.Table.from_batches([], schema)


def _bound_type(expression: pc.Expression, table: pa.Table) -> pa.DataType:
    return _project(expression, table).schema.field(0).type


def _project(expression: pc.Expression, table: pa.Table) -> pa.Table:
    from pyarrow import acero  # noqa: PLC0415 - it loads pyarrow.dataset and pandas, and few scans have such a condition.

    plan = acero.Declaration.from_sequence(
        [
            acero.Declaration("table_source", acero.TableSourceNodeOptions(table)),
            acero.Declaration("project", acero.ProjectNodeOptions([expression], ["kept"])),
        ]
    )
    try:
        # One thread: the rows come out in the order they went in.
        return plan.to_table(use_threads=False)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowKeyError, pa.ArrowTypeError) as error:
        raise InvalidError(f"where: {error}") from error
