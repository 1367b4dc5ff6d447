"""Maintenance of served tables: expired days, compaction, snapshots."""

import time
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pytest

from lakelet.cluster.embedded.turns import EmbeddedTurns
from lakelet.cluster.turn import NotNow, Turn
from lakelet.service.tables.compaction_worker import CompactionWorker
from lakelet.service.tables.duties import Maintained
from tests.unit.service.served_lake import ServedLake

LATE = "2126-01-31T10:00:00Z"
BY_DATE = {"partition.expiration-strategy": "values-time"}
KEPT, GONE = [{"n": 2}], [{"n": 1}]


def test_expired_days_of_an_idle_table_are_dropped(tmp_path: Path) -> None:
    with ServedLake(tmp_path) as served:
        served.create("t", properties=BY_DATE)
        served.create("by_key", properties={"primary_key": "id"}, retention_days=30)
        for table in ("t", "by_key"):
            served.write(table, {"n": 1}, id="old", timestamp="2020-01-31T10:00:00Z")
            served.write(table, {"n": 2}, id="new", timestamp=LATE)
            served.flush(table)
        assert served.run(served.service.maintenance.sweep()).days == 0
        served.request("PATCH", "/v1/tables/t", json={"config": {"retention_days": 30}})
        assert served.payloads("t", "old") == GONE
        assert served.run(served.service.maintenance.sweep()).days == 1
        assert (served.payloads("t", "old"), served.payloads("t", "new")) == ([], KEPT)
        assert served.run(served.service.maintenance.sweep()).days == 0


def test_start_drops_days_that_expired_meanwhile(tmp_path: Path) -> None:
    with ServedLake(tmp_path) as served:
        served.create("t", properties=BY_DATE)
        served.write("t", {"n": 1}, id="old", timestamp="2020-01-31T10:00:00Z")
        served.flush("t")
        served.request("PATCH", "/v1/tables/t", json={"config": {"retention_days": 30}})
    with ServedLake(tmp_path) as served:
        end = time.monotonic() + 900
        while served.payloads("t", "old") and time.monotonic() < end:
            pass
        assert served.payloads("t", "old") == []
        # A table whose files cannot be read keeps nobody from the others.
        served.lake.drop_table("default.t")
        assert served.run(served.service.maintenance.sweep()).days == 0


def test_a_day_that_was_written_to_is_kept_whatever_its_date(tmp_path: Path) -> None:
    with ServedLake(tmp_path) as served:
        served.create("t", retention_days=30)
        served.write("t", {"n": 1}, id="old", timestamp="2020-01-31T10:00:00Z")
        served.flush("t")
        assert served.run(served.service.maintenance.sweep()).days == 0
        assert served.payloads("t", "old") == GONE
        served.lake.table("default.t").expire_partitions(older_than=timedelta(0))
        assert served.payloads("t", "old") == []


def test_small_files_of_a_table_that_commits_leave_alone_are_compacted(tmp_path: Path) -> None:
    with ServedLake(tmp_path) as served:
        served.create("t", properties={"write-only": "true", "bucket": "-1"})
        for number in range(6):
            served.write("t", {"n": number})
            served.flush("t")
        table = served.lake.table("default.t")
        assert len(table.files()) == 6
        done = served.run(served.service.maintenance.sweep(when_due=True))
        assert (done.compactions, done.failures) == (1, 0)
        assert len(table.files()) == 1
        assert sorted(row["n"] for row in served.payloads("t", "a")) == list(range(6))
        # Not due again, but done where it is asked for.
        assert served.run(served.service.maintenance.sweep(when_due=True)) == Maintained()
        served.write("t", {"n": 6})
        served.flush("t")
        assert served.run(served.service.maintenance.sweep()).failures == 0
        metrics = served.request("GET", "/metrics").text
        assert "\nlakelet_compactions_total 1\n" in metrics


def test_a_table_is_left_to_the_node_whose_turn_it_is(tmp_path: Path) -> None:
    with ServedLake(tmp_path) as served:
        served.create("t", properties={"write-only": "true", "bucket": "-1"})
        for number in range(6):
            served.write("t", {"n": number})
            served.flush("t")
        maintenance = served.service.maintenance
        turn = served.run(maintenance.turns.begin("maintenance:t"))
        assert served.run(maintenance.sweep()) == Maintained()
        served.run(maintenance.turns.end(turn))
        # A turn that is lost while its work runs ends without a commit, and leaves the work due.
        lost = LostTurns()
        maintenance.turns = lost
        assert served.run(maintenance.sweep()) == Maintained()
        assert lost.ended == [0.0]
        assert len(served.lake.table("default.t").files()) == 6


class LostTurns(EmbeddedTurns):
    """Turns that are lost as soon as they begin."""

    def __init__(self) -> None:
        super().__init__()
        self.ended: list[float] = []

    async def begin(self, name: str, *, when_due: bool = True) -> Turn | NotNow:
        found = await super().begin(name, when_due=when_due)
        assert isinstance(found, Turn)
        found.lost.set()
        return found

    async def end(self, turn: Turn, *, due_in_seconds: float = 0.0) -> None:
        self.ended.append(due_in_seconds)
        await super().end(turn, due_in_seconds=due_in_seconds)


class ListQueue:
    """A queue in memory, which may refuse tasks."""

    def __init__(self, *, takes: bool) -> None:
        self.tasks: list[bytes] = []
        self._takes = takes

    async def offer(self, tasks: Sequence[bytes], seconds: float) -> bool:
        assert seconds > 0
        if self._takes:
            self.tasks += tasks
        return self._takes

    async def take(self) -> bytes | None:
        return self.tasks.pop(0) if self.tasks else None


@pytest.mark.parametrize("takes", [True, False])
def test_several_tasks_are_given_to_all_nodes(tmp_path: Path, takes: bool) -> None:
    with ServedLake(tmp_path) as served:
        served.create("t", properties={"write-only": "true", "partitioning": "id-day"})
        for number in range(12):
            served.write("t", {"n": number}, id=f"i{number % 2}")
            served.flush("t")
        queue = ListQueue(takes=takes)
        served.service.maintenance.queue = queue
        done = served.run(served.service.maintenance.sweep())
        assert (done.compactions, done.failures, len(queue.tasks)) == ((0, 0, 2) if takes else (1, 0, 0))
        told: list[Maintained] = []
        worker = CompactionWorker(served.lake, served.service.threads, queue, told.append)
        queue.tasks += [b"", b"\0\0\0\1"] if takes else []
        expected = Maintained(compactions=2, failures=2) if takes else Maintained()
        assert served.run(worker.work()) == expected
        assert sum(told, Maintained()) == expected
        assert len(served.lake.table("default.t").files()) == 2
        assert sorted(row["n"] for row in served.payloads("t", "i1")) == [1, 3, 5, 7, 9, 11]
