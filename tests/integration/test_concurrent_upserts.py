"""Many processes upsert and delete the same keys at once: of every key the row of the latest commit is read, in every version."""

import uuid
from pathlib import Path

import pytest

import lakelet
from lakelet.storage.open import open_store
from tests.crash.warehouse import check
from tests.integration.upserting_processes import Upserted, race_for_keys
from tests.integration.writing_processes import TABLE, Address
from tests.services.server import S3Service

MODES: dict[str, dict[str, object]] = {
    "fixed": {"primary_key": ["id", "p"], "options": {"bucket": "2"}},
    "dynamic": {"primary_key": ["id", "p"], "options": {"dynamic-bucket.target-row-num": "2"}},
    "across": {"primary_key": ["id"], "options": {"dynamic-bucket.target-row-num": "2"}},
}
# All writers want the same buckets all the time: nobody may give up. Nothing is compacted: every snapshot is a writer's.
_PATIENT = {
    "commit.max-retries": "1000",
    "commit.min-retry-wait": "1 ms",
    "commit.max-retry-wait": "100 ms",
    "write-only": "true",
}


def new_table(address: Address, mode: str) -> Address:
    """An empty table in which keys lie as `mode` says."""
    lake = lakelet.connect(address.location, address.options)
    lake.create_database("d")
    arguments = {**MODES[mode], "options": {**MODES[mode]["options"], **_PATIENT}}  # type: ignore[dict-item]
    columns = [("id", "BIGINT"), ("p", "STRING"), ("worker", "BIGINT"), ("round", "BIGINT")]
    lake.create_table(TABLE, columns, partitioned_by=["p"], **arguments)  # type: ignore[arg-type]
    return address


def check_upserts(address: Address, done: list[Upserted], *, across: bool) -> None:
    """Every commit in its order applied to a dict gives every version.

    A delete by key takes out the rows that it found: of a key that had no row then and got one meanwhile, in a bucket that
    it does not touch, the row stays.
    """
    table = address.table()
    assert [one.snapshot for one in done] == [snapshot.id for snapshot in table.snapshots()]
    there: dict[object, tuple[int, str, int, int]] = {}
    for one in done:
        found = table.scan(version=one.snapshot).to_arrow()
        rows = sorted(zip(*(column.to_pylist() for column in found.columns), strict=True))
        gone = {there[key] for key in _keys(one.deleted, across=across) if key in there}
        if not one.rows:
            assert gone - set(rows), f"version {one.snapshot} deletes nothing"
            gone -= set(rows)
        there = {key: row for key, row in there.items() if row not in gone}
        for key, (number, partition) in zip(_keys(one.rows, across=across), one.rows, strict=True):
            there[key] = (number, partition, one.worker, one.round)
        assert rows == sorted(there.values()), f"version {one.snapshot}"
    assert check(open_store(address.location, address.options)) == sorted(there.values(), key=repr)


def _keys(rows: tuple[tuple[int, str], ...], *, across: bool) -> list[object]:
    return [row[0] if across else row for row in rows]


@pytest.mark.parametrize("mode", MODES)
def test_processes_upsert_the_same_keys_on_a_disk(tmp_path: Path, mode: str) -> None:
    address = new_table(Address(str(tmp_path)), mode)
    check_upserts(address, race_for_keys(address, 4, 8, across=mode == "across"), across=mode == "across")


@pytest.mark.deep
@pytest.mark.sampled(at_most=1)
@pytest.mark.parametrize("mode", MODES)
def test_processes_upsert_the_same_keys_on_minio(s3_minio: S3Service, mode: str) -> None:
    address = new_table(Address(s3_minio.url(f"race/{uuid.uuid4().hex}"), s3_minio.options), mode)
    check_upserts(address, race_for_keys(address, 3, 5, across=mode == "across"), across=mode == "across")


@pytest.mark.deep
def test_processes_upsert_the_same_keys_on_seaweedfs(s3_seaweedfs: S3Service) -> None:
    address = new_table(Address(s3_seaweedfs.url(f"race/{uuid.uuid4().hex}"), s3_seaweedfs.options), "dynamic")
    check_upserts(address, race_for_keys(address, 2, 4, across=False), across=False)
