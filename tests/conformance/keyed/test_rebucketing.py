"""Rows that Lakelet moves to other buckets: all readers see them, all writers go on, and Java's own compaction mixes with it."""

from __future__ import annotations

from typing import Any

import pytest

from lakelet.clock import SystemClock
from tests.conformance.keyed.test_keyed_modes import COLUMNS, kinds, rows
from tests.conformance.keyed_tables import KeyedTable
from tests.conformance.line_process import HarnessError
from tests.conformance.tables import JAVA, LAKELET, NATIVE, PYTHON, Warehouse, same, spell_rows
from tests.unit.compact.keyed_tables import places

POSTPONED = {"bucket": "-2", "postpone.default-bucket-num": "3"}


def compacted(made: KeyedTable, *, full: bool = False) -> None:
    made.table.compact(full=full)
    made.model.compacted()
    made.note()


# ---------------------------------------------------------------- postponed buckets


@pytest.mark.parametrize("creator", [LAKELET, JAVA])
@pytest.mark.parametrize("partitioned_by", [[], ["p"]], ids=["plain", "partitioned"])
def test_waiting_rows_of_all_writers_get_buckets(warehouse: Warehouse, creator: str, partitioned_by: list[str]) -> None:
    made = KeyedTable(warehouse, creator, "t", COLUMNS, ["id", "p"], partitioned_by=partitioned_by, options=POSTPONED)
    for number, writer in enumerate((LAKELET, JAVA, PYTHON, NATIVE, LAKELET)):
        made.write(writer, rows(range(number * 5, number * 5 + 12), number))
    made.write(JAVA, rows(range(6, 14), 7), kinds(8))
    compacted(made)
    made.check()
    made.check_ordered()
    assert {bucket for _, bucket in made.buckets().values()} == {0, 1, 2}
    latest = warehouse.java.snapshots(warehouse.folder, made.full_name)[-1]
    assert latest["commitKind"] == "COMPACT"

    # Java's compaction takes over, and then ours again.
    made.write(LAKELET, rows(range(3, 9), 8))
    warehouse.java.compact(warehouse.folder, made.full_name, postponed_into=3)
    made.model.compacted()
    made.note()
    made.check()
    made.write(JAVA, rows(range(5, 30, 4), 9))
    made.write(PYTHON, rows(range(6, 30, 4), 9))
    compacted(made, full=True)
    made.check()
    made.check_get(rows(range(40), 0))


@pytest.mark.parametrize(
    "options", [{"deletion-vectors.enabled": "true"}, {"merge-engine": "first-row"}], ids=["vectors", "first-row"]
)
def test_rows_show_where_level_0_is_hidden(warehouse: Warehouse, options: dict[str, str]) -> None:
    warehouse.create(
        JAVA, "t", COLUMNS, primary_key=["id", "p"], partitioned_by=["p"], options={**POSTPONED, **options}
    )
    first = {row["id"]: row for row in rows(range(10), 1)}
    later = {row["id"]: row for row in rows(range(5, 15), 2)}
    warehouse.write(JAVA, "t", list(first.values()))
    warehouse.table("t").compact()
    warehouse.write(LAKELET, "t", list(later.values()))
    warehouse.table("t").compact()
    expected = {**later, **first} if "merge-engine" in options else {**first, **later}
    table = warehouse.table("t")
    same(warehouse.agree("t"), spell_rows(list(expected.values()), table.schema.fields), "all readers")


# ---------------------------------------------------------------- another number of buckets

LAYOUTS: dict[str, dict[str, Any]] = {
    "plain": {"options": {"bucket": "2"}},
    "partitioned": {"options": {"bucket": "2"}, "partitioned_by": ["p"]},
    "vectors": {"options": {"bucket": "2", "deletion-vectors.enabled": "true"}, "partitioned_by": ["p"]},
    "thin": {"options": {"bucket": "2", "data-file.thin-mode": "true", "bucket-key": "id"}},
}


@pytest.mark.parametrize("layout", list(LAYOUTS))
def test_rescaled_tables_are_read_and_written_on(warehouse: Warehouse, layout: str) -> None:
    options = LAYOUTS[layout]
    made = KeyedTable(warehouse, JAVA, "t", COLUMNS, ["id", "p"], **{"partitioned_by": [], **options})
    # pypaimon writes no deletion vectors, and its rows would stay hidden.
    writers = (LAKELET, JAVA) if layout == "vectors" else (LAKELET, JAVA, PYTHON, NATIVE)
    for number, buckets in enumerate((5, 1, 4)):
        for turn, writer in enumerate(writers):
            made.write(writer, rows(range(turn * 4 + number, turn * 4 + number + 12), number * 10 + turn))
        made.write(JAVA, rows(range(number * 3, number * 3 + 8), 100 + number), kinds(8))
        made.table.rescale(buckets)
        made.model.compacted()
        made.note()
        made.check()
        assert {total for _, total in places(made.table)} == {buckets}
        assert warehouse.java.schema(warehouse.folder, made.full_name)["options"]["bucket"] == str(buckets)
        assert warehouse.java.snapshots(warehouse.folder, made.full_name)[-1]["commitKind"] == "OVERWRITE"
        own, keys = made.buckets(), list(made.model.rows)
        theirs = warehouse.java.buckets(warehouse.folder, made.full_name, [made.model.rows[key] for key in keys])
        assert [own[key][1] for key in keys] == theirs
    made.write(JAVA, rows(range(0, 40, 3), 200))
    made.compact()
    made.check()
    made.check_get(rows(range(40), 0))


def test_java_refuses_a_partition_that_is_left_behind(warehouse: Warehouse) -> None:
    made = KeyedTable(warehouse, JAVA, "t", COLUMNS, ["id", "p"], partitioned_by=["p"], options={"bucket": "2"})
    made.write(JAVA, rows(range(20), 0))
    made.table.rescale(3, {"p": "a"})
    made.check()
    made.write(JAVA, rows(range(0, 20, 2), 1, "a"))
    with pytest.raises(HarnessError, match="bucket"):
        warehouse.write(JAVA, "t", rows(range(3), 2, "b"))
    made.check()
    made.table.rescale(3)
    made.write(JAVA, rows(range(20), 3))
    made.check()


def test_append_tables(warehouse: Warehouse) -> None:
    columns = [("id", "BIGINT"), ("s", "STRING")]
    warehouse.create(JAVA, "t", columns, options={"bucket": "2", "bucket-key": "id"})
    written = []
    for number, buckets in enumerate((3, 1, 4)):
        for turn, writer in enumerate((JAVA, LAKELET, PYTHON, NATIVE)):
            given = [{"id": id_ % 7, "s": f"{number}/{turn}/{id_}"} for id_ in range(9)]
            warehouse.write(writer, "t", given)
            written += given
        table = warehouse.table("t")
        table.rescale(buckets)
        same(warehouse.agree("t"), spell_rows(written, table.schema.fields), f"all readers after {buckets}")


def test_rows_of_append_tables_stay_in_order(warehouse: Warehouse) -> None:
    """The native writer counts the rows of each file from 0, so that its rows have no order among the others."""
    warehouse.create(JAVA, "t", [("id", "BIGINT"), ("s", "STRING")], options={"bucket": "2", "bucket-key": "id"})
    written = []
    for number, buckets in enumerate((3, 1, 4)):
        for turn, writer in enumerate((JAVA, LAKELET, PYTHON, JAVA)):
            given = [{"id": id_ % 7, "s": f"{number}/{turn}/{id_}"} for id_ in range(9)]
            warehouse.write(writer, "t", given)
            written += [row["s"] for row in given if row["id"] == 1]
        warehouse.table("t").rescale(buckets)
        assert [row["s"] for row in warehouse.java.read(warehouse.folder, "db.t") if row["id"] == 1] == written


def test_java_rescales_what_lakelet_left_behind(warehouse: Warehouse) -> None:
    """Java's way: the option first, then an overwrite of every partition by its own rows; ours takes over from the middle."""
    made = KeyedTable(warehouse, LAKELET, "t", COLUMNS, ["id", "p"], partitioned_by=["p"], options={"bucket": "2"})
    made.write(LAKELET, rows(range(20), 0))
    warehouse.java.alter(warehouse.folder, made.full_name, {"op": "option", "key": "bucket", "value": "3"})
    own = [row for row in rows(range(20), 0) if row["p"] == "a"]
    warehouse.write(JAVA, "t", own, overwrite={"p": "a"})
    made.note()
    made.check()
    assert {total for _, total in places(made.table)} == {2, 3}
    assert made.table.rescale(3) is not None
    made.note()
    made.check()
    made.write(JAVA, rows(range(20), 1))
    made.check()


# ---------------------------------------------------------------- record-level expiry


@pytest.mark.parametrize(("at", "scale"), [("INT", 1), ("BIGINT", 1), ("BIGINT", 1000)])
def test_java_and_lakelet_drop_the_same_rows(warehouse: Warehouse, at: str, scale: int) -> None:
    now = SystemClock().now_ms() // 1000
    options = {
        "bucket": "1",
        "record-level.expire-time": "1 h",
        "record-level.time-field": "at",
        "write-only": "true",
    }
    columns = [("id", "BIGINT"), ("at", at)]
    left = {}
    for compactor in (JAVA, LAKELET):
        name = f"t_{compactor}"
        warehouse.create(JAVA, name, columns, primary_key=["id"], options=options)
        ages = [0, 1800, 3540, 3700, 7200, 400_000]
        given = [{"id": id_, "at": (now - age) * scale} for id_, age in enumerate(ages)]
        warehouse.write(JAVA, name, [*given, {"id": 99, "at": None}])
        warehouse.write(LAKELET, name, [{"id": 50 + row["id"], "at": row["at"]} for row in given])
        if compactor == JAVA:
            warehouse.java.compact(warehouse.folder, f"db.{name}")
        else:
            warehouse.table(name).compact(full=True)
        left[compactor] = sorted(row["id"] for row in warehouse.agree(name))
    assert left[JAVA] == left[LAKELET]
    assert len(left[JAVA]) == 7
