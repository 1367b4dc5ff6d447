"""$audit_log, $binlog and $ro."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lakelet.catalog.lake import Lake
from lakelet.catalog.names import split_name
from lakelet.errors import InvalidError
from lakelet.sql.context import Context
from lakelet.sql.query.relation import Rows
from lakelet.sql.system import system_relation
from lakelet.sql.system.change_log import changes_relation
from lakelet.storage.memory import MemoryStore
from lakelet.table import Table
from tests.unit.sql.relation_rows import arrow_of, system_rows


@pytest.fixture
def lake() -> Lake:
    made = Lake(MemoryStore())
    made.create_database("d")
    return made


def keyed(lake: Lake, **options: str) -> Table:
    options = {"bucket": "1", "write-only": "true"} | options
    return lake.create_table("d.t", [("id", "INT"), ("v", "INT")], primary_key=["id"], options=options)


def put(table: Table, ids: Sequence[int], v: int, kinds: Sequence[str] | None = None) -> None:
    table.write([{"id": id_, "v": v} for id_ in ids], kinds=kinds)


def audited(rows: list[dict[str, Any]]) -> list[tuple[str, Any, Any]]:
    return sorted((row["rowkind"], row["id"], row["v"]) for row in rows)


def test_state_of_a_keyed_table(lake: Lake) -> None:
    table = keyed(lake)
    put(table, range(4), 0)
    put(table, [0, 1, 2], 1, ["-D", "+U", "+I"])
    expected = [("+I", 2, 1), ("+I", 3, 0), ("+U", 1, 1), ("-D", 0, 1)]
    assert audited(system_rows(lake, "d.t$audit_log")) == expected
    assert audited(system_rows(lake, "d.t$binlog")) == [(kind, [id_], [v]) for kind, id_, v in expected]
    assert audited(system_rows(lake, "d.t$audit_log", version=1)) == [("+I", id_, 0) for id_ in range(4)]
    table.compact(full=True)
    assert audited(system_rows(lake, "d.t$audit_log")) == [("+I", 2, 1), ("+I", 3, 0), ("+U", 1, 1)]


def test_state_of_an_append_table(lake: Lake) -> None:
    table = lake.create_table("d.t", [("id", "INT"), ("v", "INT")])
    assert system_rows(lake, "d.t$audit_log") == []
    put(table, range(2), 0)
    assert audited(system_rows(lake, "d.t$audit_log")) == [("+I", 0, 0), ("+I", 1, 0)]


@pytest.mark.parametrize("primary_key", [["id"], []])
def test_conditions_spare_files(lake: Lake, primary_key: list[str]) -> None:
    options = {"bucket": "1", "write-only": "true"} if primary_key else {}
    table = lake.create_table("d.t", [("id", "INT"), ("v", "INT")], primary_key=primary_key, options=options)
    put(table, range(10), 0)
    put(table, range(100, 110), 1)
    relation = system_relation(Context(lake), split_name(["d", "t$audit_log"], "d"))
    assert isinstance(relation, Rows)

    def ids(condition: pc.Expression) -> set[int]:
        return {id_ for batch in relation.read(["id"], condition) for id_ in batch.column("id").to_pylist()}

    assert ids(pc.field("id") == 3) == {3}
    # What speaks of the kind is left to whoever asks.
    assert ids((pc.field("rowkind") == "+I") & (pc.field("id") == 3)) == {*range(10), *range(100, 110)}


def test_changes(lake: Lake) -> None:
    table = keyed(lake)
    put(table, range(3), 0)
    put(table, [0, 1, 5], 1, ["-D", "+I", "+I"])
    rows = arrow_of(changes_relation(table, "audit_log", 1)).to_pylist()
    assert audited(rows) == [("+I", 5, 1), ("+U", 1, 1), ("-D", 0, 0), ("-U", 1, 0)]
    packed = arrow_of(changes_relation(table, "binlog", 1)).to_pylist()
    assert audited(packed) == [("+I", [5], [1]), ("+U", [1, 1], [0, 1]), ("-D", [0], [0])]
    assert arrow_of(changes_relation(table, "binlog", 2, 2)).num_rows == 0
    with pytest.raises(InvalidError, match=r"\$files has no changes"):
        changes_relation(table, "files", 1)


def test_an_update_is_not_cut_by_batches(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    table = keyed(lake)
    put(table, range(5), 0)
    put(table, range(4), 1)
    whole = table.changes(1)
    for size in (1, 2, 3):
        monkeypatch.setattr(
            type(table),
            "change_batches",
            lambda self, start, end, size=size: iter(whole.to_batches(max_chunksize=size)),
        )
        packed = arrow_of(changes_relation(table, "binlog", 1)).to_pylist()
        assert audited(packed) == [("+U", [id_, id_], [0, 1]) for id_ in range(4)]


def test_lone_halves_of_updates(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    table = keyed(lake)
    kinds = ["-U", "-U", "+U", "+U", "-U"]
    rows = pa.record_batch({"_row_kind": kinds, "id": pa.array(range(5), pa.int32()), "v": pa.nulls(5, pa.int32())})
    monkeypatch.setattr(type(table), "change_batches", lambda self, start, end: iter([rows]))
    packed = arrow_of(changes_relation(table, "binlog", 0)).to_pylist()
    assert [(row["rowkind"], row["id"]) for row in packed] == [("-U", [0]), ("+U", [1, 2]), ("+U", [3]), ("-U", [4])]


def test_read_optimized(lake: Lake) -> None:
    table = keyed(lake)
    put(table, range(4), 0)
    assert system_rows(lake, "d.t$ro") == []
    table.compact(full=True)
    put(table, [0, 9], 1, ["-D", "+I"])
    expected = [{"id": id_, "v": 0} for id_ in range(4)]
    assert system_rows(lake, "d.t$ro") == system_rows(lake, "d.t$read_optimized") == expected
    scan = system_relation(Context(lake), split_name(["d", "t$ro"], "d"))
    assert not isinstance(scan, Rows)
    assert scan.count() == 4
    assert all(not split.needs_merge for split in scan.plan().splits)


def test_read_optimized_append_table_is_whole(lake: Lake) -> None:
    table = lake.create_table("d.t", [("id", "INT"), ("v", "INT")])
    put(table, range(2), 0)
    assert len(system_rows(lake, "d.t$ro")) == 2
