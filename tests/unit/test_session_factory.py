"""`lake.sql` works whichever module of Lakelet was imported first, and loads DuckDB only when it is called."""

import subprocess
import sys

import pytest

from lakelet import session_factory
from lakelet.errors import InternalError

PROGRAM = """
import sys
{imported}
lake = connect("memory://session-factory")
assert "duckdb" not in sys.modules, "connect loads DuckDB"
assert lake.sql("SELECT 1 AS one").rows() == [(1,)]
"""


@pytest.mark.parametrize("imported", ["from lakelet import connect", "from lakelet.catalog import connect"])
def test_any_way_to_a_lake_gives_sql(imported: str) -> None:
    subprocess.run([sys.executable, "-c", PROGRAM.format(imported=imported)], check=True, timeout=600)


def test_without_a_package_that_provides_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_factory, "_FACTORY", [])
    with pytest.raises(InternalError, match=r"expected lakelet\.sql"):
        session_factory.open_session(object())
