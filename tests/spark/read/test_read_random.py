"""Random tables, histories and conditions: a frame holds what `table.scan()` gives. `LAKELET_CASES` multiplies the runs."""

import tempfile
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

import lakelet
from lakelet import Table
from tests.property import keyed_strategies, strategies
from tests.property.table_model import Column, Leaf, Row, Struct, Type, plain, structs, type_text
from tests.spark.same_rows import assert_reads_like_scan, assert_same, counted
from tests.tiers.examples import examples
from tests.unit.read.test_split_reader import delete_rows

pytestmark = [pytest.mark.spark]

_SETTINGS = settings(max_examples=examples(12), deadline=None, suppress_health_check=list(HealthCheck), print_blob=True)
_NAMES = ["alpha", "beta", "Gamma", "de`l.ta", "_metadata"]
_STEPS = ["write", "write", "write", "delete", "delete", "add", "drop", "rename", "widen", "move"]


class _History:
    """A table, its columns, and steps that change both."""

    def __init__(self, data: st.DataObject, table: Table, columns: Struct, keys: list[str], fixed: list[str]) -> None:
        self.data, self.table, self.columns, self.keys, self.fixed = data, table, columns, keys, fixed

    def step(self, kind: str) -> None:
        steps: dict[str, Callable[[], None]] = {
            "write": self._write,
            "delete": self._delete,
            "add": self._add,
            "drop": self._drop,
            "rename": self._rename,
            "widen": self._widen,
            "move": self._move,
        }
        steps[kind]()

    def _write(self) -> None:
        if self.keys:
            keys = [self.columns.named(name) for name in self.keys]
            rows = self.data.draw(keyed_strategies.rows(self.columns, keys, None, most=8), label="rows")
        else:
            rows = self.data.draw(strategies.rows(self.columns, most=8), label="rows")
        self.table.write(self._arrow(rows))

    def _arrow(self, rows: list[Row]) -> pa.Table:
        lines = [
            {column.name: plain(row[column.identity], column.type) for column in self.columns.columns} for row in rows
        ]
        return pa.Table.from_pylist(lines, schema=self.table.scan().arrow_schema)

    def _delete(self) -> None:
        self.table.delete(where=self.data.draw(strategies.conditions(self.columns), label="deleted").sql)

    def delete_by_vectors(self) -> None:
        """Deletes rows as another writer does, which leaves files as they are."""
        gone: dict[str, list[int]] = {}
        for _, file in self.table.files():
            places = st.sets(st.integers(0, file.row_count - 1), max_size=2)
            if file.row_count and (chosen := self.data.draw(places, label="deleted places")):
                gone[file.name] = sorted(chosen)
        if gone:
            delete_rows(self.table, gone)

    def _place(self) -> tuple[tuple[str, ...], Struct]:
        return self.data.draw(st.sampled_from(list(structs(self.columns))), label="place")

    def _able(self, path: tuple[str, ...], place: Struct) -> list[Column]:
        return [column for column in place.columns if path or column.name not in self.fixed]

    def _free(self, place: Struct) -> list[str]:
        return [name for name in _NAMES if name not in place.names()]

    def _add(self) -> None:
        path, place = self._place()
        if free := self._free(place):
            column = Column(self.data.draw(st.sampled_from(free)), self.data.draw(strategies.types(), label="type"))
            self.table.add_column((*path, column.name), type_text(column.type))
            place.columns.append(column)

    def _drop(self) -> None:
        path, place = self._place()
        able = self._able(path, place)
        if able and len(place.columns) > 1:
            column = self.data.draw(st.sampled_from(able), label="dropped")
            self.table.drop_column((*path, column.name))
            place.columns.remove(column)

    def _rename(self) -> None:
        path, place = self._place()
        able, free = self._able(path, place), self._free(place)
        if able and free:
            column, name = self.data.draw(st.sampled_from(able)), self.data.draw(st.sampled_from(free))
            self.table.rename_column((*path, column.name), name)
            column.name = name

    def _widen(self) -> None:
        path, place = self._place()
        able = [
            column
            for column in self._able(path, place)
            if isinstance(column.type, Leaf) and column.type.text in strategies.WIDENINGS
        ]
        if able:
            column = self.data.draw(st.sampled_from(able), label="widened")
            assert isinstance(column.type, Leaf)
            wider = self.data.draw(st.sampled_from(strategies.WIDENINGS[column.type.text]))
            self.table.change_type((*path, column.name), wider)
            column.type = Leaf(wider)

    def _move(self) -> None:
        path, place = self._place()
        column = self.data.draw(st.sampled_from(place.columns))
        self.table.move_column((*path, column.name), first=True)
        place.columns.remove(column)
        place.columns.insert(0, column)

    def check(self, spark: SparkSession, warehouse: str) -> None:
        assert_reads_like_scan(spark, warehouse, self.table)
        condition = self.data.draw(strategies.conditions(self.columns), label="where")
        names = self.data.draw(
            st.lists(st.sampled_from(self.columns.names()), min_size=1, unique=True), label="columns"
        )
        assert_reads_like_scan(spark, warehouse, self.table, columns=names, where=condition.sql)
        latest = self.table.latest_snapshot()
        if latest is not None:
            version = self.data.draw(st.integers(1, latest.id), label="version")
            assert_reads_like_scan(spark, warehouse, self.table, version=version)


def _options(data: st.DataObject) -> dict[str, str]:
    """Mostly Parquet, which is the part that Spark reads."""
    options = data.draw(strategies.options(4), label="options")
    if data.draw(st.integers(0, 3), label="other formats"):
        options.pop("file.format", None)
    return options


def _choose_otherwise(data: st.DataObject, patch: pytest.MonkeyPatch) -> None:
    """Find hidden rows on the driver or by tasks, and take bitmaps for more or fewer of them: files are small here."""
    patch.setattr("lakelet.spark.read.marked_files._DRIVER_BYTES", data.draw(st.sampled_from([1 << 40, -1])))
    patch.setattr("lakelet.spark.read.bitmap_lookup._MOST_WORDS", data.draw(st.sampled_from([1 << 19, 1 << 19, 0])))
    patch.setattr("lakelet.spark.read.marked_files._MOST_SUPERSEDED", data.draw(st.sampled_from([0.1, 0.66, 1.0])))


@_SETTINGS
@given(data=st.data())
def test_append_tables(spark: SparkSession, data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as warehouse, pytest.MonkeyPatch.context() as patch:
        _choose_otherwise(data, patch)
        partitions = data.draw(st.lists(st.sampled_from(strategies.PARTITION_TYPES), max_size=2), label="partitions")
        others: list[Type] = data.draw(st.lists(strategies.types(), min_size=1, max_size=4), label="types")
        columns = [Column("id", Leaf("BIGINT"))]
        columns += [Column(f"p{index}", Leaf(text)) for index, text in enumerate(partitions)]
        columns += [Column(f"c{index}", data_type) for index, data_type in enumerate(others)]
        keys = [f"p{index}" for index in range(len(partitions))]
        lake = lakelet.connect(warehouse)
        lake.create_database("d")
        pairs = [(column.name, type_text(column.type)) for column in columns]
        table = lake.create_table("d.t", pairs, partitioned_by=keys, options=_options(data))
        history = _History(data, table, Struct(columns), [], ["id", *keys])
        history.step("write")
        for kind in data.draw(st.lists(st.sampled_from(_STEPS), min_size=2, max_size=8), label="steps"):
            history.step(kind)
        history.delete_by_vectors()
        history.check(spark, warehouse)


@_SETTINGS
@given(data=st.data())
def test_primary_key_tables(spark: SparkSession, data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as warehouse, pytest.MonkeyPatch.context() as patch:
        _choose_otherwise(data, patch)
        layout = data.draw(keyed_strategies.layouts(), label="layout")
        if "op" in [column.name for column in layout.columns]:
            layout.columns = [column for column in layout.columns if column.name != "op"]
            del layout.options["rowkind.field"]
        options = layout.options | data.draw(keyed_strategies.bucket_options(layout)) | _options(data)
        lake = lakelet.connect(warehouse)
        lake.create_database("d")
        table = keyed_strategies.make_table(lake, "d.t", layout, options)
        fixed = [*layout.keys, *layout.partition_keys, *layout.sequence]
        history = _History(data, table, Struct(layout.columns), [*layout.keys, *layout.partition_keys], fixed)
        steps = ["write", "write", "write", "add", "rename", "widen", "move"]
        history.step("write")
        for kind in data.draw(st.lists(st.sampled_from(steps), min_size=1, max_size=6), label="steps"):
            history.step(kind)
        history.check(spark, warehouse)
        _check_changes(spark, data, warehouse, table)


def _check_changes(spark: SparkSession, data: st.DataObject, warehouse: str, table: Table) -> None:
    from lakelet.spark.read.table_frame import table as read
    from lakelet.spark.types import to_spark_arrow

    latest = table.latest_snapshot()
    end: Any = latest.id if latest else 0
    start = data.draw(st.integers(0, end), label="start")
    changes = table.changes(start, end)
    rows = to_spark_arrow(changes.drop_columns(["_row_kind"]), table.schema.fields)
    expected = rows.add_column(0, "_row_kind", changes.column("_row_kind"))
    assert_same(counted(expected), counted(read(spark, warehouse, table.name, start=start).toArrow()))
