"""Random tables take turns between Spark and local writes: after each step both readers give what the model says.

Tables of all bucket modes that show their rows (postponed rows wait; `test_conformance` has them), with keys, partitions and
values of any type. Rows of a step are many, chosen by a seed from few values, so that keys meet again in many buckets and
partitions. `LAKELET_CASES` multiplies the number of tables.
"""

from __future__ import annotations

import random
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession

import lakelet
from lakelet import Table
from lakelet.model.bucket_mode import BucketMode, bucket_mode
from lakelet.sink.bucket.extractors import FixedBucketRowKeyExtractor
from lakelet.spark.session import settings as spark_settings
from lakelet.spark.types import arrow_of_spark, spark_schema, to_spark_arrow
from lakelet.spark.write.table_write import write
from tests.property import keyed_strategies, strategies
from tests.property.keyed_model import KeyedModel, Record, same, shown
from tests.property.keyed_strategies import Layout
from tests.property.table_model import Column, Leaf, Row, Struct, plain, type_text
from tests.spark.same_rows import assert_reads_like_scan
from tests.tiers.examples import examples

pytestmark = pytest.mark.spark

SETTINGS = settings(max_examples=examples(4), deadline=None, suppress_health_check=list(HealthCheck), print_blob=True)
# By what is added, no two names differ by case alone and none is taken twice.
_ODD_NAMES = ["{}", "{}", "{}.x", "{} y", "`{}`", "{}é数", "UP{}", "{}'", "{}\\", "${{{}}}"]
_AVRO_NAME = re.compile(r"[A-Za-z0-9_]+")
_ZONES = ["UTC", "America/St_Johns", "Asia/Kathmandu"]
_STEPS = ["spark", "spark", "spark", "local", "delete", "overwrite", "overwrite", "change"]
_KINDS = ["+I", "+I", "I", "+U", "-U", "-D", "D"]
MOST_ROWS = 120


class AppendModel(KeyedModel):
    """A table without a primary key: every row is its own."""

    def key(self, row: Row) -> tuple[Any, ...]:
        return (id(row),)

    def apply(self, rows: Sequence[Row], kinds: Sequence[str] | None = None) -> None:
        for row in rows:
            copy = dict(row)
            self.records[self.key(copy)] = Record(copy, False)


class Turns:
    """A table, its model, and steps that change both."""

    def __init__(self, spark: SparkSession, data: st.DataObject, folder: str, layout: Layout) -> None:
        self.spark, self.data, self.layout = spark, data, layout
        self.lake = lakelet.connect(folder)
        self.lake.create_database("d")
        options = dict(layout.options)
        if layout.keys:
            options |= data.draw(keyed_strategies.bucket_options(layout), label="buckets")
            # Rows may lack columns here, and the model fills in defaults.
            options["write.missing-columns"] = "default"
        options |= data.draw(keyed_strategies.stored_options(most=3), label="options")
        if not all(_AVRO_NAME.fullmatch(column.name) for column in layout.columns):
            # Avro has no other names, and such a table is refused by every writer.
            options = {key: text for key, text in options.items() if text != "avro"}
        self.table: Table = keyed_strategies.make_table(self.lake, "d.t", layout, options)
        columns = Struct(layout.columns)
        self.model = (KeyedModel if layout.keys else AppendModel)(
            columns,
            layout.partition_keys,
            keys=[columns.named(name) for name in layout.keys],
            sequence=[columns.named(name) for name in layout.sequence],
            descending=layout.options.get("sequence.field.sort-order") == "descending",
            ignored=layout.ignored,
        )
        kind = layout.options.get("rowkind.field")
        self.kind_column = columns.named(kind) if kind else None
        self.pools: dict[int, list[Any]] = {}

    @property
    def columns(self) -> list[Column]:
        return self.model.columns.columns

    def step(self, kind: str) -> None:
        steps: dict[str, Callable[[], None]] = {
            "spark": self._spark,
            "local": self._local,
            "delete": self._delete,
            "overwrite": self._overwrite,
            "change": self._change,
        }
        steps[kind]()

    # ------------------------------------------------------------------ rows

    def _pool(self, column: Column) -> list[Any]:
        """The values that a column takes; in keys and partitions all that a type has to offer."""
        if column.identity in self.pools:
            return self.pools[column.identity]
        keys = {key.identity for key in self.model.keys}
        found: list[Any]
        if self.kind_column is column:
            found = _KINDS
        elif isinstance(column.type, Leaf):
            found = list(strategies.VALUES.get(column.type.text, strategies.VALUES["DECIMAL(6, 2)"]))
            found += [] if column.identity in keys else [None]
        else:
            found = self.data.draw(
                st.lists(strategies.values(column.type), min_size=3, max_size=3), label=f"values of {column.name}"
            )
        self.pools[column.identity] = found
        return found

    def rows(self) -> tuple[list[Row], list[str] | None]:
        """Rows and their kinds, None for inserts alone."""
        count = self.data.draw(st.integers(0, MOST_ROWS), label="rows")
        by = random.Random(self.data.draw(st.integers(0, 2**32), label="seed"))
        rows = [{column.identity: by.choice(self._pool(column)) for column in self.columns} for _ in range(count)]
        if self.kind_column is not None:
            return rows, [row[self.kind_column.identity] for row in rows]
        if not self.layout.keys or self.data.draw(st.booleans(), label="inserts alone"):
            return rows, None
        return rows, [by.choice(_KINDS) for _ in rows]

    def _orderly(self, rows: list[Row], kinds: list[str] | None) -> tuple[list[Row], list[str] | None]:
        """Without rows whose order would decide: a DataFrame has none. Rows that the table ignores do not count."""
        if not self.layout.keys:
            return rows, kinds
        seen: set[Any] = set()
        kept: list[int] = []
        for place, row in enumerate(rows):
            mark = (self.model.key(row), repr([row.get(column.identity) for column in self.model.sequence]))
            ignored = kinds is not None and kinds[place] in self.model.ignored
            if ignored or mark not in seen:
                kept.append(place)
                if not ignored:
                    seen.add(mark)
        return [rows[place] for place in kept], None if kinds is None else [kinds[place] for place in kept]

    def _arrow(self, rows: Sequence[Row], names: Sequence[str] | None = None) -> pa.Table:
        wanted = self.columns if names is None else [self.model.columns.named(name) for name in names]
        known = self.table.scan().arrow_schema
        lines = [{column.name: plain(row.get(column.identity), column.type) for column in wanted} for row in rows]
        schema = pa.schema([known.field(column.name).with_nullable(True) for column in wanted])
        return pa.Table.from_pylist(lines, schema=schema)

    def frame(self, rows: list[Row], kinds: list[str] | None, without: Sequence[str] = ()) -> tuple[DataFrame, Any]:
        """The rows as a DataFrame in some order of columns, in some pieces; and what `kinds` is given as."""
        names = [column.name for column in self.data.draw(st.permutations(self.columns), label="order of columns")]
        left_out = self._left_out(rows)
        names = [name for name in names if name not in without and name not in left_out]
        fields = [self.table.schema.field(name) for name in names]
        content = to_spark_arrow(self._arrow(rows, names), fields)
        schema = spark_schema(fields)
        given = None
        if kinds is not None and self.kind_column is None:
            column = self.data.draw(st.sampled_from(["_row_kind", "what happens"]), label="column of kinds")
            given = None if column == "_row_kind" else column
            content = content.append_column(column, pa.array(kinds, pa.string()))
            schema = schema.add(column, "string")
        frame = self.spark.createDataFrame(content, schema)
        pieces = self.data.draw(st.sampled_from([0, 1, 5]), label="pieces")
        return (frame.repartition(pieces) if pieces else frame), given

    def _left_out(self, rows: list[Row]) -> set[str]:
        """Columns that the data does not have: NULL."""
        needed = {column.identity for column in [*self.model.keys, *self.model.sequence, self.kind_column] if column}
        able = [
            column
            for column in self.columns
            if column.identity not in needed and column.name not in self.model.partition_keys
        ]
        left = self.data.draw(st.lists(st.sampled_from(able), max_size=1), label="left out") if len(able) > 1 else []
        for column in left:
            for row in rows:
                row[column.identity] = None
        return {column.name for column in left}

    # ------------------------------------------------------------------ steps

    def _spark(self) -> None:
        rows, kinds = self._orderly(*self.rows())
        frame, given = self.frame(rows, kinds)
        write(frame, self.lake.location, "d.t", kinds=given, parallelism=self._parallelism())
        self.model.apply(rows, kinds)

    def _parallelism(self) -> int | None:
        return self.data.draw(st.sampled_from([None, None, 1, 3]), label="parallelism")

    def _local(self) -> None:
        rows, kinds = self.rows()
        self.table.write(self._arrow(rows), kinds=None if self.kind_column else kinds)
        self.model.apply(rows, kinds)

    def _delete(self) -> None:
        if "-D" in self.model.ignored:
            return
        condition = self.data.draw(strategies.conditions(self.model.columns), label="deleted")
        self.table.delete(where=condition.sql)
        self.model.delete(condition.keeps)

    def _overwrite(self) -> None:
        rows, kinds = self._orderly(*self.rows())
        if kinds is not None:
            # A row that is dropped names no partition.
            kept = [place for place, kind in enumerate(kinds) if kind not in self.model.ignored]
            rows, kinds = [rows[place] for place in kept], [kinds[place] for place in kept]
        modes = ["whole", "partitions", "static", "static"] if self.model.partition_keys else ["whole"]
        mode = self.data.draw(st.sampled_from(modes), label="overwrite")
        partition: dict[str, Any] | None = None
        without: list[str] = []
        if mode == "static":
            partition, rows, kinds = self._static(rows, kinds)
            without = self.data.draw(st.sampled_from([[], list(partition)]), label="left to the partition")
        gone = self._gone(mode, rows, partition)
        frame, given = self.frame(rows, kinds, without)
        spelled = "overwrite_partitions" if mode == "partitions" else "overwrite"
        write(frame, self.lake.location, "d.t", spelled, partition, kinds=given, parallelism=self._parallelism())
        self.model.forget(gone)
        self.model.apply(rows, kinds)

    def _static(self, rows: list[Row], kinds: list[str] | None) -> tuple[dict[str, Any], list[Row], list[str] | None]:
        """A partition, or a part of the partition columns, and rows that belong to it."""
        keys = self.data.draw(st.lists(st.sampled_from(self.model.partition_keys), min_size=1, unique=True))
        columns = [self.model.columns.named(key) for key in keys]
        like = self.data.draw(st.sampled_from([*self.model.live[:20], *rows[:1], {}]), label="like")
        spec = {column.identity: like.get(column.identity, self._pool(column)[0]) for column in columns}
        rows, kinds = self._orderly([{**row, **spec} for row in rows], kinds)
        return {column.name: spec[column.identity] for column in columns}, rows, kinds

    def _gone(self, mode: str, rows: list[Row], partition: dict[str, Any] | None) -> Callable[[Row], bool]:
        """Which rows an overwrite takes away."""
        if mode == "partitions":
            touched = {self.model.partition(row) for row in rows}
            return lambda row: self.model.partition(row) in touched
        named = {self.model.columns.named(name).identity: value for name, value in (partition or {}).items()}
        return lambda row: all(row.get(identity) == value for identity, value in named.items())

    def _change(self) -> None:
        """A new schema, which the next write and every reader must follow."""
        free = [name for name in ("alpha", "be.ta", "Gam ma", "de`lta") if name not in self.model.columns.names()]
        if not free:
            return
        name = self.data.draw(st.sampled_from(free), label="name")
        able = [column for column in self.columns if column.name not in self.model.partition_keys]
        if self.data.draw(st.booleans(), label="adds"):
            column = Column(name, self.data.draw(strategies.types(), label="type"))
            self.table.add_column((column.name,), type_text(column.type))
            self.columns.append(column)
        else:
            column = self.data.draw(st.sampled_from(able), label="renamed")
            self.table.rename_column((column.name,), name)
            column.name = name

    # ------------------------------------------------------------------ reading

    def check(self) -> None:
        assert_reads_like_scan(self.spark, self.lake.location, self.table)
        scan = self.table.scan()
        same(shown(scan.to_arrow(), self.model.columns), self.model.shown())
        fixed = bucket_mode(self.table.schema) is BucketMode.HASH_FIXED
        places: dict[Any, tuple[bytes, int]] = {}
        for split in scan.plan().splits:
            for batch in scan.read(split):
                if fixed:
                    own = FixedBucketRowKeyExtractor(self.table.schema).extract(batch).buckets
                    assert own is not None
                    assert set(own.tolist()) == {split.bucket}
                if self.layout.keys:
                    names = [column.name for column in self.model.keys]
                    keys = shown(pa.Table.from_batches([batch]).select(names), self.model.columns, names)
                    for key in keys:
                        assert key not in places, f"{key} stands in {places[key]} and {split.partition, split.bucket}"
                        places[key] = (split.partition, split.bucket)


@st.composite
def append_layouts(draw: st.DrawFn) -> Layout:
    """Tables without a key: their partitions may be NULL."""
    partitions = draw(st.lists(st.sampled_from(strategies.PARTITION_TYPES), max_size=2), label="partition types")
    columns = [Column(f"p{index}", Leaf(text)) for index, text in enumerate(partitions)]
    columns += [Column("v", Leaf("INT")), Column("b", Leaf(draw(st.sampled_from(sorted(strategies.VALUES)))))]
    others = draw(st.lists(strategies.types(), max_size=2), label="column types")
    columns += [Column(f"c{index}", data_type) for index, data_type in enumerate(others)]
    options = draw(st.sampled_from([{}, {}, {"bucket": "3", "bucket-key": "b"}]), label="buckets")
    keys = [f"p{index}" for index in range(len(partitions))]
    return Layout(draw(st.permutations(columns), label="order of columns"), keys, [], [], dict(options))


@st.composite
def oddly_named(draw: st.DrawFn, layouts: st.SearchStrategy[Layout]) -> Layout:
    """A layout whose columns have names that are hard to quote."""
    layout = draw(layouts)
    new = {c.name: draw(st.sampled_from(_ODD_NAMES), label=f"name of {c.name}").format(c.name) for c in layout.columns}
    for column in layout.columns:
        column.name = new[column.name]
    options = dict(layout.options)
    for option in ("sequence.field", "rowkind.field", "bucket-key"):
        if option in options:
            options[option] = ",".join(new[name] for name in options[option].split(","))
    return replace(
        layout,
        partition_keys=[new[name] for name in layout.partition_keys],
        keys=[new[name] for name in layout.keys],
        sequence=[new[name] for name in layout.sequence],
        options=options,
    )


def take_turns(spark: SparkSession, data: st.DataObject, *, steps: int) -> None:
    """One table and its steps."""
    keyed = data.draw(st.sampled_from([True, True, True, False]), label="keyed")
    layout = data.draw(oddly_named(keyed_strategies.layouts() if keyed else append_layouts()), label="layout")
    config = {
        "spark.sql.session.timeZone": data.draw(st.sampled_from(_ZONES), label="zone"),
        "spark.sql.ansi.enabled": data.draw(st.sampled_from(["true", "false"]), label="ansi"),
    }
    with tempfile.TemporaryDirectory() as folder, spark_settings(spark, config):
        turns = Turns(spark, data, folder, layout)
        turns.step("spark")
        turns.check()
        for kind in data.draw(st.lists(st.sampled_from(_STEPS), min_size=2, max_size=steps), label="steps"):
            turns.step(kind)
            turns.check()


@pytest.mark.deep
@given(data=st.data())
@SETTINGS
def test_spark_and_local_writes_take_turns(spark: SparkSession, data: st.DataObject) -> None:
    take_turns(spark, data, steps=4)


NAMES = ["a.b", "with space", "back`tick", "`quoted`", "ünï数", "UPPER", "*", "new\nline", 'say "x"', "$1", "st.r"]


@pytest.mark.parametrize("key", [["a.b", "with space", "back`tick"], ["a.b", "back`tick"], []], ids=len)
def test_names_that_are_hard_to_quote(spark: SparkSession, tmp_path: Path, key: list[str]) -> None:
    """As keys, as the partition (which one of the keys holds and the other does not), and as values, nested too."""
    lake = lakelet.connect(str(tmp_path))
    lake.create_database("d")
    columns = [(name, "INT") for name in NAMES[:-1]] + [("st.r", "ROW<`x.y` INT, `b``t` STRING>")]
    table = lake.create_table("d.t", columns, primary_key=key, partitioned_by=["with space"])
    rows = [
        {name: number * (place % 3 + 1) for place, name in enumerate(NAMES[:-1])}
        | {"st.r": {"x.y": number, "b`t": "x"}}
        for number in range(20)
    ]
    fields = list(reversed(table.schema.fields))
    frame = spark.createDataFrame(pa.Table.from_pylist(rows, arrow_of_spark(fields)), spark_schema(fields))
    # A key that comes as another type is converted before rows are shuffled.
    frame = frame.withColumn("a.b", frame["`a.b`"].cast("decimal(12, 0)"))
    for _ in range(2):
        write(frame, lake.location, "d.t", "overwrite_partitions")
    same_rows = Counter(map(repr, rows))
    assert Counter(map(repr, table.scan().to_arrow().to_pylist())) == same_rows
    where = '"with space" < 20 AND "back`tick" >= 0'
    assert_reads_like_scan(spark, lake.location, table, where=where, columns=["st.r", "a.b", "*"])
