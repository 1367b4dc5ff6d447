"""Schemas and batches of primary-key tables for the tests of this package."""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from lakelet.model.arrow.arrow_types import arrow_schema
from lakelet.model.schema import TableSchema, new_schema
from lakelet.model.type_parser import parse_type
from lakelet.model.types import Field

COLUMNS = (("k", "BIGINT"), ("s", "STRING"), ("p", "INT"), ("v", "INT"))


def keyed_schema(
    primary_keys: Sequence[str] = ("k",),
    partition_keys: Sequence[str] = (),
    options: Mapping[str, str] | None = None,
    columns: Sequence[tuple[str, str]] = COLUMNS,
) -> TableSchema:
    return new_schema(
        [Field(-1, name, parse_type(text)) for name, text in columns],
        partition_keys=partition_keys,
        primary_keys=primary_keys,
        options=options or {},
        comment=None,
        time_ms=0,
    )


def batch_of(schema: TableSchema, rows: Sequence[Mapping[str, Any]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([dict(row) for row in rows], schema=arrow_schema(schema.fields))
