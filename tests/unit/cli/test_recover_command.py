"""`lakelet recover` and `lakelet inspect wal`: what a killed writer left is shown and committed."""

from pathlib import Path

import pytest

from lakelet import Lake, connect
from lakelet.realtime.row_writer import RowWriter
from tests.unit.cli.conftest import Run
from tests.unit.realtime.written_table import kill

TABLE = "shop.events"


@pytest.fixture
def lake(warehouse: str) -> Lake:
    opened = connect(warehouse)
    opened.create_database("shop")
    return opened


@pytest.fixture
def logs(lake: Lake, tmp_path: Path) -> Path:
    table = lake.create_table(
        TABLE, [("id", "BIGINT NOT NULL"), ("v", "STRING")], primary_key=["id"], options={"bucket": "1"}
    )
    writer: RowWriter = table.writer(wal_folder=tmp_path)
    writer.put_many([{"id": 1, "v": "a"}, {"id": 2, "v": "b"}])
    writer.delete({"id": 1})
    kill(writer)
    return tmp_path


def test_recover_reports_then_commits_once(run: Run, lake: Lake, logs: Path) -> None:
    arguments = ("recover", TABLE, "--wal-folder", str(logs))
    totals, logged = run(*arguments, "--dry-run", "--json").objects
    assert (totals["title"], totals["logs"], totals["records"]) == (f"would recover {TABLE}", 1, 3)
    assert [log["outcome"] for log in logged["rows"]] == ["to commit"]
    assert lake.table(TABLE).latest_snapshot() is None
    totals, logged = run(*arguments, "--json").objects
    assert (totals["records"], totals["torn bytes"]) == (3, 0)
    assert [(log["outcome"], log["snapshot_id"]) for log in logged["rows"]] == [("committed", 1)]
    assert lake.table(TABLE).scan().to_arrow().to_pylist() == [{"id": 2, "v": "b"}]
    totals, logged = run(*arguments, "--json").objects
    assert (totals["records"], [log["outcome"] for log in logged["rows"]]) == (0, ["empty"])
    assert [snapshot.id for snapshot in lake.table(TABLE).snapshots()] == [1]


def test_recover_without_logs(run: Run, lake: Lake, logs: Path, tmp_path: Path) -> None:
    (shown,) = run("recover", TABLE, "--wal-folder", str(tmp_path / "none"), "--json").objects
    assert (shown["logs"], shown["records"]) == (0, 0)
    assert shown["folder"].startswith(str(tmp_path / "none"))
    assert not (tmp_path / "none").exists()


def test_inspect_shows_a_log_and_a_folder(run: Run, logs: Path) -> None:
    (folder,) = logs.iterdir()
    for path in (folder, folder / "wal-1.log"):
        header, records = run("inspect", "wal", str(path), "--json").objects
        assert (header["puts"], header["deletes"], header["torn bytes"], header["schema"]) == (2, 1, 0, 0)
        assert header["table"] == folder.name
        assert [(row["type"], row["key"]) for row in records["rows"]] == [
            ("GROUP", ""),
            ("PUT", "8000000000000001"),
            ("PUT", "8000000000000002"),
            ("DELETE", "8000000000000001"),
        ]
        assert (header["groups"], header["keys"]) == (1, 0)


def test_inspect_tells_damage_and_what_is_no_log(run: Run, logs: Path, tmp_path: Path) -> None:
    (folder,) = logs.iterdir()
    log = folder / "wal-1.log"
    data = bytearray(log.read_bytes())
    data[-1] ^= 1
    log.write_bytes(data)
    damaged = run("inspect", "wal", str(log))
    assert damaged.code != 0
    assert "the record at byte" in damaged.err
    for arguments in (("wal",), ("wal", str(log), "more"), ("wal", str(tmp_path / "none.log"))):
        assert run("inspect", *arguments).code != 0


def test_a_damaged_log_is_set_aside_when_asked_to(run: Run, lake: Lake, logs: Path) -> None:
    (folder,) = logs.iterdir()
    log = folder / "wal-1.log"
    data = bytearray(log.read_bytes())
    data[-1] ^= 1
    log.write_bytes(data)
    arguments = ("recover", TABLE, "--wal-folder", str(logs))
    refused = run(*arguments)
    assert refused.code != 0
    assert "--set-aside" in refused.err
    totals, logged = run(*arguments, "--set-aside", "--json").objects
    assert (totals["logs"], totals["records"]) == (1, 2)
    assert totals["damaged bytes"] > 0
    assert [row["outcome"] for row in logged["rows"]] == ["set aside"]
    assert (folder / "wal-1.log.damaged").read_bytes() == bytes(data)
    assert sorted(row["id"] for row in lake.table(TABLE).scan().to_arrow().to_pylist()) == [1, 2]
