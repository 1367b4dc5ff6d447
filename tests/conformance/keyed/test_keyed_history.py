"""Primary-key tables written by Java over time, read by Lakelet: levels, deletion vectors, first-row, changelogs."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from lakelet.table.follow.change_stream import ChangeStream
from tests.conformance.keyed_tables import KeyedTable, spelled_changes
from tests.conformance.tables import JAVA, LAKELET, NATIVE, READERS, Rows, Warehouse, in_order, same

COLUMNS = [("id", "INT"), ("p", "STRING"), ("v", "INT")]


def rows(ids: range, v: int) -> Rows:
    return [{"id": id_, "p": "ab"[id_ % 2], "v": v} for id_ in ids]


def kinds(ids: range, v: int) -> list[str]:
    return ["-D" if (id_ + v) % 4 == 0 else "+I" for id_ in ids]


# ---------------------------------------------------------------- levels


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_levels(warehouse: Warehouse, file_format: str) -> None:
    """Small files let Java build several levels of several files; Lakelet writes on top, and Java compacts that."""
    options = {
        "bucket": "2",
        "file.format": file_format,
        "target-file-size": "4 kb",
        "num-sorted-run.compaction-trigger": "2",
    }
    made = KeyedTable(warehouse, LAKELET, "t", COLUMNS, ["id"], options=options, readers=(LAKELET, JAVA))
    for step, writer in enumerate((JAVA, JAVA, LAKELET, JAVA, LAKELET, JAVA, LAKELET)):
        ids = range(step * 150, step * 150 + 400)
        made.write(writer, rows(ids, step), kinds(ids, step))
        made.check()
        if step == 3:
            made.compact()
            made.check()
    levels = {file.level for _, file in made.table.files()}
    assert 0 in levels
    assert len(levels) > 1
    made.check_ordered()
    made.check_get(rows(range(0, 1500, 7), 0))
    made.check_where("id >= 300 AND id < 420", ["id >= 300", "id < 420"], lambda row: 300 <= row["id"] < 420)
    made.check_where("v = 3", ["v = 3"], lambda row: row["v"] == 3)
    made.check_history(most=3)


def test_many_rows(warehouse: Warehouse) -> None:
    """Files of several row groups, in which the merge works batch by batch."""
    options = {
        "bucket": "1",
        "file.block-size": "64 kb",
        "target-file-size": "200 kb",
        "write-only": "true",
        "write-buffer-size": "1 mb",
    }
    columns = [("k", "STRING"), ("v", "INT"), ("pad", "STRING")]
    made = KeyedTable(warehouse, LAKELET, "t", columns, ["k"], options=options, readers=(LAKELET, JAVA))

    def rows_of(ids: range, v: int) -> Rows:
        return [{"k": f"{id_ * 7919 % 100_003:06}", "v": v, "pad": f"{id_ * v}" * 3} for id_ in ids]

    for step, writer in enumerate((JAVA, LAKELET, JAVA, LAKELET)):
        ids = range(step * 1500, step * 1500 + 4000)
        made.write(writer, rows_of(ids, step), ["-D" if id_ % 9 == step else "+I" for id_ in ids])
        if step == 1:
            made.compact()
    made.check()
    made.check_ordered()
    made.check_get(rows_of(range(0, 9000, 11), 0))
    made.check_where(
        "k >= '040000' AND k < '041000'", ["k >= 040000", "k < 041000"], lambda row: "040000" <= row["k"] < "041000"
    )
    made.check_where("v = 1", ["v = 1"], lambda row: row["v"] == 1)


@pytest.mark.parametrize("bitmap64", ["false", "true"])
def test_deletion_vectors(warehouse: Warehouse, bitmap64: str) -> None:
    """Level 0 is hidden until Java's compaction marks the rows it replaces; readers agree at every version."""
    options = {
        "bucket": "2",
        "deletion-vectors.enabled": "true",
        "deletion-vectors.bitmap64": bitmap64,
        "num-sorted-run.compaction-trigger": "3",
    }
    made = KeyedTable(warehouse, JAVA, "t", COLUMNS, ["id"], options=options, readers=(LAKELET, JAVA, NATIVE))
    full = made.full_name
    for step in range(5):
        ids = range(step * 9, step * 9 + 30)
        given = made.spell(rows(ids, step))
        for row, kind in zip(given, kinds(ids, step), strict=True):
            row["_kind"] = kind
        # A write that does not wait for its compaction, and one that does.
        warehouse.java.write(warehouse.folder, full, given, options={"write-only": str(step % 2 == 1).lower()})
        made.model.write(rows(ids, step), made.spell(rows(ids, step)), kinds(ids, step))
        warehouse.agree("t", readers=(LAKELET, JAVA))
    made.compact()
    made.check()
    made.check_get(rows(range(80), 0))
    made.check_where("v = 2", ["v = 2"], lambda row: row["v"] == 2)
    made.check_where("id < 30", ["id < 30"], lambda row: row["id"] < 30)
    for version in range(1, max(made.states) + 1):
        warehouse.agree("t", readers=(LAKELET, JAVA), snapshot=version)
    for step, writer in enumerate((LAKELET, JAVA, LAKELET), 7):
        ids = range(step, step + 20)
        made.write(writer, rows(ids, step), kinds(ids, step))
        made.check(readers=(LAKELET, JAVA))


def test_first_row(warehouse: Warehouse) -> None:
    """The first row of a key stays; level 0 is hidden."""
    options = {"bucket": "2", "merge-engine": "first-row", "write-only": "true"}
    warehouse.create(JAVA, "t", COLUMNS, primary_key=["id"], options=options)
    for step in range(4):
        warehouse.write(JAVA, "t", rows(range(step * 5, step * 5 + 12), step))
        warehouse.agree("t", readers=(LAKELET, JAVA))
        if step % 2:
            warehouse.java.compact(warehouse.folder, "db.t")
            found = warehouse.agree("t", readers=(LAKELET, JAVA))
            assert {row["id"]: row["v"] for row in found} == {
                id_: max(0, (id_ - 7) // 5) for id_ in range((step + 1) * 5 + 7)
            }
    assert warehouse.table("t").get({"id": 13, "p": "b"}) == {"id": 13, "p": "b", "v": 1}
    for version in range(1, 7):
        warehouse.agree("t", readers=(LAKELET, JAVA), snapshot=version)


# ---------------------------------------------------------------- changes


@pytest.mark.parametrize("partitioned_by", [[], ["p"]], ids=["plain", "partitioned"])
@pytest.mark.parametrize("producer", ["input", "lookup", "full-compaction"])
def test_changelogs(warehouse: Warehouse, producer: str, partitioned_by: list[str]) -> None:
    """`changes` is what Java's streaming read gives, for every range of snapshots."""
    options = {"bucket": "2", "changelog-producer": producer}
    made = KeyedTable(
        warehouse,
        JAVA,
        "t",
        COLUMNS,
        ["id", "p"],
        partitioned_by=partitioned_by,
        options=options,
        readers=(LAKELET, JAVA),
    )
    for step in range(4):
        ids = range(step * 3, step * 3 + 9)
        made.write(JAVA, rows(ids, step), kinds(ids, step))
        if step % 2:
            made.compact()
        made.check()
    snapshots = warehouse.java.snapshots(warehouse.folder, made.full_name)
    # Java's stream passes over snapshots without a changelog, beyond the end that it was given.
    ends = [snapshot["id"] for snapshot in snapshots if snapshot.get("changelogManifestList")]
    assert len(ends) > 1
    for start, end in itertools.combinations([0, *ends], 2):
        expected = made.java_changes(start + 1, end)
        same(spelled_changes(made.table, start, end), expected, f"changes {start} to {end}")


@pytest.mark.parametrize(
    ("producer", "vectors"),
    [("input", "false"), ("input", "true"), ("lookup", "false"), ("lookup", "true"), ("full-compaction", "false")],
)
def test_streams_of_changelogs_begin_at_any_version(warehouse: Warehouse, producer: str, vectors: str) -> None:
    """Rows that a later changelog tells of are not among the first rows of a stream; overwrites have no changelog."""
    options = {"bucket": "2", "changelog-producer": producer, "deletion-vectors.enabled": vectors}
    warehouse.create(JAVA, "t", COLUMNS, primary_key=["id", "p"], partitioned_by=["p"], options=options)
    table, strict = warehouse.table("t"), producer != "input" or vectors == "true"
    streams: list[tuple[ChangeStream, dict[Any, Any]]] = []

    def apply() -> None:
        for stream, state in streams:
            for batch in iter(stream.poll, None):
                for row in batch.to_arrow().to_pylist():
                    kind, key = row.pop("_row_kind"), (row["id"], row["p"])
                    known = state.pop(key, None)
                    if strict:
                        assert known == (None if kind in ("+I", "+U") else row), f"{kind} {row}: {known} is there"
                    if kind in ("+I", "+U"):
                        state[key] = row

    for step in range(8):
        ids = range(step * 3, step * 3 + 9)
        given = [{**row, "_kind": kind} for row, kind in zip(rows(ids, step), kinds(ids, step), strict=True)]
        if step in (4, 6):
            given = [{**row, "p": "a", "_kind": "+I"} for row in given]
        # Overwrites that wait for their compaction, and that do not; writes of both kinds before and after them.
        writing = {"write-only": str(step in (0, 2, 3, 6, 7)).lower()}
        warehouse.java.write(warehouse.folder, "db.t", given, overwrite=step in (4, 6), options=writing)
        streams.append((table.follow(), {}))
        if step % 3 == 1:
            apply()
        if step in (2, 6):
            warehouse.java.compact(warehouse.folder, "db.t")
    warehouse.java.compact(warehouse.folder, "db.t")
    apply()
    expected = in_order(table.scan().to_arrow().to_pylist())
    assert expected
    for number, (_, state) in enumerate(streams):
        assert in_order(state.values()) == expected, f"the stream that began at step {number}"


def test_changes_of_snapshots_that_java_overwrote(warehouse: Warehouse) -> None:
    """Java's streaming read leaves overwrites out; `changes` tells the difference that they made."""
    made = KeyedTable(
        warehouse,
        JAVA,
        "t",
        COLUMNS,
        ["id", "p"],
        partitioned_by=["p"],
        options={"bucket": "1", "changelog-producer": "input"},
        readers=(LAKELET, JAVA),
    )
    made.write(JAVA, rows(range(6), 0))
    given = rows(range(4, 9), 1)
    warehouse.write(JAVA, "t", given, overwrite=True)
    made.model.clear()
    made.model.write(given, made.spell(given), None)
    made.note()
    made.check()
    made.check_history()


def test_changes_lead_from_one_version_to_the_next(warehouse: Warehouse) -> None:
    """Without a changelog Java streams the rows as written; applied in order they end where Lakelet's difference does."""
    made = KeyedTable(
        warehouse, LAKELET, "t", COLUMNS, ["id"], options={"bucket": "2", "write-only": "true"}, readers=(LAKELET, JAVA)
    )
    for step, writer in enumerate((LAKELET, JAVA, LAKELET, JAVA)):
        ids = range(step * 3, step * 3 + 9)
        made.write(writer, rows(ids, step), kinds(ids, step))
    for start in range(4):
        state: dict[Any, Any] = {key: dict(row) for key, row in made.states[start].items()}
        for change in made.java_changes(start + 1, 4):
            kind = change.pop("_kind")
            if kind in ("+I", "+U"):
                state[made.model.key_of(change)] = change
            else:
                state.pop(made.model.key_of(change), None)
        assert in_order(state.values()) == made.model.found()
    made.check_history(most=9)


def test_tags_branches_and_rollback(warehouse: Warehouse) -> None:
    made = KeyedTable(warehouse, LAKELET, "t", COLUMNS, ["id"], options={"dynamic-bucket.target-row-num": "4"})
    for step, writer in enumerate((LAKELET, JAVA, LAKELET, NATIVE)):
        made.write(writer, rows(range(step * 4, step * 4 + 10), step))
    java = warehouse.java
    java.tag(warehouse.folder, made.full_name, "two", 2)
    for reader in READERS:
        same(warehouse.rows(reader, "t", tag="two"), in_order(made.states[2].values()), reader)
    java.rollback(warehouse.folder, made.full_name, 3)
    made.model.rows = dict(made.states[3])
    made.states = {id_: state for id_, state in made.states.items() if id_ <= 3}
    made.check()
    # The hash index is that of the snapshot too: keys of the fourth are new again.
    made.write(LAKELET, rows(range(5, 30), 9))
    made.check()
    made.buckets()
    java.expire(warehouse.folder, made.full_name, 1)
    made.check()
    made.write(JAVA, rows(range(25, 35), 10))
    made.check()
    made.buckets()
