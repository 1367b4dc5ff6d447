"""Match the columns of a DataFrame with those of a table by name, before any job runs.

A name matches exactly, or case-insensitively where that is unambiguous and `spark.sql.caseSensitive` is off. All
mismatches are reported in one error on the driver, with the types expected and found. Values are not converted here: the
writer does that, as in local writes. The exception are routing columns (primary key, bucket key,
partition), for expressions in the JVM take them as they are: integers are widened there, everything else goes through
the sink's caster before rows are shuffled. Columns that the data lacks get their default when written, again
except for routing columns and those that decide the row kind.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_type

from lakelet.errors import InvalidError
from lakelet.model.arrow.arrow_types import to_arrow
from lakelet.model.schema import TableSchema
from lakelet.model.types import Field, with_nullable
from lakelet.options import ROWKIND_FIELD, TableOptions
from lakelet.sink.rows.cast import RowCaster
from lakelet.sink.rows.defaults import ColumnDefaults
from lakelet.sink.rows.missing_columns import DEFAULT, ERROR, KEEP, missing_columns, missing_error
from lakelet.spark.arrow_tasks import Task, mapped
from lakelet.spark.types import from_spark_arrow, spark_type, table_arrow_type, to_spark_arrow

DEFAULT_KINDS = "_row_kind"
_INTEGERS = (T.ByteType, T.ShortType, T.IntegerType, T.LongType)
_EPOCH = dt.datetime(1970, 1, 1)


@dataclass(frozen=True, slots=True)
class Matched:
    """The rows under the table's names, and the column of row kinds (None: all are inserts)."""

    frame: DataFrame
    kinds: str | None


def matched(
    df: DataFrame,
    schema: TableSchema,
    *,
    fixed: Mapping[str, object],
    kinds: str | None,
    missing: str = DEFAULT,
    now_ms: int = 0,
) -> Matched:
    """The table's columns that the data has, the columns of a static partition that it leaves out, and last the column of
    row kinds where that is none of the table's. InvalidError names everything that does not fit, and columns that are `missing`
    where that is an error; rows that carry their kinds are checked when they are written. `now_ms` is the current time of
    default values."""
    defaults = ColumnDefaults.of(schema, now_ms)
    columns, kind_column = _checked(df.sparkSession, df.schema, schema, fixed=fixed, kinds=kinds, missing=missing)
    # Positions in place of names: nothing in a name can be misread, and two may differ by case alone.
    positions = [f"c{index}" for index in range(len(df.schema.fields))]
    chosen: list[Column] = []
    narrowed: list[Field] = []
    for field in schema.fields:
        index = columns.index_of.get(field.name)
        if index is not None:
            column = F.col(positions[index])
            given = df.schema.fields[index].dataType
            found = without_void(given, spark_type(field.type))
            if found != given:
                column = column.cast(found)
            if field.name in routing_columns(schema) and not _is_same(found, field):
                if _widens(found, field):
                    column = column.cast(spark_type(field.type))
                else:
                    narrowed.append(field)
            chosen.append(column.alias(field.name))
        elif field.name in fixed:
            chosen.append(literal(fixed[field.name], field).alias(field.name))
        elif field.name in (*routing_columns(schema), TableOptions(schema.options).get(ROWKIND_FIELD)):
            chosen.append(literal(_default(field, defaults), field).alias(field.name))
    if kind_column is not None and kind_column.name not in schema.names:
        chosen.append(F.col(positions[kind_column.index]).alias(kind_column.name))
    frame = df.toDF(*positions).select(*chosen)
    return Matched(_converted(frame, narrowed), kind_column.name if kind_column is not None else None)


@dataclass(frozen=True, slots=True)
class Places:
    """The place in the data of each column that is written, in the table's order and with that of row kinds last, and the name of
    the latter (None: all rows are inserts)."""

    index_of: Mapping[str, int]
    kinds: str | None


def matched_places(
    spark: SparkSession,
    found: T.StructType,
    schema: TableSchema,
    *,
    fixed: Mapping[str, object],
    kinds: str | None,
    missing: str = DEFAULT,
) -> Places:
    """The columns of `matched`, for rows that are taken from the data by the reader of the result."""
    columns, kind_column = _checked(spark, found, schema, fixed=fixed, kinds=kinds, missing=missing)
    index_of = {name: columns.index_of[name] for name in schema.names if name in columns.index_of}
    defaults = ColumnDefaults.of(schema, 0)
    for name in routing_columns(schema) - index_of.keys() - fixed.keys():
        _check_default(schema.field(name), defaults)
    if kind_column is None:
        return Places(index_of, None)
    return Places({**index_of, kind_column.name: kind_column.index}, kind_column.name)


def _checked(
    spark: SparkSession,
    found: T.StructType,
    schema: TableSchema,
    *,
    fixed: Mapping[str, object],
    kinds: str | None,
    missing: str,
) -> tuple[_Columns, _KindColumn | None]:
    case_sensitive = str(spark.conf.get("spark.sql.caseSensitive", "false")).lower() == "true"
    columns = _Columns(schema, list(found.fields), case_sensitive=case_sensitive)
    kind_column = columns.take_kinds(kinds)
    columns.check(fixed, missing)
    if missing == ERROR and kind_column is None and TableOptions(schema.options).get(ROWKIND_FIELD) is None:
        columns.check_missing(fixed)
    if not columns.index_of:
        raise InvalidError(f"the data has none of the table's columns, which are {', '.join(schema.names)}")
    return columns, kind_column


def _default(field: Field, defaults: ColumnDefaults) -> object:
    """The default of a routing column, the same for all rows."""
    _check_default(field, defaults)
    return defaults.array(field, 1)[0].as_py()


def _check_default(field: Field, defaults: ColumnDefaults) -> None:
    if defaults.volatile([field]):
        raise InvalidError(
            f"the data lacks column {field.name!r}, by which Spark routes rows of this table, and its default "
            f"{defaults.expressions[field.name]} differs from row to row: give the column, "
            f"df.withColumn({field.name!r}, …)"
        )


@dataclass(frozen=True, slots=True)
class _KindColumn:
    name: str
    index: int


class _Columns:
    """The mapping of the data's columns to the table's, and the mismatches found."""

    def __init__(self, schema: TableSchema, found: Sequence[T.StructField], *, case_sensitive: bool) -> None:
        self._schema = schema
        self._found = found
        self._case_sensitive = case_sensitive
        self._wrong: list[str] = []
        self._kinds: int | None = None
        self.index_of: dict[str, int] = {}

    def take_kinds(self, name: str | None) -> _KindColumn | None:
        """The column of row kinds: the one asked for, or the one of the usual name."""
        column = TableOptions(self._schema.options).get(ROWKIND_FIELD)
        if name is not None and column is not None:
            raise InvalidError(
                f"kinds= was given, but the table takes them from its column {column!r} (option 'rowkind.field')"
            )
        if name is None:
            if not self._schema.primary_keys or column is not None or DEFAULT_KINDS in self._schema.names:
                return None
            if not self._places(DEFAULT_KINDS):
                return None
        wanted = DEFAULT_KINDS if name is None else name
        places = self._places(wanted)
        if len(places) != 1:
            there = ", ".join(field.name for field in self._found)
            raise InvalidError(f"kinds: expected one column {wanted!r} in the data, found {len(places)} among {there}")
        found = self._found[places[0]]
        if not isinstance(found.dataType, (T.StringType, *_INTEGERS)):
            self._wrong.append(
                f"column {wanted!r} tells row kinds: expected STRING or INT, found {_shown(found.dataType)}"
            )
        own = self._table_name(found.name)
        if own is not None:
            return _KindColumn(own, places[0])
        self._kinds = places[0]
        return _KindColumn(wanted, places[0])

    def check_missing(self, fixed: Mapping[str, object]) -> None:
        """InvalidError naming the columns and the fields of ROWs that the data lacks."""
        found = [pa.field(name, to_arrow(self._schema.field(name).type)) for name in fixed if name not in self.index_of]
        for name, index in self.index_of.items():
            told = without_void(self._found[index].dataType, spark_type(self._schema.field(name).type))
            found.append(pa.field(name, to_arrow_type(told, timezone="UTC")))
        lacking = missing_columns(pa.schema(found), self._schema.fields)
        if lacking:
            raise missing_error(lacking)

    def check(self, fixed: Mapping[str, object], missing: str = DEFAULT) -> None:
        """Matches all columns; InvalidError naming everything that does not fit."""
        self._match()
        defaults = ColumnDefaults.of(self._schema, 0)
        known = {field.name: field for field in self._schema.fields}
        for name, index in self.index_of.items():
            self._check_type(known[name], self._found[index].dataType)
        self._wrong += [
            f"column {field.name!r} is {field.type} without a default, but the data does not have it"
            for field in self._schema.fields
            if not field.type.nullable
            and not defaults.has(field)
            and field.name not in self.index_of
            and field.name not in fixed
            and (missing != KEEP or field.name in routing_columns(self._schema))
        ]
        self._wrong += [
            f"missing='keep': the data lacks column {name!r}, by which Spark routes rows of this table"
            for name in (self._schema.partition_keys if missing == KEEP else ())
            if name not in self.index_of
        ]
        if not self._case_sensitive:
            folded = [name.casefold() for name in self._schema.names]
            self._wrong += [
                f"column {name!r} of the table differs from another by case alone: set spark.sql.caseSensitive to true"
                for name in (*self.index_of, *(name for name in fixed if name not in self.index_of))
                if folded.count(name.casefold()) > 1
            ]
        if self._wrong:
            raise InvalidError(f"the data does not fit the table: {'; '.join(self._wrong)}")

    def _match(self) -> None:
        givers: dict[str, list[int]] = {}
        for index, field in enumerate(self._found):
            own = self._table_name(field.name)
            if own is not None:
                givers.setdefault(own, []).append(index)
            elif index != self._kinds:
                self._wrong.append(
                    f"the data has the column {field.name!r} ({_shown(field.dataType)}), which is not in the table; "
                    f"its columns are {', '.join(self._schema.names)}"
                )
        for name, places in givers.items():
            if len(places) > 1:
                spelled = ", ".join(repr(self._found[index].name) for index in places)
                self._wrong.append(f"the data has the column {name!r} {len(places)} times ({spelled})")
            self.index_of[name] = places[0]

    def _table_name(self, name: str) -> str | None:
        """The name in the table of a column of the data, None for one that is not there."""
        if name in self._schema.names:
            return name
        if self._case_sensitive:
            return None
        alike = [own for own in self._schema.names if own.casefold() == name.casefold()]
        return alike[0] if len(alike) == 1 else None

    def _places(self, name: str) -> list[int]:
        exact = [index for index, field in enumerate(self._found) if field.name == name]
        if exact or self._case_sensitive:
            return exact
        return [index for index, field in enumerate(self._found) if field.name.casefold() == name.casefold()]

    def _check_type(self, field: Field, found: T.DataType) -> None:
        told = without_void(found, spark_type(field.type))
        try:
            arrow = table_arrow_type(to_arrow_type(told, timezone="UTC"), field.type)
        except (PySparkException, ValueError):
            self._wrong.append(f"column {field.name!r} is {field.type}; the data has {_shown(found)}")
            return
        try:
            RowCaster([field]).cast(pa.RecordBatch.from_arrays([pa.array([], arrow)], names=[field.name]))
        except InvalidError:
            self._wrong.append(
                f"column {field.name!r} is {field.type}; the data has {_shown(found)}, which does not convert without loss"
            )


def without_void(found: T.DataType, wanted: T.DataType) -> T.DataType:
    """The type with VOID, at any depth, replaced by the type that the table has there."""
    match found, wanted:
        case T.NullType(), _:
            return wanted
        case T.ArrayType(), T.ArrayType():
            element = without_void(found.elementType, wanted.elementType)
            return found if element == found.elementType else T.ArrayType(element)
        case T.MapType(), T.MapType():
            key, value = (
                without_void(found.keyType, wanted.keyType),
                without_void(found.valueType, wanted.valueType),
            )
            return found if (key, value) == (found.keyType, found.valueType) else T.MapType(key, value)
        case T.StructType(), T.StructType():
            known = {field.name: field.dataType for field in wanted}
            inner = [without_void(field.dataType, known.get(field.name, field.dataType)) for field in found]
            if inner == [field.dataType for field in found]:
                return found
            return T.StructType([T.StructField(old.name, new) for old, new in zip(found, inner, strict=True)])
        case _:
            return found


def _shown(found: T.DataType) -> str:
    return found.simpleString().upper()


def routing_columns(schema: TableSchema) -> frozenset[str]:
    """The columns by which rows find their partition and bucket."""
    return frozenset((*schema.primary_keys, *schema.bucket_keys, *schema.partition_keys))


def _is_same(found: T.DataType, field: Field) -> bool:
    return found == spark_type(field.type)


def _widens(found: T.DataType, field: Field) -> bool:
    """Whether Spark's own cast keeps every value."""
    target = spark_type(field.type)
    if isinstance(found, T.NullType):
        return True
    if isinstance(found, T.StringType) and isinstance(target, T.StringType):
        # The bytes stay. A collation would take different values for one.
        return True
    if isinstance(target, _INTEGERS) and isinstance(found, _INTEGERS) and not pa.types.is_time(to_arrow(field.type)):
        return _INTEGERS.index(type(found)) < _INTEGERS.index(type(target))
    return isinstance(target, T.DoubleType) and isinstance(found, T.FloatType)


def literal(value: object, field: Field) -> Column:
    """A value of a table's type as a Spark literal."""
    target = spark_type(field.type)
    if value is None:
        return F.lit(None).cast(target)
    one = pa.RecordBatch.from_arrays([pa.array([value], to_arrow(field.type))], names=[field.name])
    array = to_spark_arrow(one, [field]).column(0)
    if isinstance(target, (T.TimestampType, T.TimestampNTZType)):
        micros = array.view(pa.int64())[0].as_py()
        if isinstance(target, T.TimestampType):
            return F.timestamp_micros(F.lit(micros).cast("bigint"))
        # As text, for a literal without a zone would be read in that of this process.
        return F.lit((_EPOCH + dt.timedelta(microseconds=micros)).isoformat(" ")).cast(target)
    if isinstance(target, T.DateType):
        return F.date_from_unix_date(F.lit(array.view(pa.int32())[0].as_py()))
    found = array[0].as_py()
    return F.lit(str(found)).cast(target) if isinstance(target, T.DecimalType) else F.lit(found).cast(target)


def _converted(frame: DataFrame, fields: Sequence[Field]) -> DataFrame:
    """The frame with these columns in the table's types, converted value by value as in local writes."""
    if not fields:
        return frame
    by_name = {field.name: field for field in fields}
    schema = T.StructType(
        [
            T.StructField(found.name, spark_type(by_name[found.name].type) if found.name in by_name else found.dataType)
            for found in frame.schema.fields
        ]
    )
    return mapped(frame, _conversion(fields), schema)


def _conversion(fields: Sequence[Field]) -> Task:
    # NULL in a key is the writer's to refuse, with all of them counted.
    nullable = tuple(replace(field, type=with_nullable(field.type, True)) for field in fields)

    def convert(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        caster, rows = RowCaster(nullable), 0
        for batch in batches:
            own = from_spark_arrow(batch.select([field.name for field in nullable]), nullable)
            columns = to_spark_arrow(caster.cast(own, first_row=rows), nullable)
            rows += batch.num_rows
            arrays = [
                columns.column(name) if name in columns.schema.names else batch.column(index)
                for index, name in enumerate(batch.schema.names)
            ]
            yield pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)

    return convert
