"""What a table refuses of its callers, and tables that other engines stored and Lakelet cannot use."""

import datetime as dt
import json
import subprocess
import sys
from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lakelet.catalog.lake import Lake
from lakelet.errors import InvalidError
from lakelet.storage.memory import MemoryStore
from lakelet.table import Table


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def table(store: MemoryStore) -> Table:
    lake = Lake(store)
    lake.create_database("d")
    made = lake.create_table("d.t", [("id", "BIGINT"), ("ok", "BOOLEAN")])
    made.write(pa.table({"id": [0, 1, 2]}))
    return made


@pytest.mark.parametrize("where", [5, b"id = 1", ["id = 1"], True], ids=repr)
def test_a_condition_is_text_or_an_expression(table: Table, where: object) -> None:
    with pytest.raises(InvalidError, match="where: expected SQL text or a pyarrow expression"):
        table.scan(where=where)  # type: ignore[arg-type]
    with pytest.raises(InvalidError, match="where: expected SQL text or a pyarrow expression"):
        table.delete(where=where)  # type: ignore[arg-type]


def test_a_delete_needs_a_condition(table: Table) -> None:
    with pytest.raises(InvalidError, match="delete needs keys or a condition"):
        table.delete(where=None)
    assert table.scan().count() == 3


@pytest.mark.parametrize("where", ["id", "id + 1", "NOT id", "1", "'true'", pc.field("id")], ids=str)
def test_a_condition_is_true_or_false(table: Table, where: str) -> None:
    with pytest.raises(InvalidError, match="expected a condition, found an expression of type"):
        table.scan(where=where).to_arrow()
    with pytest.raises(InvalidError, match="expected a condition, found an expression of type"):
        table.delete(where=where)
    assert table.scan().count() == 3


BAD_SCANS: dict[str, tuple[Callable[[Table], object], str]] = {
    "limit with a fraction": (lambda t: t.scan(limit=1.5), "limit 1.5: expected a whole number"),  # type: ignore[arg-type]
    "limit as text": (lambda t: t.scan(limit="1"), "limit '1': expected a whole number"),  # type: ignore[arg-type]
    "limit below 0": (lambda t: t.scan(limit=-1), "limit -1"),
    "a day": (lambda t: t.scan(timestamp=dt.date(2024, 1, 1)), "expected a datetime, ISO 8601"),  # type: ignore[arg-type]
    "a number of seconds": (lambda t: t.scan(timestamp=1.5), "expected a datetime, ISO 8601"),  # type: ignore[arg-type]
    "columns as text": (lambda t: t.scan("id"), "columns 'id': expected a list of names"),
}


@pytest.mark.parametrize(("scan", "reason"), BAD_SCANS.values(), ids=BAD_SCANS)
def test_what_a_scan_refuses(table: Table, scan: Callable[[Table], object], reason: str) -> None:
    with pytest.raises(InvalidError, match=reason):
        scan(table)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"bucket": "2"}, "'bucket-key' must name"),
        ({"bucket": "-2"}, "option 'bucket': expected -1 or a number above 0"),
        ({"bucket": "x"}, "option 'bucket': expected a whole number"),
    ],
)
def test_stored_options_that_rows_cannot_follow(
    table: Table, store: MemoryStore, options: dict[str, str], reason: str
) -> None:
    path = "d.db/t/schema/schema-0"
    store.put(path, json.dumps({**json.loads(store.get(path)), "options": options}).encode())
    for action in (table.scan, table.new_write, table.new_commit, lambda: table.write(pa.table({"id": [3]}))):
        with pytest.raises(InvalidError, match=reason):
            action()


def test_a_bad_option_is_refused_by_its_kind(table: Table) -> None:
    with pytest.raises(InvalidError, match="option 'bucket': expected a whole number"):
        table.set_options({"bucket": "x"})
    assert table.options == {}


def test_a_type_is_a_type(table: Table) -> None:
    with pytest.raises(InvalidError, match=r"expected a type such as 'BIGINT' or pyarrow.int64\(\), found 5"):
        table.add_column("z", 5)  # type: ignore[arg-type]
    with pytest.raises(InvalidError, match="not valid Unicode"):
        table.add_column("z\ud800", "INT")
    with pytest.raises(InvalidError, match=r"column path \(5,\)"):
        table.rename_column((5,), "z")  # type: ignore[arg-type]


def test_columns_that_differ_only_in_case(store: MemoryStore) -> None:
    lake = Lake(store)
    lake.create_database("d")
    table = lake.create_table("d.t", [("a", "INT"), ("A", "INT"), ("b", "INT")])
    table.write([{"a": 1, "A": 2, "b": 3}])
    with pytest.raises(InvalidError, match="differ in case alone"):
        table.scan().to_duckdb()
    assert table.scan(["A", "b"]).to_duckdb().fetchall() == [(2, 3)]


def test_importing_loads_no_frame_library_and_no_engine() -> None:
    heavy = ["pandas", "polars", "duckdb", "sqlglot", "pyarrow.dataset"]
    code = f"import lakelet, sys; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
