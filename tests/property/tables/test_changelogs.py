"""Tables that write changelogs: replayed from empty they give the table at every version that they have told of.

All producers and merge engines with random options: partitions, kinds of buckets, deletion vectors, formats, buffers that spill,
writes that leave compaction to others. A replay is strict: nothing is inserted twice, and what an update or a delete takes away
is what was there, row by row. Of `input` the rows are those that were written, whatever the table makes of them.
"""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

from lakelet import Lake, Table
from lakelet.storage.memory import MemoryStore
from tests.property.engine_tables import KEY, EngineTable
from tests.property.lookup_ways import WAYS, compact_by
from tests.tiers.examples import FIRST_SEED, examples

STEPS = 7
PRODUCERS = ("input", "lookup", "full-compaction")
FORMATS = ("parquet", "parquet", "orc", "avro", "sst")
Row = dict[str, Any]
State = dict[tuple[Any, ...], str]
COLUMNS = [(KEY, "INT"), ("p", "STRING"), ("v", "INT"), ("d", "DOUBLE"), ("m", "MAP<STRING, INT>")]


def options_of(source: random.Random, producer: str, engine: str) -> dict[str, str]:
    options = {"changelog-producer": producer, "file.format": source.choice(FORMATS)}
    if engine == "first-row":
        options["merge-engine"] = engine
    elif engine == "deduplicate" and source.random() < 0.5:
        options["sequence.field"] = "v"
        options["sequence.field.sort-order"] = source.choice(["ascending", "descending"])
    if producer != "full-compaction" and engine != "first-row" and source.random() < 0.4:
        options["deletion-vectors.enabled"] = "true"
    if producer != "input" and source.random() < 0.4:
        options["changelog-producer.row-deduplicate"] = "true"
    chances = (
        ("bucket", source.choice(["1", "2", "-1"]), 1.0),
        ("write-only", "true", 0.3),
        ("write-buffer-size", "1 b", 0.3),
        ("changelog-file.format", source.choice(["orc", "avro"]), 0.3),
        ("changelog-file.prefix", "told-", 0.2),
        ("changelog-file.stats-mode", "none", 0.2),
        ("data-file.thin-mode", "true", 0.2),
        ("num-sorted-run.compaction-trigger", "2", 0.3),
        ("target-file-size", "1 kb", 0.2),
        ("full-compaction.delta-commits", "3", 0.3 if producer == "full-compaction" else 0.0),
    )
    return options | {name: value for name, value, chance in chances if source.random() < chance}


def rows_of(source: random.Random, step: int) -> list[Row]:
    return [
        {
            KEY: source.randint(0, 12),
            "p": source.choice("ab"),
            "v": source.choice([None, 1, 2, step]),
            "d": source.choice([None, 0.0, -0.0, float("nan"), 1.5]),
            "m": source.choice([None, {}, {"x": 1, "y": None}]),
        }
        for _ in range(source.randint(1, 14))
    ]


ENGINES = ("deduplicate", "aggregation", "partial-update")
CASES = [*((producer, engine) for producer in PRODUCERS for engine in ENGINES), ("lookup", "first-row")]


@pytest.mark.parametrize(("producer", "engine"), CASES)
def test_a_replay_gives_the_table(monkeypatch: pytest.MonkeyPatch, producer: str, engine: str) -> None:
    for seed in range(FIRST_SEED, FIRST_SEED + examples(3)):
        source = random.Random(f"{producer} {engine} {seed}")
        options = options_of(source, producer, engine)
        compact_by(monkeypatch, source.choice(WAYS))
        try:
            _run(source, producer, engine, seed, options)
        except Exception as error:
            error.add_note(f"seed {seed}: {options}")
            raise


def _run(source: random.Random, producer: str, engine: str, seed: int, options: dict[str, str]) -> None:
    lake = Lake(MemoryStore())
    lake.create_database("d")
    given = EngineTable(seed, engine) if engine in ("aggregation", "partial-update") else None
    partitions = ["p"] if given is None and source.random() < 0.4 else []
    columns = COLUMNS if given is None else given.columns
    key = [KEY, *partitions]
    table = lake.create_table(
        "d.t",
        columns,
        primary_key=key,
        partitioned_by=partitions,
        options={**options, **(given.options if given else {})},
    )
    written: list[tuple[str, str]] = []
    for step in range(STEPS):
        if source.random() < 0.2:
            table.compact(full=source.random() < 0.6)
        else:
            rows = rows_of(source, step) if given is None else given.rows()
            kinds = [row.pop("_kind") for row in rows] if given else _kinds(source, engine, len(rows))
            schema = table.scan().to_arrow().schema
            batch = pa.table({field.name: [row[field.name] for row in rows] for field in schema}, schema)
            table.write(batch, kinds=kinds)
            written += zip(kinds, map(_text, batch.to_pylist()), strict=True)
    if producer == "input":
        if options.get("deletion-vectors.enabled") != "true":
            told = [(change.pop("_row_kind"), _text(change)) for change in _changes(table, 0)]
            assert sorted(told) == sorted(written)
        return
    table.compact(full=producer == "full-compaction")
    _check_versions(
        table, key, everything=options.get("write-only") != "true" and "full-compaction.delta-commits" not in options
    )


def _kinds(source: random.Random, engine: str, count: int) -> list[str]:
    return ["+I" if engine == "first-row" else source.choice(["+I", "+I", "+U", "-D", "-U"]) for _ in range(count)]


def _check_versions(table: Table, key: list[str], *, everything: bool) -> None:
    """Replays snapshot by snapshot; versions in which all rows are told of are compared with the table's rows then."""
    state: State = {}
    last = table.latest_snapshot()
    assert last is not None
    for snapshot in sorted(table.snapshots(), key=lambda one: one.id):
        for change in _changes(table, snapshot.id - 1, snapshot.id):
            kind, place = change.pop("_row_kind"), tuple(change[name] for name in key)
            if kind in ("-U", "-D"):
                assert state.pop(place, None) == _text(change), (snapshot.id, kind, change)
            else:
                assert place not in state, (snapshot.id, kind, change)
                state[place] = _text(change)
        waits = everything and snapshot.commit_kind.value == "COMPACT"
        if waits or snapshot.id == last.id:
            rows = table.scan(version=snapshot.id).to_arrow().to_pylist()
            assert sorted(state.values()) == sorted(map(_text, rows)), snapshot.id


def _changes(table: Table, start: int, end: int | None = None) -> list[Row]:
    found: list[Row] = table.changes(start, end).to_pylist()
    return found


def _text(row: Row) -> str:
    return repr(sorted(row.items()))
