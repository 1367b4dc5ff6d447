"""Helpers of tests of dynamic buckets: the bucket of each key, by its files and by the hash indexes."""

from collections.abc import Iterable, Mapping
from typing import Any

from lakelet import Table
from lakelet.commit.metadata.snapshots import latest_snapshot
from lakelet.format.manifest.manifest_columns import EMPTY_ROW
from lakelet.format.rows.binary_row_columns import hash_rows
from lakelet.sink.bucket.hash_indexes import HashIndexes

Rows = dict[Any, Any]


def rows_by_key(table: Table, key: str, values: Iterable[str]) -> Rows:
    """The rows of a table, each key once."""
    found = table.scan().to_arrow().to_pylist()
    by_key = {row[key]: tuple(row[name] for name in values) for row in found}
    assert len(by_key) == len(found), "a key is there twice"
    return by_key


def buckets_of_keys(table: Table, key: str) -> dict[int, int]:
    """The bucket of every key by the files of the newest version; a key in two is a mistake."""
    scan = table.scan()
    found: dict[int, int] = {}
    for split in scan.plan().splits:
        for batch in scan.read(split):
            for number in batch.column(key).to_pylist():
                assert found.setdefault(number, split.bucket) == split.bucket, f"key {number} is in two buckets"
    return found


def check_indexes(table: Table, key: str) -> dict[int, int]:
    """Every key of an unpartitioned table is named by the index of the bucket it is in, and by no other; how many keys each
    index names."""
    snapshot = latest_snapshot(table.home)
    assert snapshot is not None
    buckets = HashIndexes(table.home, snapshot).load(EMPTY_ROW).buckets
    by_hash: dict[int, int] = {}
    for bucket, hashes in buckets.items():
        for number in hashes.tolist():
            assert by_hash.setdefault(number, bucket) == bucket, f"hash {number} is in two indexes"
    keys = table.scan().to_arrow()
    field = table.schema.field(key)
    hashes = hash_rows([keys.column(key).combine_chunks()], [field.type])
    standing = buckets_of_keys(table, key)
    assert {
        number: by_hash[code] for number, code in zip(keys[key].to_pylist(), hashes.tolist(), strict=True)
    } == standing
    return {bucket: len(hashes) for bucket, hashes in buckets.items()}


def merged(model: Mapping[Any, Any], rows: Mapping[Any, Any]) -> Rows:
    """The rows after an upsert; None takes a key away."""
    after = {**model, **rows}
    return {key: row for key, row in after.items() if row is not None}
