"""The shell without a terminal; tests/e2e has it at one."""

import io
import json
import sys
from pathlib import Path

import pytest

from lakelet import Lake
from lakelet.cli.output.output import ConsoleOutput
from lakelet.cli.shell.lake_names import KeptNames
from lakelet.cli.shell.prompt import history_path, is_whole
from lakelet.cli.shell.statement_run import Shell
from tests.unit.cli.conftest import Ran, Run


@pytest.fixture
def typed(run: Run, monkeypatch: pytest.MonkeyPatch) -> Run:
    def ran(text: str, *arguments: str) -> Ran:
        monkeypatch.setattr(sys, "stdin", io.StringIO(text))
        return run("shell", *arguments)

    return ran


def test_statements_run_when_they_are_whole(typed: Run, shop: Lake) -> None:
    shown = typed("\\f csv\nSELECT 1\n AS a; SELECT 2 AS b;\nSELECT 3 AS c")
    assert shown == Ran(0, 'results are written as csv\n"a"\n1\n"b"\n2\n"c"\n3\n', "")


def test_an_error_is_told_and_the_shell_goes_on(typed: Run, shop: Lake) -> None:
    shown = typed("\\f csv\nSELECT 1 AS a; SELEC 2;\nSELECT 3 AS b;")
    assert shown.code == 1
    assert shown.out.endswith('"a"\n1\n"b"\n3\n')
    assert shown.err.splitlines()[1:] == ["  SELECT 1 AS a; SELEC 2;", "                 ^"]
    assert "line 1, column 16" in shown.err


def test_the_database_in_use_stays(typed: Run, shop: Lake) -> None:
    shown = typed("\\f csv\nUSE shop;\nSELECT count(*) AS n FROM orders;")
    assert shown.out.endswith('"n"\n4\n')
    assert typed("SELECT count(*) AS n FROM orders;", "--database", "shop", "--json").objects == [{"rows": [{"n": 4}]}]


def test_temporary_tables_live_as_long_as_the_shell(typed: Run, shop: Lake) -> None:
    text = (
        "CREATE TEMP TABLE mine AS SELECT 7 AS n; SELEC 1;\nCREATE TEMP VIEW v AS SELECT n + 1 AS m FROM mine;\nFROM v;"
    )
    shown = typed(f"\\f csv\n{text}")
    assert shown.out.endswith('"m"\n8\n')
    gone = typed("\\f csv\nFROM v;")
    assert (gone.code, "'default.v' is not in" in gone.err) == (1, True)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("\\d", "shop.orders"),
        ("\\d shop.orders", "what was sold"),
        ("\\dt shop", "orders"),
        ("\\l", "shop"),
        ("\\timing on", "timing is on"),
        ("\\timing off;", "timing is off"),
        ("\\x", "a line for each value is on"),
        ("\\?", "send results to a file"),
    ],
)
def test_the_shells_own_commands(typed: Run, shop: Lake, line: str, said: str) -> None:
    shown = typed(line)
    assert (shown.code, shown.err) == (0, "")
    assert said.replace("shop.orders", "orders") in shown.out


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("\\dx", "is no command of the shell; did you mean"),
        ("\\d shop.order", "did you mean orders?"),
        ("\\l x", "\\l takes nothing more, found 'x'"),
        ("\\timing x", "expected on or off"),
        ("\\limit x", "expected a number of rows"),
        ("\\f xml", "expected one of table"),
        ("\\c", "needs the name of a database"),
        ("\\c shp", "did you mean shop?"),
        ("\\i", "needs the name of a file"),
        ("\\i /nowhere", "is not there"),
        ("\\o /nowhere/x", "results cannot go to"),
        (".mode csv", "'.mode' is no command of the shell"),
        (".table", "did you mean .tables"),
        (".", "is no command of the shell"),
    ],
)
def test_wrong_commands_are_one_line(typed: Run, shop: Lake, line: str, said: str) -> None:
    shown = typed(f"{line}\n\\f csv\nSELECT 1 AS a;")
    assert shown.code == 1
    assert said in shown.err
    assert shown.err.count("\n") == 1
    assert shown.out.endswith('"a"\n1\n')


def test_the_trace_of_an_error(typed: Run, shop: Lake) -> None:
    assert "Traceback" in typed("SELEC 1;", "--debug").err
    assert "Traceback" not in typed("SELEC 1;").err


@pytest.mark.parametrize("line", ["\\q", "exit", "quit", "EXIT;", " Quit ; ", ".quit", ".exit", " .EXIT"])
def test_leaving(typed: Run, shop: Lake, line: str) -> None:
    assert typed(f"SELECT 1;\n{line}\nSELEC").code == 0


@pytest.mark.parametrize("line", ["\\?", "help", "HELP;", ".help"])
def test_help(typed: Run, shop: Lake, line: str) -> None:
    assert "\\timing" in typed(line).out


@pytest.mark.parametrize(
    ("line", "same"), [(".tables", "\\dt"), (".databases", "\\l"), (".schema shop.orders", "\\d shop.orders")]
)
def test_commands_of_other_shells(typed: Run, shop: Lake, line: str, same: str) -> None:
    assert typed(f"{line}\nSELECT 7;").out == typed(f"{same}\nSELECT 7;").out
    assert "0.5" in typed("SELECT\n.5 AS half;").out


def test_words_inside_of_a_statement_are_no_commands(typed: Run, shop: Lake) -> None:
    assert "7" in typed("SELECT 7 AS\nexit\n;").out


def test_how_results_look(typed: Run, shop: Lake) -> None:
    shown = typed("\\x on\nSELECT 1 AS a;\n\\x\n\\limit 1\nSELECT * FROM range(3);\n\\timing\nSELECT 1;")
    assert "─[ row 1 ]" in shown.out
    assert "1 of 3 rows" in shown.out
    assert shown.out.endswith(" ms\n")


def test_results_to_a_file_and_statements_from_one(typed: Run, shop: Lake, tmp_path: Path) -> None:
    (tmp_path / "in.sql").write_text("SELECT 7 AS n;", encoding="utf-8")
    out = tmp_path / "out.csv"
    shown = typed(f"\\f csv\n\\o {out}\n\\i {tmp_path / 'in.sql'}\n\\o\nSELECT 8 AS n;")
    assert out.read_text(encoding="utf-8") == '"n"\n7\n'
    assert shown.out.endswith('"n"\n8\n')
    assert "7" not in shown.out


def test_errors_for_programs(typed: Run, shop: Lake) -> None:
    shown = typed("SELEC 1;\nSELECT 1 AS a;", "--json")
    assert json.loads(shown.err)["line"] == 1
    assert json.loads(shown.out) == {"rows": [{"a": 1}]}


def test_ctrl_c_stops_a_statement_and_a_persons_shell_goes_on(
    typed: Run, shop: Lake, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("lakelet.cli.shell.statement_run.write_result", interrupted)
    assert typed("SELECT 1;\n\\l") == Ran(130, "", "")
    shell = Shell(shop, ConsoleOutput(), interactive=True)
    shell.run_text("SELECT 1;")
    shell.close()
    assert capsys.readouterr().err.startswith("Interrupted: ")


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("", True),
        ("SELECT 1", False),
        ("SELECT 1;", True),
        ("SELECT 1; SELECT", False),
        ("\\d", True),
        (".tables", True),
        ("SELECT ';", False),
    ],
)
def test_when_enter_runs_what_was_typed(text: str, whole: bool) -> None:
    assert is_whole(text) is whole


def test_where_the_history_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert history_path() == str(tmp_path / "lakelet" / "history")
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert history_path() == str(tmp_path / ".local" / "state" / "lakelet" / "history")


def test_names_are_read_once_a_statement(shop: Lake) -> None:
    shell = Shell(shop, ConsoleOutput())
    names = KeptNames(shell)
    assert list(names.tables("shop")) == ["orders"]
    assert list(names.columns(["shop", "orders"])) == ["id", "dt", "amount", "note"]
    assert list(names.columns(["shop", "none"])) == []
    shop.create_table("shop.more", [("a", "INT")])
    assert list(names.tables("shop")) == ["orders"]
    names.forget()
    assert list(names.tables("shop")) == ["more", "orders"]
    assert "snapshots" in names.system_tables()
    assert "sys.compact(" in names.procedures()
    assert "\\d" in names.backslashes()
    shell.close()
