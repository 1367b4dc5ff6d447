"""Rows to partitions and buckets, against a loop over the rows."""

import datetime as dt
import random
from collections import defaultdict
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lakelet.format.manifest.manifest_columns import EMPTY_ROW
from lakelet.format.rows.binary_row import decode_row, encode_row
from lakelet.format.rows.binary_row_columns import bucket_of, hash_rows
from lakelet.model.arrow.arrow_types import arrow_schema
from lakelet.model.schema import TableSchema, new_schema
from lakelet.model.type_parser import parse_type
from lakelet.model.types import Field
from lakelet.sink.bucket.router import Router

COLUMNS = [("id", "BIGINT"), ("s", "STRING"), ("d", "DATE"), ("n", "INT")]


def schema(partitions: list[str], buckets: int) -> TableSchema:
    fields = [Field(-1, name, parse_type(text)) for name, text in COLUMNS]
    keys = [name for name in ("id", "s") if name not in partitions]
    options = {"bucket": str(buckets), "bucket-key": ",".join(keys)} if buckets > 0 else {}
    return new_schema(fields, partition_keys=partitions, primary_keys=[], options=options, comment=None, time_ms=0)


def random_rows(count: int) -> list[dict[str, Any]]:
    chance = random.Random(count)
    days = [None, dt.date(1970, 1, 1), dt.date(2024, 1, 1)]
    texts = [None, "", "a", "longer than seven"]
    return [
        {
            "id": chance.choice([None, chance.randrange(-5, 5)]),
            "s": chance.choice(texts),
            "d": chance.choice(days),
            "n": index,
        }
        for index in range(count)
    ]


def naive(
    rows: list[dict[str, Any]], table: TableSchema, buckets: int
) -> dict[tuple[bytes, int], list[dict[str, Any]]]:
    parts = defaultdict(list)
    for row in rows:
        partition = (
            encode_row([row[key] for key in table.partition_keys], table.partition_types)
            if table.partition_keys
            else EMPTY_ROW
        )
        bucket = 0
        if buckets > 0:
            keys = [pa.array([row[key]], arrow_schema([table.field(key)]).field(0).type) for key in table.bucket_keys]
            bucket = int(bucket_of(hash_rows(keys, [table.field(key).type for key in table.bucket_keys]), buckets)[0])
        parts[partition, bucket].append(row)
    return parts


@pytest.mark.parametrize("buckets", [-1, 1, 5])
@pytest.mark.parametrize("partitions", [[], ["s"], ["d", "s"], ["n"]])
@pytest.mark.parametrize("count", [0, 1, 2, 200])
def test_each_row_goes_where_a_loop_would_send_it(partitions: list[str], buckets: int, count: int) -> None:
    table, rows = schema(partitions, buckets), random_rows(count)
    batch = pa.RecordBatch.from_pylist(rows, schema=arrow_schema(table.fields))
    router = Router(table)
    routed = list(router.route(batch))
    found = {(part.partition, part.bucket): part.rows.to_pylist() for part in routed}
    assert len(found) == len(routed)
    assert found == naive(rows, table, buckets)
    assert router.total_buckets == buckets


def test_a_slice_of_a_batch_is_routed_by_its_own_rows() -> None:
    table, rows = schema(["s"], 3), random_rows(50)
    batch = pa.RecordBatch.from_pylist(rows, schema=arrow_schema(table.fields)).slice(10, 20)
    found = {(part.partition, part.bucket): part.rows.to_pylist() for part in Router(table).route(batch)}
    assert found == naive(rows[10:30], table, 3)


def test_many_distinct_values_in_many_partition_keys_do_not_overflow() -> None:
    rows, keys = 10_000, [f"k{number}" for number in range(5)]
    fields = [(name, "BIGINT") for name in (*keys, "x")]
    schema = new_schema(
        [Field(-1, name, parse_type(text)) for name, text in fields],
        partition_keys=keys,
        primary_keys=(),
        options={},
        comment=None,
        time_ms=0,
    )
    numbers = np.arange(rows)
    batch = pa.record_batch({name: pa.array(numbers) for name in (*keys, "x")})
    types = [parse_type("BIGINT")] * len(keys)
    for routed in Router(schema).route(batch):
        value = routed.rows.column("x")[0].as_py()
        assert routed.rows.num_rows == 1
        assert decode_row(routed.partition, types) == (value,) * len(keys)
