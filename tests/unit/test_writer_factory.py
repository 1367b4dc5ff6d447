"""`table.writer()` works whichever module of Lakelet was imported first, and loads its package only when it is called."""

import subprocess
import sys

import pytest

from lakelet import writer_factory
from lakelet.errors import InternalError

PROGRAM = """
import sys
from lakelet.catalog import connect
lake = connect("memory://writer-factory")
lake.create_database("d")
table = lake.create_table("d.t", [("id", "BIGINT")])
assert "lakelet.realtime" not in sys.modules, "a table loads the writer"
with table.writer(wal_folder=sys.argv[1]) as writer:
    writer.put({"id": 1})
assert table.scan().count() == 1
"""


def test_a_table_opens_a_writer(tmp_path: object) -> None:
    subprocess.run([sys.executable, "-c", PROGRAM, str(tmp_path)], check=True, timeout=600)


def test_without_a_package_that_provides_writers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_factory, "_FACTORY", [])
    with pytest.raises(InternalError, match=r"expected lakelet\.realtime"):
        writer_factory.open_row_writer(object(), None, None)
