"""What `table.writer()` flushed, recovered and compacted is read alike by Java Paimon and pypaimon, and written on by them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lakelet.realtime.row_writer import RowWriter
from tests.conformance import every_type
from tests.conformance.keyed.test_keyed_modes import COLUMNS, LAYOUTS, SMALL_BUCKETS, rows
from tests.conformance.keyed_tables import KeyedTable
from tests.conformance.tables import JAVA, LAKELET, READERS, Rows, Warehouse, arrow_rows, same, spell_table
from tests.unit.realtime.written_table import kill

# A memtable of a few rows: one call fills several, and each is a commit.
SMALL = {"memtable.size": "2 kb", "memtable.flush-threshold": "0.5"}


def opened(made: KeyedTable, logs: Path, options: dict[str, str] | None = None) -> RowWriter:
    writer: RowWriter = made.table.writer(wal_folder=logs, options=options)
    return writer


def put(made: KeyedTable, writer: RowWriter, given: Rows) -> None:
    """Some rows one at a time, the others in a batch."""
    for row in given[:4]:
        writer.put_many(arrow_rows([row], made.fields))
    writer.put_many(arrow_rows(given[4:], made.fields))
    made.model.write(given, made.spell(given), None)


def delete(made: KeyedTable, writer: RowWriter, given: Rows) -> None:
    for row in given:
        key = {name: row[name] for name in made.model.key}
        (spelled,) = made.spell_keys([row])
        assert writer.delete(key) == (spelled in made.model.rows)
        made.model.delete([spelled])


@pytest.mark.parametrize("layout", list(LAYOUTS))
def test_a_writer_and_java_take_turns(warehouse: Warehouse, tmp_path_factory: Any, layout: str) -> None:
    """A writer that stays open, another engine's commits between its flushes, a crash: all readers have the model's rows."""
    logs = tmp_path_factory.mktemp("logs")
    made = KeyedTable(warehouse, LAKELET, "t", COLUMNS, ["id", "p"], **{"partitioned_by": [], **LAYOUTS[layout]})
    writer = opened(made, logs, SMALL)
    put(made, writer, rows(range(30), 0))
    delete(made, writer, rows(range(0, 40, 3), 0))
    writer.flush()
    made.check()
    made.note()
    made.write(JAVA, rows(range(5, 20), 1))
    put(made, writer, rows(range(10, 25), 2))
    delete(made, writer, rows(range(6, 9), 0))
    kill(writer)
    opened(made, logs).close()
    made.check()
    made.compact()
    writer = opened(made, logs)
    put(made, writer, rows(range(12, 40, 5), 3))
    delete(made, writer, rows(range(20, 24), 0))
    writer.close()
    made.note()
    made.write(JAVA, rows(range(2), 4))
    made.check()
    made.check_get(rows(range(40), 0))
    made.buckets()


def test_rows_put_across_partitions_move(warehouse: Warehouse, tmp_path_factory: Any) -> None:
    logs = tmp_path_factory.mktemp("logs")
    made = KeyedTable(warehouse, LAKELET, "t", COLUMNS, ["id"], partitioned_by=["p"], options=SMALL_BUCKETS)
    writer = opened(made, logs, SMALL)
    put(made, writer, rows(range(20), 0))
    writer.flush()
    made.check()
    put(made, writer, rows(range(5, 25), 1, "b", "c"))
    delete(made, writer, rows(range(0, 30, 4), 0, "elsewhere"))
    kill(writer)
    opened(made, logs).close()
    made.check()
    made.buckets()


def test_values_of_every_type(warehouse: Warehouse, tmp_path_factory: Any) -> None:
    """What a log holds of a value is what Java reads: every type at its edges, also after a crash."""
    chosen = every_type.columns("parquet")
    columns = [("id", "BIGINT"), *((name, text) for name, text, _ in chosen)]
    made = KeyedTable(warehouse, LAKELET, "t", columns, ["id"], options={"bucket": "2"}, readers=(LAKELET, JAVA))
    given = every_type.rows(chosen)
    logs = tmp_path_factory.mktemp("logs")
    writer = opened(made, logs)
    put(made, writer, given)
    same(spell_table(writer.scan().to_arrow(), made.fields), made.model.found(), "the writer")
    kill(writer)
    opened(made, logs).close()
    made.check()


@pytest.mark.parametrize(
    ("partitioned_by", "options"),
    [([], {}), (["p"], {}), (["p"], {"bucket": "2", "bucket-key": "id"})],
    ids=["plain", "partitioned", "bucketed"],
)
def test_appended_rows(
    warehouse: Warehouse, tmp_path_factory: Any, partitioned_by: list[str], options: dict[str, str]
) -> None:
    logs = tmp_path_factory.mktemp("logs")
    warehouse.create(LAKELET, "t", COLUMNS, partitioned_by=partitioned_by, options=options)
    table = warehouse.table("t")
    given = rows(range(25), 0)
    with table.writer(wal_folder=logs, options=SMALL) as writer:
        for row in given[:5]:
            writer.put(row)
        writer.put_many(given[5:])
    warehouse.write(JAVA, "t", rows(range(3), 1))
    killed = table.writer(wal_folder=logs)
    killed.put_many(given[:7])
    kill(killed)
    table.writer(wal_folder=logs).close()
    fields = table.schema.fields
    expected = spell_table(arrow_rows([*given, *rows(range(3), 1), *given[:7]], fields), fields)
    same(warehouse.agree("t", readers=READERS), expected, "all readers")


@pytest.mark.parametrize("order", ["ascending", "descending"])
def test_sequences_decide_for_a_writer_as_for_java(warehouse: Warehouse, tmp_path_factory: Any, order: str) -> None:
    """Rows of a writer and of Java that come late lose against those of the other, in memory, in files and after a crash."""
    logs = tmp_path_factory.mktemp("logs")
    options = {"bucket": "2", "write-only": "true", "sequence.field": "s", "sequence.field.sort-order": order}
    columns = [("id", "BIGINT"), ("s", "INT"), ("v", "STRING")]
    made = KeyedTable(warehouse, LAKELET, "t", columns, ["id"], options=options)

    def given(turn: int) -> Rows:
        return [{"id": key, "s": (key * 7 + turn * 5) % 11 or None, "v": f"{turn}"} for key in range(20)]

    writer = opened(made, logs)
    put(made, writer, given(0))
    put(made, writer, given(1))
    delete(made, writer, given(0)[::6])
    put(made, writer, given(2))
    same(spell_table(writer.scan().to_arrow(), made.fields), made.model.found(), "the writer")
    writer.flush()
    made.check()
    made.write(JAVA, given(3))
    put(made, writer, given(4))
    same(spell_table(writer.scan().to_arrow(), made.fields), made.model.found(), "the writer")
    kill(writer)
    opened(made, logs).close()
    made.check()
    made.check_get(given(0))
