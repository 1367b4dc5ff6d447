"""`lakelet backup`: copies in a second store by the command line, with its exit codes."""

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pytest

import lakelet
from lakelet.cli.main import main
from tests.unit.service.backup.backed_up_lake import BY_DAY, COLUMNS, events


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    lake = lakelet.connect(tmp_path / "warehouse")
    lake.create_database("default")
    table = lake.create_table("default.events", COLUMNS, **BY_DAY)  # type: ignore[arg-type]
    table.write(pa.concat_tables([events("a", "b"), events("c", day=1)]))
    return tmp_path / "warehouse"


def run(warehouse: Path, *arguments: str) -> int:
    return main(["backup", *arguments, "-w", str(warehouse), "--backup", str(warehouse.parent / "backup"), "--json"])


def ids(place: Path) -> list[str]:
    return sorted(lakelet.connect(place).table("default.events").scan(["id"]).to_arrow().column("id").to_pylist())


def test_table_goes_to_the_backup_and_back(warehouse: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(warehouse, "trigger", "events", "--day", "2026-01-02") == 0
    assert ids(warehouse.parent / "backup") == ["c"]
    assert run(warehouse, "trigger", "default.events") == 0
    assert ids(warehouse.parent / "backup") == ["a", "b", "c"]
    capsys.readouterr()
    assert run(warehouse, "list") == 0
    (listed,) = json.loads(capsys.readouterr().out)["rows"]
    assert (listed["table"], listed["records"], listed["complete"]) == ("default.events", 3, True)
    assert run(warehouse, "verify", "events") == 0
    shutil.rmtree(warehouse / "default.db" / "events")
    assert run(warehouse, "recover", "events") == 0
    assert ids(warehouse) == ["a", "b", "c"]


def test_damage_ends_with_an_exit_code(warehouse: Path) -> None:
    assert run(warehouse, "recover", "events") != 0
    assert run(warehouse, "trigger", "events") == 0
    copy = next((warehouse.parent / "backup").rglob("bucket-*/*.parquet"))
    copy.write_bytes(bytes(copy.stat().st_size))
    assert run(warehouse, "verify", "events") == 1
    (warehouse / copy.relative_to(warehouse.parent / "backup")).unlink()
    assert run(warehouse, "recover", "events") == 1
    assert run(warehouse, "trigger", "nothing") != 0
    assert run(warehouse, "trigger", "events", "--day", "soon") != 0
