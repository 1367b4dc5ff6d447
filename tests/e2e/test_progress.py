"""Progress of long operations at a terminal."""

from pathlib import Path

import pytest

from lakelet import connect
from tests.e2e.terminal import Terminal


def shown(tmp_path: Path, *arguments: str) -> str:
    terminal = Terminal(tmp_path / "state", *arguments, "--warehouse", str(tmp_path / "warehouse"))
    try:
        assert terminal.finish() == 0, terminal.seen
        return terminal.seen
    finally:
        terminal.close()


@pytest.fixture
def table(tmp_path: Path) -> str:
    lake = connect(str(tmp_path / "warehouse"))
    lake.create_database("shop")
    table = lake.create_table("shop.rows", [("id", "BIGINT NOT NULL")], primary_key=["id"], options={"bucket": "1"})
    for _ in range(2):
        table.write([{"id": number} for number in range(100)])
    return table.name


def test_bars_and_spinners(tmp_path: Path, table: str) -> None:
    file = str(tmp_path / "rows.csv")
    assert "exporting" in shown(tmp_path, "export", table, file)
    assert "importing" in shown(tmp_path, "import", table, file)
    assert "compacting" in shown(tmp_path, "compact", table, "--full")
    assert "looking for old snapshots" in shown(tmp_path, "expire", table)
    assert "looking for files" in shown(tmp_path, "orphans", table)


def test_programs_see_none(tmp_path: Path, table: str) -> None:
    assert shown(tmp_path, "compact", table, "--full", "--json").count("\n") == 1
