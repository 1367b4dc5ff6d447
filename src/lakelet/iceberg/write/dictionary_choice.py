"""Choose the columns to dictionary-encode: not those whose values hardly repeat, where it costs time and makes files larger.

It is decided once for a task, by a sample of rows that go to one file. Where it is wrong, files are somewhat larger or slower to
write, and as good to read.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.types import BooleanType, UUIDType

from lakelet.iceberg.schema.file_schema import LeafColumn

SAMPLE_ROWS = 1 << 16
_FEWEST_ROWS = 64
_DISTINCT_SHARE = 0.8


def dictionary_columns(leaves: Sequence[LeafColumn], sample: pa.RecordBatch) -> list[str]:
    """The paths, in the file, of the columns that get a dictionary; members of structs and lists always do."""
    return [leaf.parquet_path for leaf in leaves if leaf.nested or _repeats(leaf, sample.column(leaf.place[0]))]


def _repeats(leaf: LeafColumn, values: pa.Array) -> bool:
    if isinstance(leaf.type, UUIDType | BooleanType):
        return False
    if len(values) < _FEWEST_ROWS:
        return True
    present = len(values) - values.null_count
    return bool(pc.count_distinct(values, mode="only_valid").as_py() <= present * _DISTINCT_SHARE)
