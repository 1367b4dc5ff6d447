"""A compaction in the background gives back what Arrow keeps of it, in the thread that ran it, also where it fails."""

import threading
from pathlib import Path

import pytest

import lakelet
from lakelet.compact.compaction import Compaction
from lakelet.errors import UnavailableError
from lakelet.spark.opened_table import open_table
from lakelet.spark.stream.write import background_compaction
from lakelet.spark.stream.write.background_compaction import compact_later, compaction_failures, wait_for_compactions


@pytest.mark.parametrize("fails", [False, True])
def test_memory_is_given_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: bool) -> None:
    def fail(_: Compaction) -> None:
        raise UnavailableError("the store is away")

    given: list[str] = []
    monkeypatch.setattr(background_compaction, "give_back", lambda: given.append(threading.current_thread().name))
    if fails:
        monkeypatch.setattr(Compaction, "run", fail)
    lake = lakelet.connect(str(tmp_path))
    lake.create_database("shop")
    table = lake.create_table("shop.orders", [("id", "BIGINT")], options={"write-only": "false"})
    for number in range(3):
        table.write([{"id": number}])
    compact_later(open_table(tmp_path, "shop.orders"))
    wait_for_compactions(60)
    assert len(given) == 1
    assert given[0].startswith("lakelet-compaction")
    assert ("the store is away" in str(compaction_failures())) is fails
    monkeypatch.undo()
    compact_later(open_table(tmp_path, "shop.orders"))
    wait_for_compactions(60)
    assert table.scan().count() == 3
