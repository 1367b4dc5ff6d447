"""The bucket of rows in each bucket mode, against one row at a time."""

import pyarrow as pa
import pytest

from lakelet.errors import InternalError
from lakelet.format.manifest.manifest_columns import EMPTY_ROW
from lakelet.format.rows.binary_row import encode_row
from lakelet.format.rows.binary_row_columns import bucket_of, hash_rows
from lakelet.format.rows.murmur import murmur3_32
from lakelet.model.schema import TableSchema
from lakelet.sink.bucket import extractors
from lakelet.sink.bucket.extractors import (
    AppendTableRowKeyExtractor,
    DynamicBucketRowKeyExtractor,
    FixedBucketRowKeyExtractor,
    KeyAndBucketExtractor,
    PostponeBucketRowKeyExtractor,
    RowPartitionAllPrimaryKeyExtractor,
    extractor_for,
)
from tests.unit.sink.keyed_tables import batch_of, keyed_schema

ROWS = [
    {"k": 1, "s": "a", "p": 1, "v": 1},
    {"k": 2, "s": "longer than seven", "p": None, "v": 2},
    {"k": -1, "s": "", "p": 1, "v": None},
    {"k": 1, "s": "a", "p": 2, "v": 4},
]


def fixed(**options: str) -> TableSchema:
    return keyed_schema(("k", "s"), (), {"bucket": "5", **options})


@pytest.mark.parametrize(
    ("schema", "kind", "total"),
    [
        (fixed(), FixedBucketRowKeyExtractor, 5),
        (keyed_schema(("p", "k"), ("p",)), DynamicBucketRowKeyExtractor, -1),
        (keyed_schema(("k",), ("p",)), RowPartitionAllPrimaryKeyExtractor, -1),
        (keyed_schema((), ("p",)), AppendTableRowKeyExtractor, -1),
    ],
)
def test_each_mode_has_its_extractor(schema: TableSchema, kind: type, total: int) -> None:
    found: KeyAndBucketExtractor = extractor_for(schema)
    assert type(found) is kind
    assert found.total_buckets == total


def test_partitions_are_distinct_rows_and_codes_lead_to_them() -> None:
    schema = keyed_schema(("p", "k"), ("p",), {"bucket": "3"})
    rows = [row for row in ROWS if row["p"] is not None]
    found = extractor_for(schema).extract(batch_of(schema, rows))
    expected = [encode_row([row["p"]], schema.partition_types) for row in rows]
    assert [found.partitions[code] for code in found.partition_codes] == expected
    assert len(set(found.partitions)) == len(found.partitions) == 2


def test_a_table_without_partitions_has_one() -> None:
    found = extractor_for(fixed()).extract(batch_of(fixed(), ROWS))
    assert found.partitions == (EMPTY_ROW,)
    assert found.partition_codes.tolist() == [0] * len(ROWS)


def test_the_primary_key_is_trimmed_of_partition_columns_unless_rows_cross_them() -> None:
    rows = [row for row in ROWS if row["p"] is not None]
    trimmed = keyed_schema(("p", "k"), ("p",))
    whole = keyed_schema(("p", "k"), ("p", "s"))
    for schema, columns in ((trimmed, ["k"]), (whole, ["p", "k"])):
        types = [schema.field(name).type for name in columns]
        expected = [encode_row([row[name] for name in columns], types) for row in rows]
        found = extractor_for(schema).extract(batch_of(schema, rows))
        assert found.primary_keys.to_pylist() == expected
        assert found.key_hashes.tolist() == [murmur3_32(key[4:]) for key in expected]


def test_fixed_buckets_come_from_the_bucket_key() -> None:
    schema = fixed(**{"bucket-key": "s"})
    batch = batch_of(schema, ROWS)
    expected = bucket_of(hash_rows([batch.column("s")], [schema.field("s").type]), 5)
    found = extractor_for(schema).extract(batch)
    assert found.buckets is not None
    assert found.buckets.tolist() == expected.tolist()


def test_a_key_that_is_the_bucket_key_is_hashed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def counting(columns: list[pa.Array], types: list[object]) -> object:
        calls.append(len(columns))
        return hash_rows(columns, types)  # type: ignore[arg-type]

    monkeypatch.setattr(extractors, "hash_rows", counting)
    found = extractor_for(fixed()).extract(batch_of(fixed(), ROWS))
    first = found.key_hashes
    assert found.key_hashes is first
    assert found.primary_keys is found.primary_keys
    assert calls == [2]


def test_postponed_rows_wait_in_a_bucket_of_their_own_and_append_tables_have_one() -> None:
    append = keyed_schema(())
    found = extractor_for(append).extract(batch_of(append, ROWS))
    assert found.buckets is not None
    assert found.buckets.tolist() == [0] * 4
    with pytest.raises(InternalError, match="without a primary key"):
        _ = found.key_hashes
    postponed = PostponeBucketRowKeyExtractor(keyed_schema()).extract(batch_of(keyed_schema(), ROWS))
    assert postponed.buckets is not None
    assert postponed.buckets.tolist() == [-2] * 4


def test_assigned_rows_keep_what_was_found_out() -> None:
    schema = keyed_schema()
    found = extractor_for(schema).extract(batch_of(schema, ROWS))
    assert found.buckets is None
    hashes = found.key_hashes
    assigned = found.assigned(hashes * 0)
    assert assigned.key_hashes is hashes
    with pytest.raises(InternalError, match="1 buckets"):
        found.assigned(hashes[:1])
