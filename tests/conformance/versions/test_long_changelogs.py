"""Changelogs that outlive their snapshots: each reads what the other has left of the changes of expired snapshots."""

from __future__ import annotations

import time
from collections.abc import Mapping

import pytest

from tests.conformance.keyed_tables import spelled_changes
from tests.conformance.tables import DATABASE, JAVA, LAKELET, Rows, Warehouse, same
from tests.conformance.versions.test_cleaning import copy, expire, files, java

COLUMNS = [("id", "INT"), ("p", "STRING"), ("v", "INT")]
LONG = {"changelog.num-retained.min": "4", "changelog.num-retained.max": "100"}
SUM = {"merge-engine": "aggregation", "fields.v.aggregate-function": "sum"}
KINDS: dict[str, Mapping[str, str]] = {
    "append": {},
    "input": {"changelog-producer": "input"},
    "lookup": {"changelog-producer": "lookup"},
    "lookup of sums": {"changelog-producer": "lookup", **SUM},
    "full-compaction": {"changelog-producer": "full-compaction"},
    "vectors": {"changelog-producer": "lookup", "deletion-vectors.enabled": "true"},
    "first-row": {"changelog-producer": "lookup", "merge-engine": "first-row"},
}


def rows(step: int) -> Rows:
    return [{"id": id_, "p": "ab"[id_ % 2], "v": step} for id_ in range(step, step + 4)]


def filled(warehouse: Warehouse, kind: str, writer: str) -> int:
    """A table of six writes; its last snapshot."""
    key = [] if kind == "append" else ["id", "p"]
    bucket = {} if kind == "append" else {"bucket": "1"}
    warehouse.create(writer, "t", COLUMNS, primary_key=key, partitioned_by=["p"], options={**bucket, **KINDS[kind]})
    for step in range(6):
        warehouse.write(writer, "t", rows(step))
        if writer == JAVA and kind == "full-compaction":
            warehouse.java.compact(warehouse.folder, f"{DATABASE}.t")
    newest = warehouse.table("t").latest_snapshot()
    assert newest is not None
    return newest.id


def told(warehouse: Warehouse, reader: str, name: str, start: int, end: int) -> Rows:
    """The changes of snapshots (start, end]."""
    if reader == JAVA:
        return warehouse.java.changes(warehouse.folder, f"{DATABASE}.{name}", start + 1, end)
    return spelled_changes(warehouse.table(name), start, end)


@pytest.mark.parametrize("writer", [JAVA, LAKELET])
@pytest.mark.parametrize("kind", KINDS)
def test_both_read_changes_of_expired_snapshots(warehouse: Warehouse, kind: str, writer: str) -> None:
    last = filled(warehouse, kind, writer)
    expected = {start: told(warehouse, JAVA, "t", start, last) for start in range(last)}
    for start, rows_ in expected.items():
        same(told(warehouse, LAKELET, "t", start, last), rows_, f"{kind}: ({start}, {last}]")
    for name in ("theirs", "ours"):
        copy(warehouse, name)
        kept = {"snapshot.num-retained.min": "2", "snapshot.num-retained.max": "2"}
        warehouse.table(name).set_options({**kept, **LONG})
    java(warehouse, "expire-by-options", "theirs")
    expire(warehouse, "ours")
    assert files(warehouse, "ours") == files(warehouse, "theirs")
    for name in ("theirs", "ours"):
        assert [snapshot.id for snapshot in warehouse.table(name).snapshots()] == [last - 1, last]
        assert warehouse.table(name).remove_orphan_files("0 s", dry_run=True).count == 0
        assert java(warehouse, "orphans", name, int(time.time() * 1000) + 86_400_000) == []
        for start, rows_ in expected.items():
            for reader in (JAVA, LAKELET):
                same(
                    told(warehouse, reader, name, start, last),
                    rows_,
                    f"{reader} reads {name} of {kind}: ({start}, {last}]",
                )
