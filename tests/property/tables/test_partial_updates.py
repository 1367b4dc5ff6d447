"""UPDATE of partial-update tables: a row shows exactly what the statement says, or the statement is refused and nothing changes.

Random sequence groups, aggregated columns and orders of rows; the rows before the statement and Python say what it should give.
"""

from __future__ import annotations

import random
from typing import Any

from lakelet import InvalidError, Lake, Table
from lakelet.storage.memory import MemoryStore
from tests.tiers.examples import FIRST_SEED, examples

COLUMNS = ("a", "b", "g", "h", "c", "e", "s", "v")
FUNCTIONS = ("sum", "max", "last_value", "last_non_null_value", "first_value", "product")
STEPS = 10


def test_an_update_shows_what_it_says_or_is_refused() -> None:
    for seed in range(FIRST_SEED, FIRST_SEED + examples(10)):
        source = random.Random(seed)
        options = _options(source)
        lake = Lake(MemoryStore())
        lake.create_database("d")
        columns = [("k", "INT NOT NULL"), *((name, "INT") for name in COLUMNS)]
        table = lake.create_table("d.t", columns, primary_key=["k"], options=options)
        try:
            for _ in range(STEPS):
                if source.random() < 0.55:
                    table.write([_row(source) for _ in range(source.randint(1, 4))])
                elif source.random() < 0.2:
                    table.compact(True)
                else:
                    _update(lake, table, source)
        except Exception as error:
            error.add_note(f"seed {seed}: {options}")
            raise


def _update(lake: Lake, table: Table, source: random.Random) -> None:
    before = _rows(table)
    assigned = {name: _value(source) for name in source.sample(COLUMNS, source.randint(1, 3))}
    limit = source.randint(0, 4)
    changes = ", ".join(f"{name} = {'NULL' if value is None else value}" for name, value in assigned.items())
    wanted = [{**row, **assigned} if row["k"] <= limit else row for row in before]
    try:
        lake.sql(f"UPDATE d.t SET {changes} WHERE k <= {limit}")
    except InvalidError:
        wanted = before
    found = _rows(table)
    assert found == wanted, changes
    if source.random() < 0.5:
        table.compact(True)
        assert _rows(table) == wanted, changes


def _options(source: random.Random) -> dict[str, str]:
    options = {"bucket": "1", "merge-engine": "partial-update", "write-only": "true"}
    if source.random() < 0.8:
        options["fields.g.sequence-group"] = "c,e"
        if source.random() < 0.6:
            options["fields.e.aggregate-function"] = source.choice(FUNCTIONS)
    if source.random() < 0.4:
        options["fields.h,s.sequence-group"] = "b"
    if source.random() < 0.4:
        options["sequence.field"] = "v"
        if source.random() < 0.5:
            options["sequence.field.sort-order"] = "descending"
    return options


def _row(source: random.Random) -> dict[str, Any]:
    return {"k": source.randint(0, 4), **{name: _value(source) for name in COLUMNS}}


def _value(source: random.Random) -> int | None:
    return None if source.random() < 0.4 else source.randint(1, 4)


def _rows(table: Table) -> list[dict[str, Any]]:
    return sorted(table.scan().to_arrow().to_pylist(), key=lambda row: row["k"])
