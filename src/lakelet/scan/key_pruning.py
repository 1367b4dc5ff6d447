"""Prune by primary key: the part of a condition over key columns only, and the buckets its rows can be in.

A condition on the primary key holds for all rows of a key or for none, so that files may be pruned by it one by one. A condition
on other columns may hold for the old row of a key and not for the new one.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakelet.format.rows.binary_row_columns import bucket_of, hash_rows
from lakelet.model.arrow.arrow_types import arrow_schema
from lakelet.model.bucket_mode import BucketMode, bucket_mode
from lakelet.model.row_arrays import Mask
from lakelet.model.schema import TableSchema
from lakelet.model.types import FLOATS, Atomic, DataType, Kind
from lakelet.predicate.arrow_expression import by_position, referenced
from lakelet.predicate.tree import Comparison, InList, Predicate, conjunction, conjuncts, normalise
from lakelet.predicate.tree import columns as predicate_columns

# More combinations of listed values than these touch all buckets anyway.
_MOST_KEYS = 4096


def key_part(where: Predicate | pc.Expression | None, schema: TableSchema) -> Predicate | pc.Expression | None:
    """The part of a condition over key and partition columns only; None where there is no such part."""
    decided_by = {*schema.trimmed_primary_keys, *schema.partition_keys}
    if where is None:
        return None
    if isinstance(where, pc.Expression):
        names = referenced(where, arrow_schema(schema.fields))
        return where if names and not by_position(where) and set(names) <= decided_by else None
    terms = [term for term in conjuncts(normalise(where)) if set(predicate_columns(term)) <= decided_by]
    return conjunction(terms) if terms else None


def speaks_of_values(where: Predicate | pc.Expression | None, schema: TableSchema) -> bool:
    """Whether a condition references columns besides keys and partitions."""
    if where is None:
        return False
    if isinstance(where, pc.Expression):
        return key_part(where, schema) is None
    return not set(predicate_columns(where)) <= {*schema.trimmed_primary_keys, *schema.partition_keys}


def in_buckets(where: Predicate | pc.Expression | None, schema: TableSchema, entries: pa.Table) -> Mask | None:
    """A mask of the entries whose bucket can hold matching rows; None where the condition does not restrict buckets."""
    if where is None or isinstance(where, pc.Expression) or bucket_mode(schema) is not BucketMode.HASH_FIXED:
        return None
    listed = [_listed(where, schema, name) for name in schema.bucket_keys]
    values = [found for found in listed if found is not None]
    if len(values) < len(listed) or prod(len(found) for found in values) > _MOST_KEYS:
        return None
    places = np.meshgrid(*(np.arange(len(found)) for found in values), indexing="ij")
    columns = [found.take(pa.array(place.ravel())) for found, place in zip(values, places, strict=True)]
    return stand_in_buckets(columns, [schema.field(name).type for name in schema.bucket_keys], entries)


def stand_in_buckets(columns: Sequence[pa.Array], types: Sequence[DataType], entries: pa.Table) -> Mask:
    """A mask of the entries in the bucket of one of these bucket keys, by the bucket count that each was written under."""
    hashes = hash_rows(columns, types)
    buckets = entries.column("_BUCKET").to_numpy()
    totals = entries.column("_TOTAL_BUCKETS").to_numpy()
    mask = np.ones(entries.num_rows, np.bool_)
    for total in np.unique(totals).tolist():
        if total > 0:
            written = totals == total
            mask[written] = np.isin(buckets[written], bucket_of(hashes, total))
    return mask


def _listed(where: Predicate, schema: TableSchema, name: str) -> pa.Array | None:
    """The only values of a column that match; None if there may be others, or equal ones that hash differently."""
    data_type = schema.field(name).type
    # 0.0 equals -0.0, and some writers pad CHAR.
    if isinstance(data_type, Atomic) and (data_type.kind in FLOATS or data_type.kind is Kind.CHAR):
        return None
    for term in conjuncts(normalise(where)):
        if isinstance(term, Comparison) and term.column == name and term.operator == "=":
            return pa.repeat(term.literal, 1)
        if isinstance(term, InList) and term.column == name and not term.negated:
            return term.values.unique()
    return None
