"""Tables of the engines `aggregation` and `partial-update`: whatever is asked of them, they hold what a row-by-row model says.

Random tables, rows and retracts, with buffers that spill, compactions, other file formats and partitions; read by scans of some
columns, by key, through lookup files, by SQL and as changes.
"""

from __future__ import annotations

import tempfile
from typing import Any

import pyarrow as pa
import pytest

from lakelet import Lake, Table
from lakelet.storage.disk.local_store import LocalStore
from lakelet.storage.memory import MemoryStore
from tests.property.engine_tables import KEY, EngineTable, Versions
from tests.property.served_rows import check_served
from tests.tiers.examples import FIRST_SEED, examples

STEPS = 7
FORMATS = ("parquet", "parquet", "orc", "avro", "sst")


@pytest.mark.parametrize("engine", ["aggregation", "partial-update"])
def test_a_table_holds_what_the_model_folds(engine: str) -> None:
    for seed in range(FIRST_SEED, FIRST_SEED + examples(24)):
        table = EngineTable(seed, engine)
        with tempfile.TemporaryDirectory() as folder:
            lake = Lake(LocalStore(folder) if seed % 2 else MemoryStore())
            lake.create_database("d")
            try:
                _run(lake, table)
            except Exception as error:
                error.add_note(f"seed {seed}: {table.options} {table.columns}")
                raise


def _run(lake: Lake, given: EngineTable) -> None:
    source = given.random
    options = {**given.options, "bucket": "1", "write-only": "true", "file.format": source.choice(FORMATS)}
    if source.random() < 0.3:
        options["data-file.thin-mode"] = "true"
    table = lake.create_table("d.t", given.columns, primary_key=[KEY], options=options)
    model = Versions(given)
    for _ in range(STEPS):
        before, version = model.rows(), _version(table)
        if source.random() < 0.25:
            table.compact(True)
            model.compact()
        else:
            rows = given.rows()
            columns = {field.name: [row[field.name] for row in rows] for field in table.scan().to_arrow().schema}
            table.write(pa.table(columns, table.scan().to_arrow().schema), kinds=[row["_kind"] for row in rows])
            model.write(rows)
        _check(lake, table, given, model.rows())
        if _version(table) != version:
            _check_changes(table, before, model.rows())


def _check(lake: Lake, table: Table, given: EngineTable, wanted: list[dict[str, Any]]) -> None:
    _same(table.scan().to_arrow().to_pylist(), wanted)
    assert table.scan().count() == len(wanted)
    name = given.random.choice(list(given.types))
    _same(table.scan(columns=[KEY, name]).to_arrow().to_pylist(), [{KEY: row[KEY], name: row[name]} for row in wanted])
    keys = [{KEY: number} for number in range(7)]
    _same(table.get_many(keys).to_pylist(), wanted)
    for row in wanted[:2]:
        _same([table.get({KEY: row[KEY]})], [row])
    with tempfile.TemporaryDirectory() as folder, table.lookup(folder=folder) as lookup:
        check_served(table, lookup, pa.Table.from_pylist(keys, table.scan(columns=[KEY]).to_arrow().schema))
    missing = [row for row in wanted if row[name] is None]
    _same(table.scan(where=f"{name} IS NULL").to_arrow().to_pylist(), missing)
    _same(lake.sql(f"SELECT * FROM d.t WHERE {name} IS NULL").to_arrow().to_pylist(), missing)
    _same(lake.sql("SELECT * FROM d.t").to_arrow().to_pylist(), wanted)
    (counted,) = lake.sql("SELECT count(*) AS n FROM d.t").to_arrow().to_pylist()
    assert counted["n"] == len(wanted)


def _version(table: Table) -> int:
    newest = table.latest_snapshot()
    return 0 if newest is None else newest.id


def _check_changes(table: Table, before: list[dict[str, Any]], after: list[dict[str, Any]]) -> None:
    """What `changes` says of the newest version leads from the rows before it to the rows after it."""
    state = {row[KEY]: row for row in before}
    newest = _version(table)
    for change in table.changes(newest - 1, newest).to_pylist():
        kind = change.pop("_row_kind")
        if kind in ("+I", "+U"):
            state[change[KEY]] = change
        else:
            del state[change[KEY]]
    _same(list(state.values()), after)


def _same(found: list[Any], wanted: list[dict[str, Any]]) -> None:
    """Equal rows, whatever the order of rows and columns; NaN equals itself."""
    assert sorted(_texts(found)) == sorted(_texts(wanted))


def _texts(rows: list[Any]) -> list[str]:
    return [repr(sorted(row.items())) for row in rows]
