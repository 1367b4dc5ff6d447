"""Columns that upserted rows lack: refused, filled in with defaults or kept as stored, in every bucket mode."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from lakelet.catalog.lake import Lake
from lakelet.errors import ConflictError, InvalidError
from lakelet.model.type_parser import parse_type
from lakelet.model.types import Field
from lakelet.storage.memory import MemoryStore
from lakelet.table import Table
from tests.unit.hooked_store import HookedStore

COLUMNS = [
    Field(0, "id", parse_type("BIGINT")),
    Field(1, "p", parse_type("STRING")),
    Field(2, "a", parse_type("INT")),
    Field(3, "b", parse_type("STRING"), default="new"),
    Field(4, "r", parse_type("ROW<x INT, y INT>")),
]
DV = {"deletion-vectors.enabled": "true"}
MODES: dict[str, dict[str, Any]] = {
    "fixed": {"primary_key": ["id", "p"], "options": {"bucket": "2"}},
    "dynamic": {"primary_key": ["id", "p"], "options": {"dynamic-bucket.target-row-num": "2"}},
    "across": {"primary_key": ["id"], "options": {}},
    "unpartitioned": {"primary_key": ["id"], "partitioned_by": [], "options": {"bucket": "1", "file.format": "orc"}},
    "vectors": {"primary_key": ["id", "p"], "options": {"bucket": "2", **DV}},
    "hidden": {"primary_key": ["id", "p"], "options": {"bucket": "2", "write-only": "true", **DV}},
}


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def lake(store: MemoryStore) -> Lake:
    made = Lake(store)
    made.create_database("d")
    return made


def make(lake: Lake, mode: str = "fixed", columns: Any = COLUMNS, **options: str) -> Table:
    chosen = {"partitioned_by": ["p"], **MODES[mode]}
    chosen["options"] = {**chosen["options"], **options}
    return lake.create_table("d.t", columns, **chosen)


@pytest.fixture(params=MODES)
def table(lake: Lake, request: pytest.FixtureRequest) -> Table:
    made = make(lake, request.param)
    made.write([row(number, a=number, b=f"b{number}", r={"x": number, "y": -number}) for number in range(6)])
    return made


def row(number: int, **values: Any) -> dict[str, Any]:
    return {"id": number, "p": "pq"[number % 2], **values}


def shown(table: Table) -> dict[int, tuple[Any, ...]]:
    if table.options.get("write-only"):
        table.set_options({"write-only": "false"})
        table.compact(full=True)
    found = table.scan().to_arrow().to_pylist()
    assert len({one["id"] for one in found}) == len(found)
    return {one["id"]: (one["a"], one["b"], one["r"]) for one in found}


ROWS = [row(1, a=10), row(2, a=20), row(9, a=90)]
FORMS: dict[str, Callable[[], Any]] = {
    "dicts": lambda: ROWS,
    "arrow": lambda: pa.Table.from_pylist(ROWS),
    "batches": lambda: iter(pa.Table.from_pylist(ROWS).to_batches(max_chunksize=1)),
    "pandas": lambda: pd.DataFrame(ROWS),
    "polars": lambda: pl.DataFrame(ROWS),
    "reader": lambda: pa.Table.from_pylist(ROWS).to_reader(),
}


WAYS_OUT = r"'b', 'r'.*missing='keep'.*missing='default'.*write\.missing-columns"


@pytest.mark.parametrize("form", FORMS)
def test_rows_of_any_form_without_columns_are_refused(lake: Lake, form: str) -> None:
    table = make(lake)
    with pytest.raises(InvalidError, match=WAYS_OUT):
        table.write(FORMS[form]())
    assert table.latest_snapshot() is None


def test_an_upsert_without_columns_is_refused_and_names_the_ways_out(table: Table) -> None:
    before = table.latest_snapshot()
    for write in (table.write, table.new_write().write):
        with pytest.raises(InvalidError, match=WAYS_OUT):
            write(ROWS)
    with pytest.raises(InvalidError, match="lacks column 'r' from row 1 on"):
        table.write([row(1, a=1, b="x", r=None), row(2, a=1, b="x")])
    assert table.latest_snapshot() == before


@pytest.mark.parametrize("form", FORMS)
def test_stored_values_stay(lake: Lake, form: str) -> None:
    table = make(lake)
    table.write([row(n, a=n, b=f"b{n}", r={"x": n, "y": -n}) for n in range(3)])
    table.write(FORMS[form](), missing="keep")
    assert shown(table) == {
        0: (0, "b0", {"x": 0, "y": 0}),
        1: (10, "b1", {"x": 1, "y": -1}),
        2: (20, "b2", {"x": 2, "y": -2}),
        9: (90, "new", None),
    }


def test_stored_values_stay_in_every_mode(table: Table) -> None:
    table.write([row(1, a=10), row(4, a=40), row(1, a=11), row(9, a=90)], missing="keep")
    table.write([row(4, b="c4"), row(9, b="c9")], missing="keep")
    found = shown(table)
    assert found[1] == (11, "b1", {"x": 1, "y": -1})
    assert found[4] == (40, "c4", {"x": 4, "y": -4})
    assert found[9] == (90, "c9", None)
    assert found[5] == (5, "b5", {"x": 5, "y": -5})


def test_defaults_replace_stored_values_if_asked(table: Table) -> None:
    table.write([row(1, a=10)], missing="default")
    assert shown(table)[1] == (10, "new", None)


@pytest.mark.parametrize(
    ("option", "expected"), [("keep", (10, "b1", {"x": 1, "y": -1})), ("default", (10, "new", None))]
)
def test_the_owner_of_a_table_chooses(table: Table, option: str, expected: Any) -> None:
    table.set_options({"write.missing-columns": option})
    table.write([row(1, a=10)])
    with pytest.raises(InvalidError, match="lacks columns"):
        table.write([row(2, a=20)], missing="error")
    assert shown(table)[1] == expected


def test_a_job_older_than_a_column_goes_on_by_its_owners_choice(table: Table) -> None:
    job = pa.Table.from_pylist([row(1, a=10, b="x", r={"x": 1, "y": 1})])
    table.add_column("z", "INT")
    with pytest.raises(InvalidError, match="lacks column 'z'"):
        table.write(job)
    table.write([row(1, a=1, b="x", r=None, z=7)])
    table.set_options({"write.missing-columns": "keep"})
    table.write(job)
    key = {"id": 1, "p": "q"} if len(table.schema.primary_keys) == 2 else {"id": 1}
    shown(table)
    found = table.get(key)
    assert found is not None
    assert (found["a"], found["z"]) == (10, 7)


def test_rows_that_leave_out_a_row_field_keep_it(table: Table) -> None:
    whole = row(1, a=1, b="x")
    with pytest.raises(InvalidError, match=r"'r\.y'"):
        table.write([{**whole, "r": {"x": 5}}])
    with pytest.raises(InvalidError, match=r"'r\.y'"):
        table.write(pa.Table.from_pylist([{**whole, "r": {"x": 5}}]))
    table.write([{**whole, "r": {"x": 5}}], missing="keep")
    table.write(pa.Table.from_pylist([row(2, r={"y": 8}), row(9, r={"y": 9}), row(3, r=None)]), missing="keep")
    found = shown(table)
    assert [found[n][2] for n in (1, 2, 9, 3)] == [{"x": 5, "y": -1}, {"x": 2, "y": 8}, {"x": None, "y": 9}, None]


def test_fields_in_lists_cannot_be_kept(lake: Lake) -> None:
    table = make(lake, columns=[("id", "BIGINT"), ("p", "STRING"), ("l", "ARRAY<ROW<x INT, y INT>>")])
    data = pa.table({"id": [1], "p": ["q"], "l": pa.array([[{"x": 1}]])})
    with pytest.raises(InvalidError, match=r"l\.element\.y"):
        table.write(data, missing="keep")
    table.write(data, missing="default")


def test_a_new_key_needs_what_has_no_default(lake: Lake) -> None:
    table = make(lake, columns=[("id", "BIGINT"), ("p", "STRING"), ("a", "INT"), ("n", "INT NOT NULL")])
    table.write([row(1, a=1, n=1)])
    table.write([row(1, a=2)], missing="keep")
    with pytest.raises(InvalidError, match=r"row 1 with the new key .*'id': 2.* lacks column 'n'"):
        table.write([row(1, a=3), row(2, a=3)], missing="keep")
    assert table.scan().to_arrow().to_pylist() == [{"id": 1, "p": "q", "a": 2, "n": 1}]


def test_a_sequence_decides_against_kept_rows_too(lake: Lake) -> None:
    columns = [("id", "BIGINT"), ("p", "STRING"), ("a", "INT"), ("b", "STRING"), ("s", "INT")]
    table = make(lake, columns=columns, **{"sequence.field": "s"})
    table.write([row(1, a=1, b="old", s=5), row(2, a=2, b="old", s=5), row(3, a=3, b="old", s=5)])
    table.write([row(1, a=10, s=4), row(2, a=20, s=6)], missing="keep")
    table.write([row(3, a=30)], missing="keep")
    found = {one["id"]: (one["a"], one["b"], one["s"]) for one in table.scan().to_arrow().to_pylist()}
    assert found == {1: (1, "old", 5), 2: (20, "old", 6), 3: (30, "old", 5)}


def test_deletes_need_no_other_columns(table: Table) -> None:
    table.write([row(1), row(2, a=1, b="c", r=None)], kinds=["-D", "+U"])
    assert set(shown(table)) == {0, 2, 3, 4, 5}


def test_rows_that_keep_different_columns_need_keys_of_their_own(table: Table) -> None:
    table.write([row(1, a=10), row(2, b="c2"), row(3, r=None)], missing="keep")
    for data, kinds in (([row(1, a=1), row(1, b="x")], None), ([row(1), row(1, a=1)], ["-D", "+I"])):
        with pytest.raises(InvalidError, match="of another row of the same write"):
            table.write(data, kinds=kinds, missing="keep")
    found = shown(table)
    assert [found[n][:2] for n in (1, 2, 3)] == [(10, "b1"), (2, "c2"), (3, "b3")]


def test_keep_is_refused_where_nothing_can_be_kept(lake: Lake) -> None:
    postponed = lake.create_table("d.p", COLUMNS, primary_key=["id"], options={"bucket": "-2"})
    with pytest.raises(InvalidError, match="wait for compaction"):
        postponed.write([row(1, a=1)], missing="keep")
    appended = lake.create_table("d.a", COLUMNS)
    with pytest.raises(InvalidError, match="no primary key"):
        appended.write([row(1, a=1)], missing="keep")
    with pytest.raises(InvalidError, match="goes with upserts"):
        make(lake).write([row(1, a=1)], missing="keep", mode="overwrite")
    with pytest.raises(InvalidError, match="expected one of error, default, keep"):
        lake.table("d.t").write([row(1, a=1)], missing="ignore")


def test_appends_overwrites_and_first_rows_fill_in_defaults(lake: Lake) -> None:
    appended = lake.create_table("d.a", COLUMNS)
    appended.write([row(1, a=1)])
    first = lake.create_table("d.f", COLUMNS, primary_key=["id"], options={"bucket": "1", "merge-engine": "first-row"})
    first.write([row(1, a=1)])
    table = make(lake)
    table.write([row(1, a=1)], mode="overwrite")
    for one in (appended, first, table):
        assert one.scan().to_arrow().to_pylist() == [{**row(1, a=1), "b": "new", "r": None}]


# ------------------------------------------------------------------ two writers


def between(lake: Lake, store: MemoryStore, action: Callable[[Table], object]) -> Table:
    """The table through a store on which `action` comes in just before our snapshot is made."""
    hooked = HookedStore(store)
    hooked.when = lambda call, path: call == "put" and "manifest-list" in path
    hooked.after = lambda: action(lake.table("d.t"))
    return Lake(hooked).table("d.t")


def test_values_that_changed_meanwhile_are_kept_as_they_are_now(lake: Lake, store: MemoryStore, table: Table) -> None:
    def change(theirs: Table) -> None:
        theirs.add_column("z", "INT")
        theirs.write([row(1, a=7, b="theirs", r=None, z=3), row(3, a=8, b="theirs", r=None, z=4)])

    ours = between(lake, store, change)
    ours.write(iter([pa.Table.from_pylist([row(1, a=10), row(5, a=50)])]), missing="keep")
    assert shown(table)[1] == (10, "theirs", None)
    assert shown(table)[5] == (50, "b5", {"x": 5, "y": -5})
    found = {one["id"]: one["z"] for one in table.scan().to_arrow().to_pylist()}
    assert (found[1], found[3], found[5]) == (3, 4, None)


def test_two_phases_conflict_when_kept_values_may_have_changed(table: Table) -> None:
    write = table.new_write(missing="keep")
    write.write([row(1, a=10)])
    messages = write.prepare_commit()
    table.write([row(1, b="theirs")], missing="keep")
    with pytest.raises(ConflictError, match="look again"):
        table.new_commit().commit(messages)
    write.abort()
    with table.new_write(missing="keep") as again:
        again.write([row(1, a=10)])
        table.new_commit().commit(again.prepare_commit())
    assert shown(table)[1] == (10, "theirs", {"x": 1, "y": -1})


@pytest.mark.parametrize("mode", ["fixed", "dynamic", "vectors"])
def test_writers_of_different_columns_lose_nothing(lake: Lake, mode: str) -> None:
    table = make(lake, mode)
    table.write([row(n, a=0, b="0", r=None) for n in range(4)])
    failures: list[BaseException] = []

    def upsert(column: str) -> None:
        try:
            for turn in range(1, 6):
                values = {n: turn if column == "a" else str(turn) for n in range(4)}
                table.write([row(n, **{column: value}) for n, value in values.items()], missing="keep")
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=upsert, args=(column,)) for column in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert set(shown(table).values()) == {(5, "5", None)}
