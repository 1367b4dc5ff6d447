"""A name of Lakelet's own in a query is none that the query has."""

import pyarrow as pa
import pytest

from lakelet import Lake
from lakelet.sql.lexer.words import words_of
from lakelet.sql.query.stand_in import stand_in
from lakelet.storage.memory import MemoryStore


@pytest.mark.parametrize(
    ("text", "taken", "name"),
    [
        ("FROM t", (), "t@1"),
        ("FROM t", ("t@1",), "t@2"),
        ('FROM t, "T@1"', (), "t@2"),
        ('FROM t, "t@2"', ("t@1",), "t@3"),
    ],
)
def test_a_name_that_nothing_has(text: str, taken: tuple[str, ...], name: str) -> None:
    assert stand_in("t", "@", words_of(text), taken) == name


def test_tables_called_like_stand_ins_are_tables() -> None:
    lake = Lake(MemoryStore())
    lake.sql("CREATE DATABASE d; USE d")
    for name in ("t", "t@1", "T", "changes()@1"):
        lake.create_table(f"d.{name}", pa.schema([("v", pa.string())])).write([{"v": name}])
    lake.table("d.t").write([{"v": "newer"}])
    found = lake.sql('SELECT a.v, b.v FROM d.t FOR VERSION AS OF 1 a, "t@1" b').rows()
    assert found == [("t", "t@1")]
    found = lake.sql('SELECT a.v, b.v, c.v FROM d."T" a, d.t FOR VERSION AS OF 1 b, "t@1" c').rows()
    assert found == [("T", "t", "t@1")]
    found = lake.sql("SELECT a.v, b.v FROM changes('d.t', 1) a, \"changes()@1\" b").rows()
    assert found == [("newer", "changes()@1")]
