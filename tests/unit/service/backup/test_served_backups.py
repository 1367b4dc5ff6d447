"""Backups of a running service over REST: after flushes, by hand, and after losing tables and stores."""

import asyncio
import shutil
from pathlib import Path
from typing import Any

import pytest

import lakelet
from lakelet.catalog.lake import Lake
from lakelet.errors import InvalidError, UnavailableError
from lakelet.service.access.access import Access
from lakelet.service.rest.app import RestApp
from lakelet.service.service import Service
from lakelet.service.settings import load_settings
from tests.unit.service.served_lake import ServedLake

PATIENCE_SECONDS = 60


class BackedUpService(ServedLake):
    """A service with a backup store beside its warehouse."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        super().__init__(folder, backup=str(folder / "backup"), **settings)
        self.is_down = False
        self.service = Service(self.lake, self.settings, open_backup=self._open)
        self.app = RestApp(self.service, Access(None))

    def _open(self) -> Lake:
        if self.is_down:
            raise UnavailableError("the backup store is down")
        assert self.settings.backup is not None
        return lakelet.connect(self.settings.backup)

    def settle(self) -> None:
        assert self.service.backups is not None
        assert self.service.backups.worker.settle(PATIENCE_SECONDS)

    def post(self, path: str, **body: Any) -> Any:
        answer = self.request("POST", path, json=body)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def flush(self, table: str) -> None:
        """As the service does it by size and time."""
        lane = self.service.ingest.lane(table)

        async def flush() -> None:
            self.service.ingest._flush(lane)
            while table in self.service.ingest._flushing:
                await asyncio.sleep(0.001)

        self.run(flush())


def backed_up(folder: Path, table: str) -> list[Any]:
    rows = lakelet.connect(str(folder / "backup")).table(f"default.{table}").scan().to_arrow().to_pylist()
    return sorted(row["payload"]["n"] for row in rows)


def test_flush_of_a_table_with_backups_is_copied(tmp_path: Path) -> None:
    with BackedUpService(tmp_path) as served:
        served.create("kept", backup_enabled=True)
        served.create("other")
        served.write("kept", {"n": 1})
        served.write("other", {"n": 1})
        served.flush("kept")
        served.flush("other")
        served.settle()
        assert backed_up(tmp_path, "kept") == [1]
        listed = served.request("GET", "/v1/backup").json()
        assert [(one["table"], one["record_count"], one["complete"]) for one in listed["backups"]] == [
            ("kept", 1, True)
        ]
        assert listed["total"] == 1
        # A deletion is copied like a flush.
        assert served.request("DELETE", "/v1/data/kept/a").json()["deleted"] == 1
        served.settle()
        assert backed_up(tmp_path, "kept") == []
        served.request("PATCH", "/v1/tables/other", json={"config": {"backup_enabled": True}})
        served.settle()
        assert backed_up(tmp_path, "other") == [1]
        assert "lakelet_backup_passes_total" in served.request("GET", "/metrics").text


def test_rows_that_were_committed_by_the_end_are_copied_by_the_next_start(tmp_path: Path) -> None:
    with BackedUpService(tmp_path) as served:
        served.create("t", backup_enabled=True)
        served.settle()
        served.write("t", {"n": 1})
    with BackedUpService(tmp_path) as served:
        served.settle()
        assert backed_up(tmp_path, "t") == [1]


def test_store_that_is_down_delays_nothing_but_the_copy(tmp_path: Path) -> None:
    served = BackedUpService(tmp_path)
    served.is_down = True
    with served:
        served.create("t", backup_enabled=True)
        served.write("t", {"n": 1})
        served.flush("t")
        assert served.payloads("t") == [{"n": 1}]
        health = served.run(served.service.health())
        assert health.is_ready
        assert served.request("POST", "/v1/backup/trigger", json={"table": "t"}).status_code == 503
        served.is_down = False
        served.settle()
        assert backed_up(tmp_path, "t") == [1]


def test_trigger_and_recover_by_hand(tmp_path: Path) -> None:
    with BackedUpService(tmp_path) as served:
        served.create("t", properties={"partitioning": "id-day"})
        for number, name in enumerate(("a", "b")):
            served.write("t", {"n": number}, id=name)
        # Rows that are still in memory are committed first.
        done = served.post("/v1/backup/trigger", table="t", id="a", day="2026-01-31")
        assert done == {"success": True, "message": "1 file of table 't' backed up", "files_backed_up": 1}
        assert backed_up(tmp_path, "t") == [0]
        assert served.post("/v1/backup/trigger", table="t")["files_backed_up"] == 1
        assert served.request("GET", "/v1/backup/t/verify").json()["problems"] == []
        lost = next((tmp_path / "warehouse").rglob("bucket-*/*.parquet"))
        lost.unlink()
        assert served.post("/v1/backup/recover", table="t") == {
            "success": True,
            "message": "1 file of table 't' restored",
            "files_recovered": 1,
        }
        assert served.payloads("t", "a") + served.payloads("t", "b") == [{"n": 0}, {"n": 1}]


def test_table_that_is_gone_is_served_again_after_its_recovery(tmp_path: Path) -> None:
    with BackedUpService(tmp_path) as served:
        served.create("t", backup_enabled=True, buffer_size=77)
        served.write("t", {"n": 1})
        served.flush("t")
        served.settle()
    shutil.rmtree(tmp_path / "warehouse")
    with BackedUpService(tmp_path) as served:
        assert served.request("GET", "/v1/tables/t").status_code == 404
        served.post("/v1/backup/recover", table="t")
        assert served.payloads("t") == [{"n": 1}]
        assert served.request("GET", "/v1/tables/t").json()["table_info"]["config"]["buffer_size"] == 77
        served.write("t", {"n": 2})
        served.flush("t")
        served.settle()
        assert backed_up(tmp_path, "t") == [1, 2]


@pytest.mark.parametrize("properties", [{}, {"primary_key": "id"}])
def test_log_of_a_crash_is_replayed_into_the_recovered_table_once(tmp_path: Path, properties: dict[str, str]) -> None:
    with BackedUpService(tmp_path) as served:
        served.create("t", backup_enabled=True, properties=properties)
        served.write("t", {"n": 1}, id="a")
        # A process that is killed between its commit and the removal of its log leaves the log as it is now.
        shutil.copytree(tmp_path / "wal", tmp_path / "left", ignore=shutil.ignore_patterns("backup-queue"))
        served.flush("t")
        served.settle()
        assert backed_up(tmp_path, "t") == [1]
    shutil.rmtree(tmp_path / "warehouse")
    shutil.rmtree(tmp_path / "wal")
    shutil.move(tmp_path / "left", tmp_path / "wal")
    with BackedUpService(tmp_path) as served:
        served.post("/v1/backup/recover", table="t")
        assert served.payloads("t") == [{"n": 1}]
        served.write("t", {"n": 2}, id="b")
        assert served.payloads("t", "b") == [{"n": 2}]
    assert sorted(row["payload"]["n"] for row in served.lake.table("default.t").scan().to_arrow().to_pylist()) == [1, 2]


def test_log_with_rows_that_no_backup_has_is_committed_by_the_recovery(tmp_path: Path) -> None:
    with BackedUpService(tmp_path) as served:
        served.create("t", backup_enabled=True)
        served.write("t", {"n": 1}, id="a")
        served.flush("t")
        served.settle()
        served.write("t", {"n": 2}, id="b")
        shutil.copytree(tmp_path / "wal", tmp_path / "left", ignore=shutil.ignore_patterns("backup-queue"))
    shutil.rmtree(tmp_path / "warehouse")
    shutil.rmtree(tmp_path / "wal")
    shutil.move(tmp_path / "left", tmp_path / "wal")
    with BackedUpService(tmp_path) as served:
        served.post("/v1/backup/recover", table="t")
        assert served.payloads("t", "a") + served.payloads("t", "b") == [{"n": 1}, {"n": 2}]


def test_recovery_that_died_is_finished_by_the_next_start(tmp_path: Path) -> None:
    with BackedUpService(tmp_path) as served:
        served.create("t", backup_enabled=True)
        served.write("t", {"n": 1})
        served.flush("t")
        served.settle()
    shutil.rmtree(tmp_path / "warehouse")
    mark = tmp_path / "warehouse" / "default.db" / "t" / "restoring" / "RESTORING"
    mark.parent.mkdir(parents=True)
    mark.write_bytes(b"{}")
    with BackedUpService(tmp_path) as served:
        assert served.payloads("t") == [{"n": 1}]
    assert not mark.exists()


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"table": "nothing"}, 404),
        ({"table": "t", "day": "31.1.2026"}, 400),
        ({"table": "t", "more": 1}, 400),
        ({}, 400),
    ],
)
def test_bad_requests_are_refused(tmp_path: Path, body: dict[str, Any], status: int) -> None:
    with BackedUpService(tmp_path) as served:
        served.create("t")
        served.write("t", {"n": 1})
        assert served.request("POST", "/v1/backup/trigger", json=body).status_code == status


def test_service_without_a_backup_store_says_so(tmp_path: Path) -> None:
    with ServedLake(tmp_path) as served:
        served.create("t")
        for answer in (
            served.request("POST", "/v1/backup/trigger", json={"table": "t"}),
            served.request("POST", "/v1/backup/recover", json={"table": "t"}),
            served.request("GET", "/v1/backup"),
        ):
            assert answer.status_code == 400
            assert "--backup" in answer.json()["detail"]


@pytest.mark.parametrize("backup", ["{}/lake", "{}/lake/", "{}/other/../lake"])
def test_backup_in_the_warehouse_is_refused_at_the_start(tmp_path: Path, backup: str) -> None:
    given = {"warehouse": f"{tmp_path}/lake", "backup": backup.format(tmp_path)}
    with pytest.raises(InvalidError, match="another place"):
        load_settings(given, {})
    assert load_settings({**given, "backup": f"{tmp_path}/backup"}, {}).backup == f"{tmp_path}/backup"


def test_a_table_that_was_left_out_is_recovered_while_others_are_served(tmp_path: Path) -> None:
    with BackedUpService(tmp_path) as served:
        served.create("kept", backup_enabled=True)
        served.write("kept", {"n": 1})
        served.flush("kept")
        served.settle()
    for schema in (tmp_path / "warehouse" / "default.db" / "kept" / "schema").iterdir():
        schema.write_text("{ broken")
    with BackedUpService(tmp_path) as served:
        assert served.request("GET", "/v1/tables/kept").status_code == 503
        queried = served.request("POST", "/v1/query", json={"sql": "SELECT * FROM kept"})
        assert (queried.status_code, queried.json()["code"]) == (503, "unavailable")
        listed = served.request("POST", "/v1/query", json={"sql": "SELECT column_name FROM information_schema.columns"})
        assert listed.json()["result_json"] == "[]"
        served.post("/v1/backup/recover", table="kept")
        assert served.payloads("kept", "a") == [{"n": 1}]
        assert served.request("GET", "/v1/health").json()["details"].keys() & {"table.kept"} == set()
