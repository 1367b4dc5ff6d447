"""The shell at a terminal."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from lakelet import connect
from tests.e2e.terminal import CTRL_C, CTRL_D, TAB, Terminal

PROMPT = "default>"


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    lake = connect(str(tmp_path / "warehouse"))
    lake.create_database("shop")
    lake.create_table("shop.orders", [("order_id", "BIGINT"), ("amount", "INT")]).write([{"order_id": 7, "amount": 5}])
    return tmp_path / "warehouse"


@pytest.fixture
def terminal(warehouse: Path, tmp_path: Path) -> Iterator[Terminal]:
    opened = Terminal(tmp_path / "state", "shell", "--warehouse", str(warehouse))
    opened.until(PROMPT)
    yield opened
    opened.close()


def test_statements_over_several_lines_timing_and_leaving(terminal: Terminal, tmp_path: Path) -> None:
    terminal.type("SELECT order_id + 100\r")
    terminal.type("AS x FROM shop.orders;\r")
    shown = terminal.until(" ms")
    assert "│ 107 │" in shown
    assert "1 row" in shown
    terminal.until(PROMPT)
    terminal.type("\\timing off\r")
    terminal.until("timing is off")
    terminal.until(PROMPT)
    terminal.type("USE shop;\r")
    terminal.until("shop>")
    terminal.type(CTRL_D)
    assert terminal.finish() == 0
    history = (tmp_path / "state" / "lakelet" / "history").read_text(encoding="utf-8")
    assert "+SELECT order_id + 100" in history
    assert (tmp_path / "state" / "lakelet" / "history").stat().st_mode & 0o077 == 0


def test_an_error_points_at_the_token(terminal: Terminal) -> None:
    terminal.type("SELECT 1; SELEC 2;\r")
    shown = terminal.until("^")
    assert "line 1, column 11" in shown
    terminal.until(PROMPT)


def test_names_are_completed(terminal: Terminal) -> None:
    # Only the letters that are new are drawn.
    terminal.type(f"SELECT amo FROM shop.ord{TAB}")
    terminal.until("ers")
    terminal.type(";\x01" + "\x1b[C" * len("SELECT amo") + TAB)
    terminal.until("unt")
    terminal.type("\r")
    assert "│      5 │" in terminal.until("1 row")


def test_ctrl_c_drops_the_line_and_stops_a_query(terminal: Terminal) -> None:
    terminal.type("SELECT nonsense")
    terminal.until("nonsense")
    terminal.type(CTRL_C)
    terminal.until(f"\n{PROMPT}")
    terminal.type("SELECT count(*) FROM range(1000000) a, range(1000000) b WHERE (a.range * b.range) % 7 = 3;\r")
    terminal.until("= 3;\n")
    # The query runs for hours; a signal that comes before it begins does no harm, so it is sent until one is heard.
    terminal.until("Interrupted", keys=CTRL_C)
    terminal.until(f"\n{PROMPT}")
    terminal.type("SELECT 40 + 2 AS x;\r")
    assert "│ 42 │" in terminal.until("1 row")
    terminal.type("\\q\r")
    assert terminal.finish() == 0
