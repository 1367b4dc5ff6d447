"""Writers, compactors, readers and expiry at once on one table: nothing is lost or duplicated, and no short read fails."""

from pathlib import Path

import pytest

import lakelet
from tests.integration.upkeep_processes import rows_of, run_together
from tests.integration.writing_processes import TABLE, Address

SECONDS = 12.0
SHORT_SECONDS = 5.0
WRITERS = 2
KINDS: dict[str, dict[str, str]] = {
    "merged": {"bucket": "2"},
    "write-only": {"bucket": "2", "write-only": "true"},
    # Buckets of such tables show one by one what a write put into them.
    "vectors": {"bucket": "1", "deletion-vectors.enabled": "true"},
}
_PATIENT = {"commit.max-retries": "1000", "commit.min-retry-wait": "1 ms", "commit.max-retry-wait": "100 ms"}


def race(folder: Path, kind: str, seconds: float, writers: int = WRITERS) -> None:
    """Runs all of them for a while, and looks at what they left."""
    address = Address(str(folder))
    lake = lakelet.connect(address.location)
    lake.create_database("d")
    columns = [("id", "BIGINT"), ("worker", "BIGINT"), ("round", "BIGINT")]
    options = {"num-sorted-run.compaction-trigger": "3", **KINDS[kind], **_PATIENT}
    table = lake.create_table(TABLE, columns, primary_key=["id"], options=options)
    done = run_together(address, writers, seconds)
    expected = [
        (key, one.worker, turn) for one in done if one.role == "write" for key, turn in rows_of(one.worker, one.last)
    ]
    for full in (False, True):
        found = table.scan().to_arrow().to_pylist()
        assert sorted(tuple(row.values()) for row in found) == sorted(expected)
        table.compact(full=full)
    kinds = [snapshot.commit_kind.value for snapshot in table.snapshots()]
    assert "COMPACT" in kinds
    for snapshot in table.snapshots():
        table.scan(version=snapshot.id).to_arrow()
    assert all(one.times > 1 for one in done), done
    assert max(one.last for one in done if one.role == "write") > 2


@pytest.mark.sampled(at_most=1)
@pytest.mark.parametrize("kind", KINDS)
def test_all_at_once_on_a_disk(tmp_path: Path, kind: str) -> None:
    race(tmp_path, kind, SHORT_SECONDS)


@pytest.mark.deep
@pytest.mark.parametrize("kind", KINDS)
def test_all_at_once_for_longer(tmp_path: Path, kind: str) -> None:
    race(tmp_path, kind, SECONDS)
