"""Commands do not load pandas; once something loads it, pyarrow knows it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

_COMMANDS = [
    ["sql", "SELECT p, count(*), sum(v) FROM t WHERE id > 1 AND s LIKE 'x%' GROUP BY p"],
    ["sql", "SELECT * FROM k ORDER BY id"],
    ["sql", "SELECT * FROM o WHERE v = 1.5", "--json"],
    ["sql", "INSERT INTO k VALUES (7, 'y', 1.5, 'b')"],
    ["sql", "UPDATE k SET s = 'z' WHERE v > 1"],
    ["sql", "DELETE FROM t WHERE hash(id) % 2 = 0"],
    ["describe", "default.k"],
    ["files", "default.k"],
    ["compact", "default.k"],
]
_MADE = """
CREATE TABLE t (id INT, s STRING, v DOUBLE, p STRING) PARTITIONED BY (p);
CREATE TABLE k (id INT, s STRING, v DOUBLE, p STRING, PRIMARY KEY (id) NOT ENFORCED);
CREATE TABLE o (id INT, s STRING, v DOUBLE, p STRING) WITH ('file.format' = 'orc');
INSERT INTO t SELECT i, 'x' || i, i / 2, 'p' || i % 3 FROM range(20) r(i);
INSERT INTO k SELECT * FROM t;
INSERT INTO k SELECT * FROM t;
INSERT INTO o SELECT * FROM t
"""
_RUN = """
import json, sys
from lakelet.cli import main
for command in json.loads(sys.argv[1]):
    code = main(command)
    assert code in (0, None), (code, command)
    assert "pandas" not in sys.modules, command
assert "pyarrow" in sys.modules
"""
_LOADED_LATER = """
import sys
from lakelet.cli.deferred_pandas import defer_pandas
defer_pandas()
import pyarrow as pa, pyarrow.dataset
assert pa.array([1, 2]).to_numpy().sum() == 3
assert "pandas" not in sys.modules
import pandas as pd
assert pa.array(pd.Series([1.0, None])).null_count == 1
assert pa.table({"a": [1]}).to_pandas()["a"].tolist() == [1]
assert pa.Table.from_pandas(pd.DataFrame({"a": [1.0, None]}))["a"].null_count == 1
"""


def _python(text: str, *arguments: str) -> None:
    run = subprocess.run([sys.executable, "-c", text, *arguments], capture_output=True, text=True)
    if run.returncode:
        pytest.fail(f"{arguments}: {run.stderr[-2000:]}")


def test_no_command_loads_pandas(tmp_path: Path) -> None:
    commands = [[*command, "--warehouse", str(tmp_path)] for command in [["sql", _MADE], *_COMMANDS]]
    _python(_RUN, json.dumps(commands))


def test_pandas_that_is_loaded_later_is_known_to_pyarrow() -> None:
    _python(_LOADED_LATER)
