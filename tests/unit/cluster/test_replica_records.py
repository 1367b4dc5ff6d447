"""Which copy of a table's logs counts: the newest generation, and of two that are begun at a time one."""

from __future__ import annotations

import pytest

from lakelet.cluster.replica_records import ADOPTED, ADOPTING, ReplicaRecord, ReplicaRecords
from lakelet.errors import CorruptionError, UnavailableError
from lakelet.storage.memory import MemoryStore


def record(generation: int, holder: str = "p", **more: str) -> ReplicaRecord:
    return ReplicaRecord("n1", "t", generation, holder, f"{generation}-{holder}", "d.t", **more)


@pytest.fixture
def records() -> ReplicaRecords:
    return ReplicaRecords(MemoryStore())


def test_the_newest_generation_counts(records: ReplicaRecords) -> None:
    assert records.newest("n1", "t") is None
    assert records.claim(record(9))
    assert records.claim(record(10, "q"))
    assert records.newest("n1", "t") == record(10, "q")
    records.delete_before(record(10, "q"))
    assert records.newest("n1", "t") == record(10, "q")
    assert records.of_origin("n1") == [record(10, "q")]
    records.delete("n1", "t")
    assert records.newest("n1", "t") is None


def test_of_two_that_claim_a_generation_one_gets_it(records: ReplicaRecords) -> None:
    assert records.claim(record(1))
    # Its own, once more: the store had not said so.
    assert records.claim(record(1))
    assert not records.claim(record(1, "q"))


def test_a_generation_that_was_deleted_is_not_created_once_more(records: ReplicaRecords) -> None:
    records.claim(record(1))
    records.claim(record(5, "q"))
    records.delete_before(record(5, "q"))
    assert not records.claim(record(2))
    assert records.newest("n1", "t") == record(5, "q")


def test_a_copy_is_adopted_if_it_counts_and_once_more_after_a_crash(records: ReplicaRecords) -> None:
    records.claim(record(1))
    assert records.adopt("n1", "t", "another") is None
    claimed = records.adopt("n1", "t", "1-p")
    assert claimed is not None
    assert (claimed.generation, claimed.state) == (2, ADOPTING)
    assert records.adopt("n1", "t", "1-p") == claimed
    assert not records.is_over("n1")
    records.end_adoption(claimed)
    found = records.newest("n1", "t")
    assert found is not None
    assert found.state == ADOPTED
    assert records.is_over("n1")
    # A node that was alive all the same goes on.
    assert records.claim(record(3, "q"))
    assert not records.is_over("n1")
    records.forget("n1")
    assert records.of_origin("n1") == []


def test_a_node_that_goes_on_and_one_that_adopts_exclude_each_other(records: ReplicaRecords) -> None:
    records.claim(record(1))
    assert records.claim(record(2, "q"))
    assert records.adopt("n1", "t", "1-p") is None


def test_an_unknown_outcome_is_told(records: ReplicaRecords, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object, **__: object) -> bool:
        raise UnavailableError("no answer")

    monkeypatch.setattr(records.store, "put_if_absent", unknown)
    with pytest.raises(UnavailableError):
        records.claim(record(1))


def test_what_is_no_record_is_told_with_its_path(records: ReplicaRecords) -> None:
    records.store.put("service/replicas/n1/t/000000000001.json", b"{}")
    with pytest.raises(CorruptionError, match="000000000001"):
        records.newest("n1", "t")
