"""Primary-key tables in every bucket mode: writers take turns, readers agree with the model, rows stay in their buckets."""

from __future__ import annotations

import re
from typing import Any

import pytest

from lakelet.format.index.hash_index import decode_hash_index
from tests.conformance.keyed_tables import KeyedTable
from tests.conformance.line_process import HarnessError
from tests.conformance.tables import DATABASE, JAVA, LAKELET, NATIVE, PYTHON, WRITERS, Rows, Warehouse, same

COLUMNS = [("id", "BIGINT"), ("p", "STRING"), ("v", "INT"), ("s", "STRING")]
SMALL_BUCKETS = {"dynamic-bucket.target-row-num": "4"}


def rows(ids: range, v: int, *partitions: str) -> Rows:
    given = partitions or ("a", "b")
    return [
        {"id": id_, "p": given[id_ % len(given)], "v": v, "s": None if id_ % 4 == 0 else f"{v}/{id_}"} for id_ in ids
    ]


def kinds(count: int) -> list[str]:
    return [["+I", "-D", "+U", "-U"][number % 4] for number in range(count)]


LAYOUTS: dict[str, dict[str, Any]] = {
    "fixed": {"options": {"bucket": "3"}},
    "fixed-partitioned": {"options": {"bucket": "2"}, "partitioned_by": ["p"]},
    "fixed-bucket-key": {"options": {"bucket": "3", "bucket-key": "p"}},
    "thin": {"options": {"bucket": "2", "data-file.thin-mode": "true"}},
    "dynamic": {"options": SMALL_BUCKETS},
    "dynamic-partitioned": {"options": SMALL_BUCKETS, "partitioned_by": ["p"]},
}


@pytest.mark.parametrize("layout", list(LAYOUTS))
def test_writers_take_turns(warehouse: Warehouse, layout: str) -> None:
    """Upserts by all four, deletes by Lakelet and Java, a compaction in between: nobody loses or revives a row."""
    made = KeyedTable(warehouse, LAKELET, "t", COLUMNS, ["id", "p"], **{"partitioned_by": [], **LAYOUTS[layout]})
    places: dict[str, Any] = {}
    for number, writer in enumerate((LAKELET, JAVA, PYTHON, NATIVE, LAKELET)):
        made.write(writer, rows(range(number * 5, number * 5 + 12), number))
        if number == 2:
            made.compact()
        if writer in (LAKELET, JAVA):
            made.write(writer, rows(range(number * 3, number * 3 + 8), 100 + number), kinds(8))
        made.check(made.readers if number % 2 else (LAKELET, JAVA))
        now = made.buckets()
        moved = {key for key in places.keys() & now.keys() if places[key] != now[key]}
        assert not moved, f"{writer} moved {moved}"
        places |= now
    made.delete(rows(range(4, 40, 3), 0))
    made.check()
    made.check_ordered()
    made.check_get([*rows(range(30, -4, -1), 0), *rows(range(5), 0, "none")])
    made.check_where("id > 7 AND id <= 20", ["id > 7", "id <= 20"], lambda row: 7 < row["id"] <= 20)
    made.check_where("v = 4", ["v = 4"], lambda row: row["v"] == 4)
    made.check_where("s IS NULL AND p = 'a'", ["s isnull", "p = a"], lambda row: row["s"] is None and row["p"] == "a")
    made.check_history(most=3)


@pytest.mark.parametrize("mode", ["dynamic", "dynamic-partitioned"])
@pytest.mark.parametrize("first", [LAKELET, JAVA, PYTHON, NATIVE])
def test_dynamic_buckets_go_on_where_another_stopped(warehouse: Warehouse, mode: str, first: str) -> None:
    """The hash index of one writer tells the next where each key is, and how much room a bucket has."""
    made = KeyedTable(warehouse, LAKELET, "t", COLUMNS, ["id", "p"], **{"partitioned_by": [], **LAYOUTS[mode]})
    made.write(first, rows(range(9), 0))
    places = made.buckets()
    for number, second in enumerate(writer for writer in WRITERS if writer != first):
        # All keys there are, and as many new ones that fill the last bucket up and open others.
        made.write(second, rows(range((number + 2) * 7), number + 1))
        now = made.buckets()
        assert {key: now[key] for key in places} == places, second
        places = now
        check_index(made)
    made.check()
    sizes: dict[Any, int] = {}
    for place in places.values():
        sizes[place] = sizes.get(place, 0) + 1
    assert max(sizes.values()) <= 4
    assert len(sizes) >= 7


def check_index(made: KeyedTable) -> None:
    """Every bucket's hash index holds the hashes of its keys and no others, by Java's own hash."""
    found = made.warehouse.java.read(made.warehouse.folder, f"{made.full_name}$table_indexes")
    listed = {(entry["partition"], entry["bucket"]): entry for entry in found if entry["index_type"] == "HASH"}
    places = made.buckets()
    live = list(made.model.rows.values())
    hashes = made.warehouse.java.buckets(made.warehouse.folder, made.full_name, live)
    indexed: list[int] = []
    for entry in listed.values():
        name = entry["file_name"]
        data = next(made.warehouse.path(made.name).rglob(name)).read_bytes()
        decoded = decode_hash_index(data, path=name).tolist()
        assert len(decoded) == entry["row_count"]
        indexed += decoded
    assert len(listed) == len(set(places.values()))
    assert set(hashes) <= set(indexed)
    assert len(indexed) == len(set(places))


def test_cross_partition_rows_move(warehouse: Warehouse) -> None:
    """KEY_DYNAMIC: Java and pypaimon cannot write such a table without an engine, but they read what Lakelet wrote."""
    made = KeyedTable(warehouse, LAKELET, "t", COLUMNS, ["id"], partitioned_by=["p"], options=SMALL_BUCKETS)
    made.write(LAKELET, rows(range(20), 0))
    made.write(LAKELET, rows(range(5, 25), 1, "b", "c"))
    made.check()
    made.write(LAKELET, rows(range(10, 18), 2, "a"), kinds(8))
    made.delete(rows(range(0, 30, 3), 0, "nowhere"))
    made.check()
    made.compact()
    made.check()
    made.write(LAKELET, rows(range(0, 30, 2), 3, "d"))
    made.check()
    made.buckets()
    made.check_get(rows(range(35), 0, "elsewhere"))
    made.check_where("p = 'd'", ["p = d"], lambda row: row["p"] == "d")
    made.check_history()


def test_the_native_writer_moves_rows_too(warehouse: Warehouse) -> None:
    made = KeyedTable(warehouse, LAKELET, "t", COLUMNS, ["id"], partitioned_by=["p"], options=SMALL_BUCKETS)
    for number, writer in enumerate((LAKELET, NATIVE, LAKELET, NATIVE)):
        made.write(writer, rows(range(number * 4, number * 4 + 10), number, "abcd"[number], "abcd"[3 - number]))
        made.check()
    with pytest.raises(HarnessError, match="CROSS_PARTITION"):
        warehouse.write(PYTHON, "t", rows(range(3), 9))


# ---------------------------------------------------------------- postponed buckets

NAME = re.compile(r"^data--u-(?P<user>.+)-s-(?P<id>\d+)-w-(?P<uuid>[0-9a-f-]{36})-\d+\.(?P<format>\w+)$")


@pytest.mark.parametrize("partitioned_by", [[], ["p"]], ids=["plain", "partitioned"])
def test_postponed_rows_wait_for_compaction(warehouse: Warehouse, partitioned_by: list[str]) -> None:
    """Rows of all writers are invisible, lie in files of the same name and format, and show once Java gave them buckets."""
    made = KeyedTable(
        warehouse, LAKELET, "t", COLUMNS, ["id", "p"], partitioned_by=partitioned_by, options={"bucket": "-2"}
    )
    for number, writer in enumerate((LAKELET, JAVA, PYTHON, NATIVE, LAKELET)):
        made.write(writer, rows(range(number * 5, number * 5 + 12), number))
        for reader in made.readers:
            assert warehouse.rows(reader, "t") == []
        assert made.table.scan().count() == 0
    made.write(LAKELET, rows(range(8), 7), kinds(8))
    names = [NAME.match(path.name) for path in warehouse.path("t").rglob("bucket-postpone/*")]
    partitions = max(1, 2 * len(partitioned_by))
    # All but the native writer take Avro, whatever the table's format is.
    formats = [name["format"] for name in names if name is not None]
    assert sorted(formats) == ["avro"] * 5 * partitions + ["parquet"] * partitions

    warehouse.java.compact(warehouse.folder, f"{DATABASE}.t", postponed_into=3)
    made.check()
    assert {bucket for _, bucket in made.buckets().values()} == {0, 1, 2}
    assert made.table.get({"id": 9, "p": "b"}) is not None

    # What is written later waits again, beside the rows that show.
    before = made.model.found()
    warehouse.write(LAKELET, "t", rows(range(50, 55), 9))
    for reader in made.readers:
        same(warehouse.rows(reader, "t"), before, reader)
    warehouse.java.compact(warehouse.folder, f"{DATABASE}.t", postponed_into=3)
    made.model.write(rows(range(50, 55), 9), made.spell(rows(range(50, 55), 9)), None)
    made.check()
    made.delete(rows(range(6, 12), 0))
    warehouse.java.compact(warehouse.folder, f"{DATABASE}.t", postponed_into=3)
    made.check()


# ---------------------------------------------------------------- overwriting


@pytest.mark.parametrize("layout", ["fixed-partitioned", "dynamic-partitioned"])
def test_overwrites_take_turns(warehouse: Warehouse, layout: str) -> None:
    made = KeyedTable(warehouse, JAVA, "t", COLUMNS, ["id", "p"], **LAYOUTS[layout])
    made.write(JAVA, rows(range(14), 0, "a", "b", "c"))
    for number, writer in enumerate((LAKELET, JAVA)):
        given = rows(range(3, 9), 10 + number, "a", "b")
        warehouse.write(writer, "t", given, overwrite=True)
        made.model.clear(lambda row: row["p"] in "ab")
        made.model.write(given, made.spell(given), None)
        made.note()
        made.check()
        made.write(JAVA if writer == LAKELET else LAKELET, rows(range(12), 20 + number, "a", "b", "c"))
        made.check()
        made.buckets()
        given = rows(range(5), 30 + number, "c")
        warehouse.write(writer, "t", given, overwrite={"p": "c"})
        made.model.clear(lambda row: row["p"] == "c")
        made.model.write(given, made.spell(given), None)
        made.note()
        made.check()
    made.check_history()


def test_kinds_from_a_column(warehouse: Warehouse) -> None:
    """`rowkind.field`: the column is written too, and says what its row does."""
    columns = [("id", "INT"), ("v", "INT"), ("op", "STRING")]
    made = KeyedTable(warehouse, LAKELET, "t", columns, ["id"], options={"bucket": "1", "rowkind.field": "op"})
    for number, writer in enumerate((LAKELET, JAVA, NATIVE, PYTHON)):
        given = [
            {"id": id_, "v": number, "op": ["+I", "+U", "-U", "-D"][(id_ + number) % 4]}
            for id_ in range(number * 3, number * 3 + 8)
        ]
        warehouse.write(writer, "t", given)
        made.model.write(given, made.spell(given), [str(row["op"]) for row in given])
        made.note()
        made.check()


def test_deletes_that_pypaimon_does_not_count(warehouse: Warehouse) -> None:
    """pypaimon's Python writer says that a file holds no delete when it does. The deletes count nevertheless, even where such
    a file stands alone; Java and pypaimon's readers show the deleted row there."""
    columns = [("id", "INT"), ("v", "INT"), ("op", "STRING")]
    made = KeyedTable(warehouse, LAKELET, "t", columns, ["id"], options={"bucket": "1", "rowkind.field": "op"})
    for ids, op in ((range(6), "+I"), (range(3, 9), "-D"), (range(20, 23), "-D"), (range(40, 42), "+U")):
        given = [{"id": id_, "v": id_, "op": op} for id_ in ids]
        warehouse.write(PYTHON, "t", given)
        made.model.write(given, made.spell(given), [str(row["op"]) for row in given])
        made.note()
    made.check([LAKELET])
    made.check_get([{"id": id_} for id_ in range(50)])
    made.check_history(readers=[LAKELET])
    made.compact()
    made.check()
