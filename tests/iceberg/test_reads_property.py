"""Random tables, changes of schemas and partitions, deletes and conditions: what queries give equals a model in Python.

The tables are pyiceberg's; delete files are made by hand, as other engines write them.
"""

from __future__ import annotations

import datetime as dt
import math
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    Transform,
    TruncateTransform,
    YearTransform,
)
from pyiceberg.typedef import Record
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
)

import lakelet
from lakelet import Lake
from lakelet.iceberg.scan import scan_of
from tests.iceberg.delete_commits import commit_deletes, equality_deletes, position_deletes
from tests.tiers.examples import examples

_MOMENTS = st.datetimes(dt.datetime(1890, 1, 1), dt.datetime(2100, 1, 1))
_VALUES: dict[str, tuple[IcebergType, st.SearchStrategy[Any]]] = {
    "int": (IntegerType(), st.integers(-(2**31), 2**31 - 1) | st.integers(-3, 3)),
    "long": (LongType(), st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3)),
    "float": (FloatType(), st.floats(width=32) | st.sampled_from([0.0, -0.0, 1.5, math.nan, math.inf, -math.inf])),
    "double": (DoubleType(), st.floats() | st.sampled_from([0.0, -0.0, 1.5, math.nan, math.inf, -math.inf])),
    "boolean": (BooleanType(), st.booleans()),
    "string": (StringType(), st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=20)),
    "binary": (BinaryType(), st.binary(max_size=20)),
    "decimal": (DecimalType(9, 2), st.decimals(-9_999_999, 9_999_999, places=2, allow_nan=False)),
    "date": (DateType(), st.dates(dt.date(1890, 1, 1), dt.date(2100, 1, 1))),
    "timestamp": (TimestampType(), _MOMENTS),
    "timestamptz": (TimestamptzType(), _MOMENTS.map(lambda moment: moment.replace(tzinfo=dt.UTC))),
    "list": (ListType(50, IntegerType(), False), st.lists(st.none() | st.integers(-5, 5), max_size=3)),
    "struct": (
        StructType(NestedField(51, "x", IntegerType()), NestedField(52, "y z", StringType())),
        st.fixed_dictionaries({"x": st.none() | st.integers(-5, 5), "y z": st.none() | st.text("ab", max_size=2)}),
    ),
    "structs": (
        ListType(53, StructType(NestedField(54, "k", LongType())), False),
        st.lists(st.none() | st.fixed_dictionaries({"k": st.none() | st.integers(-5, 5)}), max_size=2),
    ),
}
_PRIMITIVE = tuple(name for name in _VALUES if name not in ("list", "struct", "structs"))
_NAMES = st.sampled_from(["a", "B", "c d", "e.f", "ü", "g$h", '"q"', "select"])
_TIMES = (IdentityTransform(), YearTransform(), MonthTransform(), DayTransform(), HourTransform(), BucketTransform(2))
_PARTITIONED: dict[str, tuple[Transform[Any, Any], ...]] = {
    "int": (IdentityTransform(), BucketTransform(3), TruncateTransform(4)),
    "long": (IdentityTransform(), BucketTransform(3), TruncateTransform(10)),
    "string": (IdentityTransform(), BucketTransform(2), TruncateTransform(1)),
    "decimal": (IdentityTransform(), BucketTransform(3)),
    "date": (IdentityTransform(), YearTransform(), MonthTransform(), DayTransform(), BucketTransform(2)),
    "timestamp": _TIMES,
    "timestamptz": _TIMES,
    "boolean": (IdentityTransform(),),
    # pyiceberg cannot write truncated bytes.
    "binary": (IdentityTransform(), BucketTransform(2)),
}


@dataclass
class _Column:
    field_id: int
    name: str
    kind: str


@dataclass
class _Model:
    """The columns of a table and its rows, by field id."""

    columns: list[_Column]
    rows: list[dict[int, Any]] = field(default_factory=list)

    def expected(self) -> list[str]:
        return sorted(_text([row.get(one.field_id) for one in self.columns]) for row in self.rows)

    def copy(self) -> _Model:
        return _Model([replace(one) for one in self.columns], list(self.rows))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(value[key]) for key in sorted(value)}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    if isinstance(value, dt.datetime):
        return value.replace(tzinfo=None, fold=0)
    if isinstance(value, (bytes, bytearray)):
        return bytes(value)
    return value


class _Run:
    def __init__(self, lake: Lake, draw: Callable[[st.SearchStrategy[Any]], Any]) -> None:
        self.lake = lake
        self.draw = draw
        self.catalog = lake.catalogs.open("iceberg")
        self.catalog.create_namespace("db")
        names = draw(st.lists(_NAMES, min_size=1, max_size=4, unique_by=str.lower))
        kinds = [draw(st.sampled_from(sorted(_VALUES))) for _ in names]
        fields = [
            NestedField(number, name, _VALUES[kind][0])
            for number, (name, kind) in enumerate(zip(names, kinds, strict=True), 1)
        ]
        made = self.catalog.library.create_table("db.t", Schema(*fields), properties={"format-version": "2"})
        self.model = _Model(
            [_Column(one.field_id, one.name, kind) for one, kind in zip(made.schema().fields, kinds, strict=True)]
        )
        self.past: list[tuple[int, _Model]] = []
        self._partition()

    @property
    def table(self) -> Table:
        return self.catalog.library.load_table("db.t")

    def _partition(self) -> None:
        choices = [one for one in self.model.columns if one.kind in _PARTITIONED and "." not in one.name]
        if not choices or not self.draw(st.booleans()):
            return
        one = self.draw(st.sampled_from(choices))
        transform = self.draw(st.sampled_from(_PARTITIONED[one.kind]))
        with self.table.update_spec() as update:
            for old in self.table.spec().fields:
                update.remove_field(old.name)
            update.add_field(one.name, transform, f"p{len(self.table.specs())}_{len(self.past)}")

    def append(self) -> None:
        # pyiceberg writes a NULL list of structs as an empty one.
        values = {
            one.field_id: _VALUES[one.kind][1] if one.kind == "structs" else st.none() | _VALUES[one.kind][1]
            for one in self.model.columns
        }
        rows = self.draw(st.lists(st.fixed_dictionaries(values), min_size=1, max_size=6))
        schema = schema_to_pyarrow(self.table.schema(), include_field_ids=False)
        names = {one.field_id: one.name for one in self.model.columns}
        self.table.append(
            pa.Table.from_pylist([{names[key]: value for key, value in row.items()} for row in rows], schema)
        )
        self.model.rows += rows
        self._remember()

    def rename(self) -> None:
        one = self.draw(st.sampled_from(self.model.columns))
        name = self.draw(_NAMES)
        if name.lower() in {other.name.lower() for other in self.model.columns}:
            return
        with self.table.update_schema() as update:
            update.rename_column((one.name,), name)
        one.name = name

    def add(self) -> None:
        name, kind = self.draw(_NAMES), self.draw(st.sampled_from(_PRIMITIVE))
        if name.lower() in {other.name.lower() for other in self.model.columns}:
            return
        with self.table.update_schema() as update:
            update.add_column((name,), _VALUES[kind][0])
        self.model.columns.append(_Column(self.table.metadata.last_column_id, name, kind))

    def drop(self) -> None:
        sources = {one.source_id for spec in self.table.specs().values() for one in spec.fields}
        choices = [one for one in self.model.columns if one.field_id not in sources]
        if len(self.model.columns) < 2 or not choices:
            return
        one = self.draw(st.sampled_from(choices))
        with self.table.update_schema() as update:
            update.delete_column((one.name,))
        self.model.columns.remove(one)

    def widen(self) -> None:
        wider = {"int": "long", "float": "double"}
        choices = [one for one in self.model.columns if one.kind in wider]
        if not choices:
            return
        one = self.draw(st.sampled_from(choices))
        with self.table.update_schema() as update:
            update.update_column((one.name,), field_type=_VALUES[wider[one.kind]][0])
        one.kind = wider[one.kind]

    def delete_positions(self) -> None:
        """Some rows of one file, by a delete file of its partition."""
        table = self.catalog.table("db.t")
        scan = scan_of(table)
        if not scan.files:
            return
        file = self.draw(st.sampled_from(scan.files))
        if file.has_equality_deletes:
            return
        gone = self.draw(st.lists(st.integers(0, file.row_count - 1), min_size=1, unique=True))
        stored = [row for batch in scan.read(replace(file, deletes=())) for row in batch.to_pylist()]
        hidden = scan.deleted(file)
        made = position_deletes(
            table.library, {file.path: gone}, partition=Record(*file.partition), spec_id=file.spec_id
        )
        commit_deletes(table.library, made)
        for place in gone:
            if hidden is None or place not in hidden:
                self._forget(_text(list(stored[place].values())))
        self._remember()

    def _forget(self, text: str) -> None:
        texts = [_text([row.get(one.field_id) for one in self.model.columns]) for row in self.model.rows]
        del self.model.rows[texts.index(text)]

    def delete_values(self) -> None:
        """Rows that have a value in one column, by an equality delete file for the whole table."""
        unpartitioned = [number for number, spec in self.table.specs().items() if not spec.fields]
        choices = [one for one in self.model.columns if one.kind in ("int", "long", "string", "boolean", "date")]
        if self.table.current_snapshot() is None or not unpartitioned or not choices:
            return
        one = self.draw(st.sampled_from(choices))
        known = [row.get(one.field_id) for row in self.model.rows] or [None]
        value = self.draw(st.sampled_from(known))
        kind = schema_to_pyarrow(_VALUES[one.kind][0])
        rows = pa.table({one.name: pa.array([value], kind)})
        commit_deletes(self.table, equality_deletes(self.table, rows, spec_id=unpartitioned[0]))
        self.model.rows = [row for row in self.model.rows if row.get(one.field_id) != value]
        self._remember()

    def _remember(self) -> None:
        snapshot = self.table.current_snapshot()
        assert snapshot is not None
        self.past.append((snapshot.snapshot_id, self.model.copy()))

    def check(self) -> None:
        assert self._rows("SELECT * FROM iceberg.db.t") == self.model.expected()
        for number, model in self.past:
            text = f"SELECT * FROM iceberg.db.t FOR VERSION AS OF {number}"
            names = {one.schema_id: one for one in self.table.metadata.schemas}
            snapshot = self.table.snapshot_by_id(number)
            assert snapshot is not None
            assert snapshot.schema_id in names
            assert self._rows(text) == model.expected()

    def check_condition(self) -> None:
        """A condition prunes files; the same on all rows, which are in a frame, does not."""
        one = self.draw(st.sampled_from(self.model.columns))
        name = '"' + one.name.replace('"', '""') + '"'
        whole = self.lake.sql("SELECT * FROM iceberg.db.t").to_arrow()  # noqa: F841 - a query below names it.
        known = [row.get(one.field_id) for row in self.model.rows]
        drawn = [
            self.draw(st.sampled_from(known) if known and self.draw(st.booleans()) else _VALUES[one.kind][1])
            for _ in "12"
        ]
        if one.kind not in _PRIMITIVE:
            condition, params = f"{name} IS {self.draw(st.sampled_from(['', 'NOT ']))}NULL", {}
        else:
            form = self.draw(st.sampled_from(_FORMS))
            condition = form.replace("{}", name)
            params = {key: value for key, value in zip("xy", drawn, strict=True) if f"${key}" in condition}
        found = self.lake.sql(f"SELECT * FROM iceberg.db.t WHERE {condition}", params or None)
        expected = self.lake.sql(f"SELECT * FROM whole WHERE {condition}", params or None)
        assert _texts(found.rows()) == _texts(expected.rows()), (condition, params)

    def _rows(self, text: str) -> list[str]:
        return _texts(self.lake.sql(text).rows())


_FORMS = (
    *("{} = $x", "{} > $x", "{} >= $x", "{} < $x", "{} <= $x", "{} <> $x", "{} IN ($x, $y)", "NOT ({} = $x)"),
    *("{} IS NULL", "{} IS NOT NULL", "{} BETWEEN $x AND $y", "{} = $x OR {} > $y", "NOT ({} IN ($x, $y))"),
)


def _texts(rows: list[tuple[Any, ...]]) -> list[str]:
    return sorted(_text(list(row)) for row in rows)


def _text(row: list[Any]) -> str:
    return repr([_plain(value) for value in row])


_STEPS = ("append", "rename", "add", "drop", "widen", "_partition", "delete_positions", "delete_values")


@settings(max_examples=examples(25), deadline=None, phases=(Phase.generate,), suppress_health_check=list(HealthCheck))
@given(st.data())
def test_random_tables_read_like_a_model(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        # Files that are reached another way are all ours to read.
        options = {"catalog.iceberg.py-io-impl": "pyiceberg.io.fsspec.FsspecFileIO"} if data.draw(st.booleans()) else {}
        run = _Run(lakelet.connect(folder, options), data.draw)
        run.append()
        for step in data.draw(st.lists(st.sampled_from(_STEPS), max_size=6)):
            getattr(run, step)()
        run.check()
        for _ in range(4):
            run.check_condition()
