"""Clustering: the same rows in another order, in which conditions prune files; with all kinds of columns, in bounded memory."""

import datetime as dt
from collections import Counter
from decimal import Decimal
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lakelet import InvalidError, Lake, Table
from lakelet.compact.cluster import cluster_rewrite
from lakelet.compact.cluster.chosen_order import RowOrdering
from lakelet.compact.cluster.cluster_order import ClusterOrder
from lakelet.compact.progress import CompactionProgress
from lakelet.storage.memory import MemoryStore
from tests.unit.read.test_split_reader import delete_rows

_SMALL_FILES = {"target-file-size": "6 kb", "file.block-size": "2 kb", "write-only": "true"}


def _lake() -> Lake:
    lake = Lake(MemoryStore())
    lake.create_database("d")
    return lake


def _points(lake: Lake, count: int = 8_000, **options: str) -> Table:
    table = lake.create_table(
        "d.t", [("id", "BIGINT"), ("x", "INT"), ("y", "DOUBLE"), ("s", "STRING")], options={**_SMALL_FILES, **options}
    )
    random = np.random.default_rng(7)
    for _ in range(4):
        rows = count // 4
        x = random.integers(0, 1000, rows)
        table.write(
            pa.table(
                {
                    "id": random.integers(0, 2**40, rows),
                    "x": pa.array(x, pa.int32(), mask=x % 97 == 0),
                    # Of another range, and skewed.
                    "y": random.exponential(1e6, rows),
                    "s": [f"a long common prefix {number}" for number in random.integers(0, 50, rows)],
                }
            )
        )
    return table


def _counted(table: Table) -> Counter[Any]:
    return Counter(tuple(row.values()) for row in table.scan().to_arrow().to_pylist())


def _share(table: Table, where: str) -> float:
    """The share of a table's files that a scan reads."""
    plan = table.scan(where=where).plan()
    return sum(len(split.files) for split in plan.splits) / plan.files_total


@pytest.mark.parametrize("held_bytes", [1 << 30, 60_000])
@pytest.mark.parametrize("strategy", ["zorder", "hilbert", "order"])
def test_conditions_prune_files(strategy: str, held_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In memory and by ranges on disk: of two columns both prune along a curve, the first alone in plain order."""
    monkeypatch.setattr(cluster_rewrite.ClusterRewriter.__init__, "__defaults__", (held_bytes,))
    table = _points(_lake())
    before, files = _counted(table), len(table.files())
    conditions = ("x BETWEEN 100 AND 120", "y < 20000")
    assert all(_share(table, where) > 0.9 for where in conditions)
    snapshot = table.compact(order_strategy=strategy, order_by=["x", "y"])
    assert snapshot is not None
    assert snapshot.commit_kind.value == "COMPACT"
    assert _counted(table) == before
    assert len(table.files()) >= files // 2
    shares = [_share(table, where) for where in conditions]
    assert shares[0] < (0.15 if strategy == "order" else 0.45), shares
    assert shares[1] > 0.6 if strategy == "order" else shares[1] < 0.45, shares
    assert table.changes(snapshot.id - 1, snapshot.id).num_rows == 0


def test_plain_order_is_exact_across_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_rewrite.ClusterRewriter.__init__, "__defaults__", (30_000,))
    table = _points(_lake())
    table.compact(order_strategy="order", order_by=["s", "x", "id"])
    rows = table.scan(["s", "x", "id"]).to_arrow().to_pylist()
    keys = [(row["s"], row["x"] is not None, row["x"] or 0, row["id"]) for row in rows]
    # Files of a table without buckets have no order among them: each is sorted, and they do not overlap.
    assert sum(one > other for one, other in pairwise(keys)) < len(table.files())


def test_every_type_orders_with_null_first() -> None:
    values: dict[str, list[Any]] = {
        "BOOLEAN": [None, False, True],
        "TINYINT": [None, -128, 0, 127],
        "DOUBLE": [None, float("-inf"), -1.5, 0.0, 7.0, float("inf"), float("nan")],
        "DECIMAL(38, 2)": [None, Decimal("-1e20"), Decimal("0.01"), Decimal("1e30")],
        "DATE": [None, dt.date(1, 1, 1), dt.date(2024, 1, 1)],
        "TIMESTAMP(6)": [None, dt.datetime(1900, 1, 1), dt.datetime(2024, 1, 1)],
        "STRING": [None, "", "a", "a\x00", "ab", "z" * 300, "é"],
        "BYTES": [None, b"", b"\x00", b"\xff"],
        "TIME(3)": [None, dt.time(0), dt.time(23)],
    }
    for text, expected in values.items():
        lake = _lake()
        table = lake.create_table("d.t", [("v", text), ("id", "INT")])
        kind = table.scan().arrow_schema.field("v").type
        shuffled = np.random.default_rng(3).permutation(len(expected))
        column = pa.array([expected[place] for place in shuffled], kind)
        table.write(pa.table({"v": column, "id": pa.array(shuffled, pa.int32())}))
        for strategy in ("order", "zorder", "hilbert"):
            table.compact(order_strategy=strategy, order_by=["v"])
            assert table.scan(["id"]).to_arrow().column(0).to_pylist() == list(range(len(expected))), (text, strategy)


def test_equal_rows_are_not_divided(monkeypatch: pytest.MonkeyPatch) -> None:
    """No bound divides them, and more of them than memory may hold are written as they come."""
    monkeypatch.setattr(cluster_rewrite.ClusterRewriter.__init__, "__defaults__", (10_000,))
    table = _lake().create_table("d.t", [("a", "INT"), ("b", "BIGINT")], options=_SMALL_FILES)
    table.write(pa.table({"a": pa.array([5] * 20_000, pa.int32()), "b": range(20_000)}))
    for strategy in ("order", "hilbert"):
        table.compact(order_strategy=strategy, order_by=["a"])
        assert sorted(table.scan(["b"]).to_arrow().column(0).to_pylist()) == list(range(20_000))


def test_partitions_deleted_rows_and_evolved_columns() -> None:
    """Each partition is clustered by itself; rows that were deleted are left out, and older files get the new columns."""
    table = _lake().create_table("d.t", [("p", "STRING"), ("v", "INT")], partitioned_by=["p"])
    table.write(pa.table({"p": ["a"] * 100 + [None] * 100, "v": pa.array(range(200), pa.int32())}))
    table.rename_column("v", "w")
    table.change_type("w", "BIGINT")
    table.add_column("x", "STRING")
    table.write(pa.table({"p": ["a"] * 50, "w": range(50), "x": ["new"] * 50}))
    delete_rows(table, {table.files()[0][1].name: [0, 1]})
    before = _counted(table)
    states: list[CompactionProgress] = []
    snapshot = table.compact(order_strategy="ORDER", order_by=["w"], partition={"p": "a"}, progress=states.append)
    assert snapshot is not None
    assert _counted(table) == before
    assert {file.schema_id for path, file in table.files() if "p=a" in path} == {table.schema.id}
    assert {file.schema_id for path, file in table.files() if "p=a" not in path} == {0}
    assert states[-1].rows_done == states[-1].rows == 150


def test_a_concurrent_append_stays_and_a_concurrent_rewrite_conflicts(monkeypatch: pytest.MonkeyPatch) -> None:
    lake = _lake()
    table = _points(lake, 400)
    original = cluster_rewrite.ClusterRewriter.rewrite
    others: list[Any] = [lambda: table.write([{"id": 1, "x": 1}]), lambda: table.compact(full=True)]

    def disturbed(self: Any, *arguments: Any) -> Any:
        made = original(self, *arguments)
        if others:
            others.pop(0)()
        return made

    monkeypatch.setattr(cluster_rewrite.ClusterRewriter, "rewrite", disturbed)
    table.compact(order_strategy="order", order_by=["x"])
    assert table.scan().count() == 401
    before = _counted(table)
    table.compact(order_strategy="order", order_by=["x"])
    assert _counted(table) == before
    assert not others


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"order_strategy": "hilbrt", "order_by": ["x"]}, "expected none, order, zorder, hilbert"),
        ({"order_strategy": "zorder"}, "needs order_by"),
        ({"order_by": ["x"]}, "order_strategy is to be"),
        ({"order_strategy": "zorder", "order_by": ["x", "x"]}, "each once"),
        ({"order_strategy": "zorder", "order_by": ["X"]}, "no such column; there are id, x, y, s"),
    ],
)
def test_wrong_arguments(arguments: dict[str, Any], message: str) -> None:
    table = _points(_lake(), 40)
    with pytest.raises(InvalidError, match=message):
        table.compact(**arguments)


def test_tables_whose_rows_have_an_order_already() -> None:
    lake = _lake()
    keyed = lake.create_table("d.k", [("id", "INT")], primary_key=["id"], options={"bucket": "1"})
    fixed = lake.create_table("d.f", [("id", "INT")], options={"bucket": "2", "bucket-key": "id"})
    nested = lake.create_table("d.n", [("id", "INT"), ("l", "ARRAY<INT>")])
    for table, column, message in ((keyed, "id", "primary key"), (fixed, "id", "has buckets"), (nested, "l", "ARRAY")):
        with pytest.raises(InvalidError, match=message):
            table.compact(order_strategy="order", order_by=[column])
    assert lake.table("d.n").compact(order_strategy="order", order_by=["id"]) is None


def test_ranges_hold_what_their_bounds_say() -> None:
    """Of several columns with text, by a search over rows of words."""
    table = _points(_lake(), 2_000)
    rows = table.scan().to_arrow()
    for strategy in ("order", "zorder"):
        order = ClusterOrder.of(RowOrdering(strategy, ("s", "x", "id")), table.schema, rows)
        ranges = order.ranges(rows, order.bounds(8))
        along = ranges[order.permutation(rows)]
        assert (np.diff(along) >= 0).all()
        assert len(np.unique(ranges)) == 8
        assert np.bincount(ranges).max() < 400


def test_by_a_call() -> None:
    lake = _lake()
    table = _points(lake)
    before = _counted(table)
    found = lake.sql("CALL sys.compact(`table` => 'd.t', order_strategy => 'zorder', order_by => 'x,y')").to_arrow()
    assert found.column("rows_read").to_pylist() == [8_000]
    assert _counted(table) == before
    assert _share(table, "y < 20000") < 0.45
    with pytest.raises(InvalidError, match="no such column"):
        lake.sql("CALL sys.compact(`table` => 'd.t', order_strategy => 'zorder', order_by => 'q')")
