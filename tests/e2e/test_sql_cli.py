"""`lakelet sql` as a process: pipes, interrupts, and nothing on standard error that nobody asked for."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from lakelet import connect

LAKELET = [sys.executable, "-m", "lakelet"]


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> str:
    location = str(tmp_path_factory.mktemp("sql") / "warehouse")
    lake = connect(location)
    lake.create_database("shop")
    table = lake.create_table(
        "shop.orders", [("id", "BIGINT NOT NULL"), ("n", "INT")], primary_key=["id"], options={"bucket": "1"}
    )
    for first in (0, 500):
        table.write([{"id": number, "n": number % 7} for number in range(first, first + 1000)])
    return location


def lakelet(warehouse: str, *arguments: str, text: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*LAKELET, *arguments, "--warehouse", warehouse],
        input=text,
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "COLUMNS": "200"},
    )


def test_a_query_over_rows_that_are_merged(warehouse: str) -> None:
    shown = lakelet(warehouse, "sql", "SELECT n, count(*) AS c FROM shop.orders GROUP BY n ORDER BY n", "--json")
    assert (shown.returncode, shown.stderr) == (0, "")
    rows = json.loads(shown.stdout)["rows"]
    assert sum(row["c"] for row in rows) == 1500


@pytest.mark.parametrize("statement", ["SELECT * FROM shop.orders", "SELECT * FROM shop.none", "SELEC", "SELECT 1"])
def test_nothing_of_the_engine_shows_at_the_end(warehouse: str, statement: str) -> None:
    shown = lakelet(warehouse, "sql", statement, "--limit", "1")
    assert "leaked" not in shown.stderr
    assert "Traceback" not in shown.stderr
    assert shown.stderr.count("\n") <= 3


def test_changes_and_standard_input(warehouse: str) -> None:
    text = "CREATE TABLE shop.made (a INT, b STRING);\nINSERT INTO shop.made VALUES (1, 'x'), (2, 'y');\nSELECT * FROM shop.made"
    shown = lakelet(warehouse, "sql", "-", "--output", "csv", text=text)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert sorted(shown.stdout.splitlines()[-2:]) == ['1,"x"', '2,"y"']


def test_a_reader_that_goes_away_is_no_error(warehouse: str) -> None:
    process = subprocess.Popen(
        [*LAKELET, "sql", "SELECT * FROM range(5000000)", "-t", "csv", "--warehouse", warehouse],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == '"range"\n'
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == ""
    assert process.wait(300) == 141
    process.stderr.close()


@pytest.mark.parametrize("arguments", [("tables",), ("tables", "--json"), ("--help",), ("history", "shop.orders")])
def test_nobody_reads_at_all(warehouse: str, arguments: tuple[str, ...]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    environment = {**os.environ, "LAKELET_WAREHOUSE": warehouse}
    shown = subprocess.run(
        [*LAKELET, *arguments], stdout=writing, stderr=subprocess.PIPE, text=True, timeout=300, env=environment
    )
    os.close(writing)
    assert shown.stderr == ""
    assert shown.returncode in (1, 141)


def test_a_terminal_that_knows_few_letters(warehouse: str) -> None:
    shown = subprocess.run(
        [*LAKELET, "sql", "SELECT 'ä' AS a", "--warehouse", warehouse],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"},
    )
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "\\xe4" in shown.stdout


def test_ctrl_c_stops_a_long_query(warehouse: str) -> None:
    # Rows come out before the long part, so that the signal meets a query that runs.
    endless = "SELECT 1 AS a; SELECT count(*) FROM range(1000000) a, range(1000000) b WHERE (a.range * b.range) % 7 = 3"
    with subprocess.Popen(
        [*LAKELET, "sql", endless, "-t", "csv", "--warehouse", warehouse],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert [process.stdout.readline() for _ in range(2)] == ['"a"\n', "1\n"]
        process.send_signal(signal.SIGINT)
        assert process.wait(300) == 130
        assert process.stderr.read() == ""


def test_only_what_is_needed_is_loaded(warehouse: str) -> None:
    # What takes long to load, or is of no use to a query that reads no table.
    heavy = ["numba", "pandas", "polars", "sqlglot", "prompt_toolkit", "pygments", "pyspark", "pydantic", "asyncio"]
    heavy += [
        "obstore",
        "pyarrow.dataset",
        "pyarrow.orc",
        "rich.console",
        "lakelet.sink.write.append_writer",
        "lakelet.table.table",
    ]
    program = (
        "import sys; from lakelet.cli import main\n"
        f"code = main(['sql', 'SELECT 1 AS a', '--warehouse', {warehouse!r}])\n"
        f"print(code, sorted(set({heavy!r}) & set(sys.modules)))"
    )
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
    assert shown.stdout.splitlines()[-1] == "0 []"


def test_help_and_completion_load_nothing_of_the_lake() -> None:
    program = (
        "import sys; from lakelet.cli import main\n"
        "main(['--version'])\n"
        "print(sorted({'numpy', 'pyarrow', 'duckdb', 'lakelet.table', 'lakelet.sql'} & set(sys.modules)))"
    )
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
    assert shown.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("lakelet des", {"describe"}),
        ("lakelet describe ", {"shop.orders"}),
        ("lakelet describe shop.or", {"shop.orders"}),
    ],
)
def test_the_users_shell_completes_commands_and_tables(warehouse: str, line: str, offered: set[str]) -> None:
    script = Path(sys.executable).with_name("lakelet")
    words = line.split(" ")
    environment = {
        **os.environ,
        "_LAKELET_COMPLETE": "complete_bash",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) - 1),
        "LAKELET_WAREHOUSE": warehouse,
    }
    shown = subprocess.run([str(script)], capture_output=True, text=True, timeout=300, env=environment)
    assert offered <= set(shown.stdout.split())
