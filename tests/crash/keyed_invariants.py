"""What every version of a primary-key table must keep, whatever happened to its writers.

No key has two rows. Index files that the snapshot names are there. With dynamic buckets a key hash stands in the index of
one bucket of its partition, and every row lies in the bucket whose index knows it.
"""

from collections.abc import Mapping

import pyarrow as pa

from lakelet.commit.index_changes import read_index_entries
from lakelet.format.index.hash_index import HASH_INDEX, decode_hash_index
from lakelet.format.rows.binary_row_columns import encode_rows, hash_rows
from lakelet.model.bucket_mode import BucketMode, bucket_mode
from lakelet.model.snapshot import Snapshot
from lakelet.storage.home import TableHome
from lakelet.table.read.table_scan import TableScan


def check_index_files(home: TableHome, snapshot: Snapshot, there: Mapping[str, int]) -> None:
    """Every index file that the snapshot names exists in the size that it says."""
    for entry in read_index_entries(home, snapshot):
        path = home.paths.index(entry.file.name)
        assert path in there, f"snapshot {snapshot.id} names {path}, which is gone"
        assert there[path] == entry.file.size


def check_keys(scan: TableScan) -> None:
    """Every key of the version once, and in the bucket that the hash indexes say."""
    schema, snapshot = scan.schema, scan.snapshot
    if not schema.primary_keys or snapshot is None:
        return
    known = _hashes(scan.home, snapshot) if bucket_mode(schema) is BucketMode.HASH_DYNAMIC else None
    types = [schema.field(name).type for name in schema.primary_keys]
    seen: dict[bytes, tuple[bytes, int]] = {}
    for split in scan.plan().splits:
        place = (split.partition, split.bucket)
        rows = pa.Table.from_batches(scan.read(split), scan.arrow_schema).combine_chunks()
        if not rows.num_rows:
            continue
        keys = encode_rows([rows.column(name).chunk(0) for name in schema.primary_keys], types).to_pylist()
        for key in keys:
            assert key not in seen, f"version {snapshot.id}: one key lies in {seen[key]} and {place}"
            seen[key] = place
        if known is not None:
            trimmed = schema.trimmed_key_fields
            hashes = hash_rows([rows.column(field.name).chunk(0) for field in trimmed], [f.type for f in trimmed])
            assert set(hashes.tolist()) <= known.get(place, set()), f"version {snapshot.id}: {place} lacks keys"


def _hashes(home: TableHome, snapshot: Snapshot) -> dict[tuple[bytes, int], set[int]]:
    found: dict[tuple[bytes, int], set[int]] = {}
    owner: dict[tuple[bytes, int], int] = {}
    for entry in read_index_entries(home, snapshot):
        if entry.file.index_type != HASH_INDEX:
            continue
        place, path = (entry.partition, entry.bucket), home.paths.index(entry.file.name)
        assert place not in found, f"version {snapshot.id}: two hash indexes of {place}"
        hashes = decode_hash_index(home.store.get(path), path=path, expected=entry.file.row_count).tolist()
        assert len(set(hashes)) == len(hashes)
        for number in hashes:
            first = owner.setdefault((entry.partition, number), entry.bucket)
            assert first == entry.bucket, f"version {snapshot.id}: a hash in the indexes of two buckets"
        found[place] = set(hashes)
    return found
