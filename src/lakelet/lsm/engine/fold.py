"""Fold groups of rows with a fold engine, and assemble the results as batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from lakelet.lsm.engine.key_groups import KeyGroups
from lakelet.lsm.engine.merge_engine import FoldEngine
from lakelet.lsm.key_value_columns import SEQUENCE_NUMBER, VALUE_KIND
from lakelet.lsm.merge_spec import MergeSpec


def fold_groups(
    groups: KeyGroups, engine: FoldEngine, spec: MergeSpec, columns: Sequence[str] | None = None
) -> pa.RecordBatch:
    """One row for each key, in these columns or in all that the rows have; without retracts if the merge drops them.

    A batch without columns has no number of rows, so that at least one column must be requested.
    """
    names = groups.source.schema.names if columns is None else list(columns)
    same = {SEQUENCE_NUMBER, *(name for name, _ in spec.key), *spec.partition}
    asked = [name for name in names if name not in same and name != VALUE_KIND]
    folded = engine.fold(groups, asked)
    values = dict(zip(asked, folded.columns, strict=True))
    arrays = []
    for name in names:
        if name == VALUE_KIND:
            arrays.append(pa.array(np.zeros(len(groups), np.int8) if folded.kinds is None else folded.kinds))
        else:
            arrays.append(values[name] if name in values else groups.newest(name))
    schema = pa.schema([groups.source.schema.field(name) for name in names])
    batch = pa.RecordBatch.from_arrays(arrays, schema=schema)
    if folded.kinds is None or not spec.drop_deletes:
        return batch
    stays = folded.kinds & 1 == 0
    return batch if stays.all() else batch.filter(pa.array(stays))


def folded_batches(
    groups: Iterator[KeyGroups], engine: FoldEngine, spec: MergeSpec, columns: Sequence[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """The folded rows of groups that follow one another, in key order."""
    for part in groups:
        yield fold_groups(part, engine, spec, columns)
