"""Spark beside Java Paimon, pypaimon and local Lakelet: all write one table in turns, and all read the same rows.

`SparkWarehouse` adds the writer and reader "spark" to the warehouse of the conformance tests, so that their tables and models
serve here too. Java cannot write across partitions and reads postponed rows only when it has given them buckets.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from lakelet.spark.read.table_frame import table as spark_table
from lakelet.spark.session import settings
from lakelet.spark.types import from_spark_arrow, spark_schema, to_spark_arrow
from lakelet.spark.write import write_job
from lakelet.spark.write.table_write import write as spark_write
from tests.conformance import every_type
from tests.conformance.append.test_partitions import TYPED, files_below
from tests.conformance.conftest import java_paimon, pypaimon  # noqa: F401 - fixtures
from tests.conformance.java.client import JavaPaimon
from tests.conformance.keyed.test_keyed_modes import COLUMNS, LAYOUTS, SMALL_BUCKETS, check_index, kinds, rows
from tests.conformance.keyed.test_keyed_types import key_columns, key_values
from tests.conformance.keyed_tables import KeyedTable
from tests.conformance.pypaimon.client import PyPaimon
from tests.conformance.tables import (
    DATABASE,
    JAVA,
    LAKELET,
    NATIVE,
    PYTHON,
    READERS,
    Rows,
    Warehouse,
    arrow_rows,
    in_order,
    json_type,
    same,
    spell_rows,
    spell_table,
)

pytestmark = [pytest.mark.spark, pytest.mark.java, pytest.mark.pypaimon]

SPARK = "spark"
ALL = (*READERS, SPARK)
# Java finds the writer of a file by the number after "-s-".
POSTPONED = re.compile(r"^data--u-.+-s-\d+-w-.+\.avro$")
# Half an hour beside full hours, with summer time.
ZONE = "America/St_Johns"


class SparkWarehouse(Warehouse):
    """A warehouse that Spark works in too."""

    def __init__(self, folder: Path, java: JavaPaimon, pypaimon: PyPaimon, spark: SparkSession) -> None:  # noqa: F811
        super().__init__(folder, java, pypaimon)
        self.spark = spark

    def write(
        self,
        writer: str,
        name: str,
        rows: Rows,
        *,
        overwrite: bool | Mapping[str, Any] = False,
        kinds: Sequence[str] | None = None,
    ) -> None:
        if writer != SPARK:
            super().write(writer, name, rows, overwrite=overwrite, kinds=kinds)
            return
        partition = overwrite if isinstance(overwrite, Mapping) and overwrite else None
        mode = "overwrite" if isinstance(overwrite, Mapping) else "overwrite_partitions" if overwrite else "append"
        spark_write(self.frame(name, rows, kinds), str(self.folder), f"{DATABASE}.{name}", mode, partition)

    def frame(self, name: str, rows: Rows, kinds: Sequence[str] | None = None) -> DataFrame:
        """Rows as a DataFrame in two pieces, its columns in the reverse order."""
        fields = list(reversed(self.table(name).schema.fields))
        data, schema = to_spark_arrow(arrow_rows(rows, fields), fields), spark_schema(fields)
        if kinds is not None:
            data, schema = data.append_column("_row_kind", pa.array(kinds)), schema.add("_row_kind", "string")
        return self.spark.createDataFrame(data, schema).repartition(2)

    def rows(self, reader: str, name: str, **arguments: Any) -> Rows:
        if reader != SPARK:
            return super().rows(reader, name, **arguments)
        fields = self.table(name).schema.fields
        frame = spark_table(self.spark, str(self.folder), f"{DATABASE}.{name}", **arguments)
        batches = [from_spark_arrow(batch, fields) for batch in frame.toArrow().to_batches()]
        found = [row for batch in batches for row in spell_table(pa.Table.from_batches([batch]), fields)]
        return in_order(found)


@pytest.fixture
def warehouse(
    java_paimon: JavaPaimon,  # noqa: F811
    pypaimon: PyPaimon,  # noqa: F811
    spark: SparkSession,
    tmp_path: Path,
) -> SparkWarehouse:
    return SparkWarehouse(tmp_path, java_paimon, pypaimon, spark)


# ---------------------------------------------------------------- bucket modes


@pytest.mark.sampled(at_most=2)
@pytest.mark.parametrize("layout", ["fixed-partitioned", "fixed-bucket-key", "dynamic", "dynamic-partitioned"])
def test_writers_take_turns(warehouse: SparkWarehouse, layout: str) -> None:
    """Upserts by all, deletes by Spark and Java, a compaction in between: no row is lost, revived or moved."""
    made = KeyedTable(warehouse, LAKELET, "t", COLUMNS, ["id", "p"], **{"partitioned_by": [], **LAYOUTS[layout]})
    places: dict[str, Any] = {}
    for number, writer in enumerate((SPARK, JAVA, LAKELET, SPARK, PYTHON, SPARK)):
        made.write(writer, rows(range(number * 5, number * 5 + 12), number))
        if number == 2:
            made.compact()
        if writer in (SPARK, JAVA):
            made.write(writer, rows(range(number * 3, number * 3 + 8), 100 + number), kinds(8))
        now = made.buckets()
        moved = {key for key in places.keys() & now.keys() if places[key] != now[key]}
        assert not moved, f"{writer} moved {moved}"
        places |= now
        made.check((SPARK, JAVA) if number == 3 else (JAVA,))
    made.check(ALL)
    live = list(made.model.rows.values())
    if "dynamic" in layout:
        made.write(NATIVE, rows(range(60), 7))
        made.write(SPARK, rows(range(80), 8))
        assert {key: place for key, place in made.buckets().items() if key in places} == places
        check_index(made)
    else:
        hashed = warehouse.java.buckets(warehouse.folder, made.full_name, live)
        assert [made.buckets()[made.model.key_of(row)][1] for row in live] == hashed


@pytest.mark.deep
def test_rows_move_between_partitions(warehouse: SparkWarehouse) -> None:
    made = KeyedTable(warehouse, LAKELET, "t", COLUMNS, ["id"], partitioned_by=["p"], options=SMALL_BUCKETS)
    made.write(SPARK, rows(range(20), 0))
    made.write(LAKELET, rows(range(5, 25), 1, "b", "c"))
    made.write(SPARK, rows(range(0, 30, 2), 2, "a", "d"))
    made.write(NATIVE, rows(range(3, 12), 3, "b"))
    made.check(ALL)
    made.compact()
    made.write(SPARK, rows(range(10, 18), 4, "a"), kinds(8))
    made.write(SPARK, rows(range(0, 40, 3), 5, "c", "e"))
    made.check(ALL)
    made.buckets()
    made.check_get(rows(range(45), 0, "elsewhere"))
    given = rows(range(4, 9), 6, "a", "c")
    warehouse.write(SPARK, "t", given, overwrite=True)
    made.model.clear(lambda row: row["p"] in "ac")
    made.model.write(given, made.spell(given), None)
    made.check(ALL)


@pytest.mark.parametrize("partitioned_by", [[], ["p"]], ids=["plain", "partitioned"])
def test_postponed_rows_wait_for_compaction(warehouse: SparkWarehouse, partitioned_by: list[str]) -> None:
    """Files of Spark have the names and the format that Java knows its writers by, and rows show in the order of commits."""
    made = KeyedTable(
        warehouse, LAKELET, "t", COLUMNS, ["id", "p"], partitioned_by=partitioned_by, options={"bucket": "-2"}
    )
    for number, writer in enumerate((SPARK, JAVA, SPARK, PYTHON, LAKELET, SPARK)):
        made.write(writer, rows(range(number * 5, number * 5 + 12), number))
    made.write(SPARK, rows(range(8), 7), kinds(8))
    assert warehouse.rows(SPARK, "t") == warehouse.rows(JAVA, "t") == []
    files = [path.name for path in warehouse.path("t").rglob("bucket-postpone/*")]
    assert all(map(POSTPONED.match, files)), files

    warehouse.java.compact(warehouse.folder, made.full_name, postponed_into=3)
    made.check(ALL)
    made.write(SPARK, rows(range(25, 60), 9))
    warehouse.java.compact(warehouse.folder, made.full_name, postponed_into=3)
    made.check(ALL)


@pytest.mark.deep
@pytest.mark.sampled(at_most=1)
@pytest.mark.parametrize("layout", ["fixed-partitioned", "dynamic-partitioned"])
def test_overwrites_take_turns(warehouse: SparkWarehouse, layout: str) -> None:
    made = KeyedTable(warehouse, JAVA, "t", COLUMNS, ["id", "p"], **LAYOUTS[layout])
    made.write(JAVA, rows(range(14), 0, "a", "b", "c"))
    for number, writer in enumerate((SPARK, JAVA)):
        given = rows(range(3, 9), 10 + number, "a", "b")
        warehouse.write(writer, "t", given, overwrite=True)
        made.model.clear(lambda row: row["p"] in "ab")
        made.model.write(given, made.spell(given), None)
        made.check((SPARK, JAVA))
        made.write(JAVA if writer == SPARK else SPARK, rows(range(12), 20 + number, "a", "b", "c"))
        given = rows(range(5), 30 + number, "c")
        warehouse.write(writer, "t", given, overwrite={"p": "c"})
        made.model.clear(lambda row: row["p"] == "c")
        made.model.write(given, made.spell(given), None)
        made.check((SPARK, JAVA))
        made.buckets()


APPEND: dict[str, dict[str, Any]] = {
    "plain": {},
    "partitioned": {"partitioned_by": ["p"]},
    "buckets": {"options": {"bucket": "3", "bucket-key": "id", "write-only": "true"}},
}


@pytest.mark.sampled(at_most=2)
@pytest.mark.parametrize("layout", list(APPEND))
def test_rows_without_a_key(warehouse: SparkWarehouse, layout: str) -> None:
    warehouse.create(JAVA, "t", COLUMNS, **APPEND[layout])
    written: Rows = []
    for number, writer in enumerate((SPARK, JAVA, PYTHON, SPARK, NATIVE, LAKELET, SPARK)):
        given = rows(range(number * 8, number * 8 + 9), number, "a", "b")
        given[number]["p"] = None
        warehouse.write(writer, "t", given)
        written += given
    expected = spell_rows(written, warehouse.table("t").schema.fields)
    same(warehouse.agree("t", readers=ALL), expected, "all")
    if layout == "buckets":
        scan = warehouse.table("t").scan()
        for split in scan.plan().splits:
            found = spell_table(pa.Table.from_batches(scan.read(split)), scan.schema.fields)
            assert set(warehouse.java.buckets(warehouse.folder, "db.t", found)) == {split.bucket}


# ---------------------------------------------------------------- values


def test_every_type(warehouse: SparkWarehouse) -> None:
    """The edges of every type, in a session far from UTC. Spark's timestamps have no digits beyond microseconds."""
    chosen = every_type.columns("parquet", nanos=False, multiset=False)
    columns = [("id", "INT"), *((name, text) for name, text, _ in chosen)]
    given = every_type.rows(chosen)
    with settings(warehouse.spark, {"spark.sql.session.timeZone": ZONE}):
        for name, key, options in (("plain", [], {}), ("keyed", ["id"], {"bucket": "2"})):
            warehouse.create(JAVA, name, columns, primary_key=key, options=options)
            expected = spell_rows(given, warehouse.table(name).schema.fields)
            warehouse.write(SPARK, name, given)
            same(warehouse.agree(name, readers=ALL), expected, "all")
            # What is read is written again as it was; in the keyed table over files of Java, so that rows are merged.
            if key:
                warehouse.write(JAVA, name, given)
                same(warehouse.rows(SPARK, name), expected, "merged")
            frame = spark_table(warehouse.spark, str(warehouse.folder), f"{DATABASE}.{name}")
            spark_write(frame, warehouse.folder, f"{DATABASE}.{name}", "overwrite")
            same(warehouse.agree(name, readers=(JAVA, SPARK)), expected, "all, of the copy")


@pytest.mark.deep
def test_keys_of_every_type(warehouse: SparkWarehouse) -> None:
    """Several columns to a key: buckets are Java's, and Java finds the row of each key. The session is far from UTC."""
    chosen = [
        (name, text, key_values(values)) for name, text, values in key_columns("parquet") if name not in ("ts9", "ltz9")
    ]
    with settings(warehouse.spark, {"spark.sql.session.timeZone": ZONE}):
        for number, group in enumerate(_fours(chosen)):
            columns = [("v", "INT"), *((name, text) for name, text, _ in group)]
            keys = [name for name, _, _ in group]
            options = {} if number % 2 else {"bucket": "7"}
            made = KeyedTable(
                warehouse, LAKELET, f"t{number}", columns, keys, options=options, readers=(LAKELET, JAVA, SPARK)
            )
            found = list(itertools.product(*(values[:4] for _, _, values in group)))[::2]
            given = [{"v": place, **dict(zip(keys, key, strict=True))} for place, key in enumerate(found)]
            made.write(SPARK, given)
            made.write(LAKELET, [{**row, "v": -1} for row in given[::2]])
            made.write(JAVA, [{**row, "v": -2} for row in given[::3]])
            if number % 2:
                check_index(made)
            else:
                live = list(made.model.rows.values())
                places, hashed = made.buckets(), warehouse.java.buckets(warehouse.folder, made.full_name, live)
                assert [places[made.model.key_of(row)][1] for row in live] == hashed, keys
            made.write(SPARK, [{**row, "v": -3} for row in given[::5]], ["-D"] * len(given[::5]))
            made.check()


def _fours(columns: list[Any]) -> list[list[Any]]:
    return [columns[start : start + 4] for start in range(0, len(columns), 4)]


def test_partition_values(warehouse: SparkWarehouse) -> None:
    """The same rows by Java and by Spark lie in the same folders, NULL and odd texts too."""
    with settings(warehouse.spark, {"spark.sql.session.timeZone": ZONE}):
        for name in ("boolean", "int", "double", "wide-decimal", "string", "date", "time", "timestamp6", "zoned6"):
            text, values = TYPED[name]
            given: Rows = [{"id": number, "p": value} for number, value in enumerate([*values, None])]
            for writer in (SPARK, JAVA):
                warehouse.create(JAVA, f"{name}_{writer}", [("id", "INT"), ("p", text)], partitioned_by=["p"])
                warehouse.write(writer, f"{name}_{writer}", given)
            paths = [files_below(warehouse.path(f"{name}_{writer}")) for writer in (SPARK, JAVA)]
            assert paths[0] == paths[1], name
            expected = spell_rows(given, warehouse.table(f"{name}_spark").schema.fields)
            same(warehouse.rows(JAVA, f"{name}_spark"), expected, f"Java, {name}")
            same(warehouse.rows(SPARK, f"{name}_java"), expected, f"Spark, {name}")


# ---------------------------------------------------------------- schema changes


def test_turns_with_schema_changes(warehouse: SparkWarehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    """Java changes the table between two writes of Spark, and while one runs."""
    made = KeyedTable(warehouse, JAVA, "t", COLUMNS, ["id", "p"], partitioned_by=["p"], options={"bucket": "2"})

    def change(*changes: Mapping[str, Any]) -> None:
        warehouse.java.alter(warehouse.folder, "db.t", *changes)

    made.write(SPARK, rows(range(12), 0))
    change({"op": "rename", "name": "s", "to": "text"}, {"op": "type", "name": "v", "type": json_type("BIGINT")})
    change({"op": "add", "name": "s", "type": json_type("ARRAY<ROW<a INT>>"), "after": "id"})
    for row in made.model.rows.values():
        row["text"] = row.pop("s")
        row["s"] = None
    given = [
        {"id": row["id"], "p": row["p"], "v": 2**40, "text": "new", "s": [{"a": 1}, None]} for row in rows(range(6), 0)
    ]
    made.write(SPARK, given)
    made.check(ALL)

    finish = write_job.commit_on_top

    def after_a_change(*arguments: Any) -> Any:
        change({"op": "rename", "name": "v", "to": "value"}, {"op": "drop", "name": "text"})
        change({"op": "add", "name": "v", "type": "STRING"})
        return finish(*arguments)

    more = [{**row, "id": row["id"] + 3} for row in given]
    made.model.write(more, made.spell(more), None)
    monkeypatch.setattr(write_job, "commit_on_top", after_a_change)
    warehouse.write(SPARK, "t", more)
    monkeypatch.undo()
    for row in made.model.rows.values():
        row["value"] = row.pop("v")
        del row["text"]
        row["v"] = None
    made.check(ALL)
