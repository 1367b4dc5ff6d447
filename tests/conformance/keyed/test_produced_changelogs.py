"""The same writes on a table of Java's and on one of Lakelet's, with each changelog producer: the same changelogs."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import pytest

from lakelet.errors import InvalidError
from lakelet.table import Table
from tests.conformance.keyed_tables import spelled_changes
from tests.conformance.tables import JAVA, LAKELET, Rows, Warehouse, in_order, same, spell_table

COLUMNS = [("id", "INT"), ("p", "STRING"), ("v", "INT"), ("s", "STRING")]
SUM = {"merge-engine": "aggregation", "fields.v.aggregate-function": "sum"}
PARTIAL = {"merge-engine": "partial-update", "partial-update.remove-record-on-delete": "true"}
GROUPED = {"merge-engine": "partial-update", "fields.v.sequence-group": "s"}
ENGINES: dict[str, Mapping[str, str]] = {
    "deduplicate": {},
    "sequence": {"sequence.field": "v"},
    "aggregation": SUM,
    "partial-update": PARTIAL,
    "groups": GROUPED,
    "first-row": {"merge-engine": "first-row"},
    "vectors": {"deletion-vectors.enabled": "true"},
    "deduplicated": {"changelog-producer.row-deduplicate": "true"},
    "ignored": {
        "changelog-producer.row-deduplicate": "true",
        "changelog-producer.row-deduplicate-ignore-fields": "v",
    },
}
INSERTS_ONLY = ("first-row", "groups")
CASES = [
    *(("input", engine) for engine in ("deduplicate", "sequence", "aggregation", "vectors")),
    *(("lookup", engine) for engine in ENGINES),
    *(("full-compaction", engine) for engine in ENGINES if engine not in ("first-row", "vectors")),
]


def batch(chance: random.Random, step: int, *, deletes: bool, retracts: set[int] | None) -> tuple[Rows, list[str]]:
    """Rows with few distinct values, so that some updates change nothing; keys may be there several times. Only keys of
    `retracts` are taken back, where it is given: whether Java shows what is left of a value that never was depends on how often
    it was merged."""
    rows: Rows = []
    kinds: list[str] = []
    for _ in range(chance.randint(1, 9)):
        id_, v = chance.randint(0, 12), chance.choice([1, 2, 2, step, None])
        rows.append({"id": id_, "p": "ab"[id_ % 2], "v": v, "s": chance.choice(["x", "x", "y", None])})
        taken_back = deletes and (retracts is None or id_ in retracts)
        kinds.append(chance.choice(["+I", "+I", "+U", "-D"]) if taken_back else "+I")
    if retracts is not None:
        retracts.update(row["id"] for row in rows)
    return rows, kinds


@pytest.mark.parametrize(("producer", "engine"), CASES)
def test_the_same_writes_have_the_same_changelog(warehouse: Warehouse, producer: str, engine: str) -> None:
    chance = random.Random(f"{producer} {engine}")
    options = {"bucket": "1", "changelog-producer": producer, **ENGINES[engine]}
    names = {JAVA: "theirs", LAKELET: "ours"}
    for maker, name in names.items():
        warehouse.create(maker, name, COLUMNS, primary_key=["id", "p"], partitioned_by=["p"], options=options)
    java, folder = warehouse.java, warehouse.folder
    seen, state = dict.fromkeys(names, 0), dict[Any, Any]()
    retracts = set[int]() if engine == "aggregation" else None
    for step in range(7):
        rows, kinds = batch(chance, step, deletes=engine not in INSERTS_ONLY, retracts=retracts)
        told: dict[str, Rows] = {}
        for maker, name in names.items():
            warehouse.write(maker, name, rows, kinds=kinds)
            if maker == JAVA and producer == "full-compaction":
                java.compact(folder, f"db.{name}")
            newest = warehouse.table(name).latest_snapshot()
            assert newest is not None
            found = java.changes(folder, f"db.{name}", seen[maker] + 1, newest.id)
            told[maker], seen[maker] = found, newest.id
        same(_by_partition(told[LAKELET]), _by_partition(told[JAVA]), f"step {step}: {rows} {kinds}")
        table = warehouse.table("ours")
        if (producer, engine) != ("input", "vectors"):
            # There the rows become visible later than the changelog tells of them: `changes` compares versions.
            same(
                in_order(spelled_changes(table, 0, seen[LAKELET])),
                in_order(_all(warehouse, seen[LAKELET])),
                "read by both",
            )
            warehouse.agree("ours", readers=(LAKELET, JAVA))
        if producer != "input" and engine != "ignored":
            _replay(state, told[LAKELET])
            same(
                in_order(state.values()),
                in_order(spell_table(table.scan().to_arrow(), table.schema.fields)),
                "replayed",
            )


def _all(warehouse: Warehouse, last: int) -> Rows:
    return warehouse.java.changes(warehouse.folder, "db.ours", 1, last)


def _by_partition(rows: Rows) -> Rows:
    """Java's scan may give partitions in any order; within a bucket changes are in the order of their keys."""
    return sorted(rows, key=lambda row: str(row["p"]))


def _replay(state: dict[Any, Any], changes: Rows) -> None:
    for change in changes:
        row = {name: value for name, value in change.items() if name != "_kind"}
        if change["_kind"] in ("+I", "-U"):
            assert (row["id"] in state) == (change["_kind"] == "-U"), change
        if change["_kind"] in ("+I", "+U"):
            state[row["id"]] = row
        else:
            assert state.pop(row["id"]) == row, change


@pytest.mark.parametrize(
    ("engine", "option"),
    [
        *((engine, "changelog-producer") for engine in ("aggregation", "deduplicate", "sequence", "partial-update")),
        *((engine, "force-lookup") for engine in ("aggregation", "sequence")),
    ],
)
def test_rows_on_several_levels(warehouse: Warehouse, engine: str, option: str) -> None:
    """Java's rows on each level are whole: those that a function would count twice are refused until it has compacted."""
    options = {"bucket": "1", option: "true" if option == "force-lookup" else "lookup", **ENGINES[engine]}
    warehouse.create(JAVA, "t", COLUMNS, primary_key=["id", "p"], options=options)
    warehouse.write(JAVA, "t", [{"id": id_, "p": "a", "v": 1, "s": "x" * 50} for id_ in range(2000)])
    warehouse.java.compact(warehouse.folder, "db.t")
    for step in range(2):
        warehouse.write(JAVA, "t", [{"id": id_, "p": "a", "v": step, "s": None} for id_ in range(step, step + 5)])
    levels = {file.level for _, file in warehouse.table("t").files()}
    assert len(levels) > 1
    if engine == "aggregation":
        for read in (
            lambda table: table.scan().to_arrow(),
            lambda table: table.get({"id": 1, "p": "a"}),
            Table.compact,
        ):
            with pytest.raises(InvalidError, match="'sum' would count their values twice"):
                read(warehouse.table("t"))
        warehouse.java.compact(warehouse.folder, "db.t")
    warehouse.agree("t", readers=(LAKELET, JAVA))
    warehouse.write(LAKELET, "t", [{"id": id_, "p": "a", "v": 1, "s": None} for id_ in range(3, 9)])
    warehouse.agree("t", readers=(LAKELET, JAVA))
