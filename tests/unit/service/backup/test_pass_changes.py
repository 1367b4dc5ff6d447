"""A pass reads the manifests that are new, and mirrors whatever has happened since the one before."""

import random

import pytest

from lakelet.service.backup import backup_pass
from lakelet.service.backup.checksums import Checksums
from lakelet.service.backup.pass_changes import PassChanges
from lakelet.storage.memory import MemoryStore
from lakelet.testing.instrumented_stores import CountingStore
from tests.unit.service.backup.backed_up_lake import TABLE, BackedUpLake, events

MANY = {"manifest.merge-min-count": "1000", "write-only": "true", "bucket": "2", "bucket-key": "id"}
LAYOUTS = {
    "by day": {},
    "many manifests": {"options": {**MANY}},
    "key": {"primary_key": ["id"], "partitioned_by": [], "options": {"bucket": "1"}},
    "deletion vectors": {
        "primary_key": ["id"],
        "partitioned_by": [],
        "options": {"bucket": "1", "deletion-vectors.enabled": "true"},
    },
}


def manifest_reads(store: CountingStore, since: int) -> list[str]:
    """The manifests and lists that were read since a call."""
    return [path for call, path in store.log[since:] if call == "get" and "/manifest/" in path]


def test_a_pass_reads_new_manifests_alone() -> None:
    primary, copy = CountingStore(MemoryStore()), CountingStore(MemoryStore())
    lake = BackedUpLake(primary, copy)
    lake.create(options=MANY)
    reads, calls = [], []
    for number in range(24):
        lake.table.write(events(f"a{number}", day=number % 3))
        starts = len(primary.log), len(copy.log)
        lake.backups.trigger(TABLE)
        reads.append((len(manifest_reads(primary, starts[0])), len(manifest_reads(copy, starts[1]))))
        calls.append(len(primary.log) - starts[0] + len(copy.log) - starts[1])
    assert lake.mirrored() == lake.rows()
    # Two lists and a manifest of the source, which are read once more to be copied; two pairs of lists of the copy.
    assert set(reads[1:]) == {reads[1]}
    assert sum(reads[1]) <= 12
    # Checksums of earlier passes are read part by part, until they are joined.
    assert max(calls) <= calls[1] + 34


def test_checksums_of_files_that_are_gone_are_dropped_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backup_pass, "_FEW_FILES", 20)
    lake = BackedUpLake()
    lake.create()
    for number in range(40):
        lake.table.write(events(f"a{number}"), mode="overwrite")
        lake.backups.trigger(TABLE)
    assert len(Checksums(lake.mirror.table(TABLE).home)) < 100
    assert not lake.backups.verify(TABLE).problems
    assert lake.mirrored() == lake.rows()


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("seed", range(2))
def test_a_mirror_follows_whatever_happens(layout: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[PassChanges | None] = []
    changes_since = backup_pass.changes_since

    def noted(*arguments: object) -> PassChanges | None:
        found.append(changes_since(*arguments))  # type: ignore[arg-type]
        return found[-1]

    monkeypatch.setattr(backup_pass, "changes_since", noted)
    chance = random.Random(seed)
    lake = BackedUpLake()
    table = lake.create(**LAYOUTS[layout])
    table.write(events("a"))
    for step in range(15):
        for _ in range(chance.randint(1, 3)):
            _change(lake, chance, step)
        assert lake.backups.trigger(TABLE).source_snapshot == table.latest_snapshot().id  # type: ignore[union-attr]
        assert lake.mirrored() == lake.rows()
        assert not lake.backups.verify(TABLE).problems
    assert found[0] is None
    assert len(found) > 5
    assert None not in found[1:]
    rows = lake.rows()
    lake.wipe()
    lake.backups.recover(TABLE)
    assert lake.rows() == rows


def _change(lake: BackedUpLake, chance: random.Random, step: int) -> None:
    """Something that makes a snapshot: rows, deletions, compaction, a rollback, an overwrite."""
    table = lake.table
    match chance.randrange(8):
        case 0:
            table.delete(where=f"id = 'i{chance.randrange(10)}'")
        case 1:
            table.compact(full=True)
        case 2:
            ids = [snapshot.id for snapshot in table.snapshots()]
            table.rollback(chance.choice(ids[-3:]))
        case 3:
            table.write(events(f"o{step}", day=chance.randrange(3)), mode="overwrite")
        case _:
            ids = {f"i{chance.randrange(10)}" for _ in range(3)}
            table.write(events(*sorted(ids), day=chance.randrange(3), note=str(step)))
