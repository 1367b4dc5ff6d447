"""Scan files of an Iceberg table with Spark's own Parquet reader where that is exact: the fast part of a scan.

Spark reads a file only where it provably returns the same rows: a Parquet file on a local or shared disk, of which no row is
deleted, every column stored as a whole in a type that Spark reads and widens as we do. The footers of all files are read
to find out. Files with the same columns make one frame, read by the names that the columns have in them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from lakelet.errors import NotFoundError
from lakelet.iceberg.scan import IcebergScan, PlainColumn, PlainColumns, ScanFile
from lakelet.iceberg.schema.column_types import model_field
from lakelet.model.types import Field
from lakelet.predicate.tree import Predicate
from lakelet.spark.iceberg.types import spark_fields
from lakelet.spark.read.parquet_frame import parquet_frame, read_as, shielded, takes_any_name
from lakelet.spark.read.predicate_expression import spark_condition, translates
from lakelet.spark.types import spark_type

_PARQUET = "PARQUET"
_WORKERS = 8
_GLOB = frozenset("{}[]*?\\")
# Beyond this number of files reading their footers would take longer than Spark's reader saves.
_MOST_FOOTERS = 2_000
_PLAIN: dict[pa.DataType, T.DataType] = {
    pa.bool_(): T.BooleanType(),
    pa.int32(): T.IntegerType(),
    pa.int64(): T.LongType(),
    pa.float32(): T.FloatType(),
    pa.float64(): T.DoubleType(),
    pa.date32(): T.DateType(),
    pa.string(): T.StringType(),
    pa.large_string(): T.StringType(),
    pa.binary(): T.BinaryType(),
    pa.large_binary(): T.BinaryType(),
    pa.timestamp("us"): T.TimestampNTZType(),
    pa.timestamp("us", "UTC"): T.TimestampType(),
}
_WIDER = {(T.IntegerType(), T.LongType()), (T.FloatType(), T.DoubleType())}
_Read = tuple[tuple[str, T.DataType | None], ...]


def raw_frames(
    spark: SparkSession, scan: IcebergScan, wanted: Sequence[Field], where: Predicate | None
) -> tuple[list[DataFrame], list[ScanFile]]:
    """DataFrames of the files that Spark reads itself, in the projected columns, and the files that remain."""
    fields = {field.name: field for field in _fields(scan)}
    if where is not None and not translates(where, {name: field.type for name, field in fields.items()}):
        return [], list(scan.files)
    any_name = takes_any_name(spark)
    candidates = [file for file in scan.files if _reachable(scan, file, any_name=any_name)]
    if len(candidates) > _MOST_FOOTERS:
        return [], list(scan.files)
    with ThreadPoolExecutor(_WORKERS) as pool:
        found = dict(zip((file.path for file in candidates), pool.map(scan.plain_columns, candidates), strict=True))
    groups: dict[_Read, list[ScanFile]] = {}
    left: list[ScanFile] = []
    for file in scan.files:
        plain = found.get(file.path)
        stored = None if plain is None else _stored(plain, fields)
        if stored is None:
            left.append(file)
        else:
            groups.setdefault(stored, []).append(file)
    frames = [_frame(spark, scan, stored, files, wanted, where) for stored, files in groups.items()]
    return frames, left


def _fields(scan: IcebergScan) -> tuple[Field, ...]:
    return tuple(model_field(field) for field in scan.iceberg_schema.fields if field.name in scan.columns)


def _reachable(scan: IcebergScan, file: ScanFile, *, any_name: bool) -> bool:
    """Whether Spark can open the file: on a path that it takes literally and does not hide."""
    path = scan.local_path(file.path)
    if path is None or file.format != _PARQUET or file.deletes:
        return False
    name = path.rsplit("/", 1)[-1]
    hidden = name.startswith(("_", ".")) or name.endswith("._COPYING_")
    return not hidden and not _GLOB & set(path) and (any_name or path.isascii())


def _stored(plain: PlainColumns, fields: Mapping[str, Field]) -> _Read | None:
    """Each column's name in the file with its type there, None for one that is NULL in all rows; None for files that Spark would
    read differently."""
    names = [name.lower() for name, _ in plain.stored]
    if len(set(names)) < len(names):
        return None
    found: list[tuple[str, T.DataType | None]] = []
    for column in plain.columns:
        if column.stored_name is None:
            found.append(("", None))
            continue
        stored = _spark_type(column)
        target = _spark_target(fields[column.name])
        if stored is None or not _widens(stored, target):
            return None
        found.append((column.stored_name, stored))
    return tuple(found)


def _spark_type(column: PlainColumn) -> T.DataType | None:
    kind = column.stored_type
    if kind is not None and pa.types.is_decimal128(kind):
        return T.DecimalType(kind.precision, kind.scale)
    return _PLAIN.get(kind)


def _widens(stored: T.DataType, target: T.DataType) -> bool:
    if isinstance(stored, T.DecimalType) and isinstance(target, T.DecimalType):
        return stored.scale == target.scale and stored.precision <= target.precision
    return stored == target or (stored, target) in _WIDER


def _frame(
    spark: SparkSession,
    scan: IcebergScan,
    stored: _Read,
    files: Sequence[ScanFile],
    wanted: Sequence[Field],
    where: Predicate | None,
) -> DataFrame:
    present = T.StructType([T.StructField(name, kind) for name, kind in stored if kind is not None])
    paths = [f"file://{scan.local_path(file.path)}" for file in files]
    try:
        frame = parquet_frame(spark, paths, present)
    except NotFoundError as error:
        raise NotFoundError(f"table {scan.table}, snapshot {scan.snapshot_id}: {error}") from error
    fields = _fields(scan)
    columns = {
        field.name: (read_as(name, kind, _spark_target(field)), field.type)
        for field, (name, kind) in zip(fields, stored, strict=True)
    }
    if where is not None:
        frame = frame.where(spark_condition(where, columns))
    return frame.select([shielded(columns[field.name][0], field.type).alias(field.name) for field in wanted])


def _spark_target(field: Field) -> T.DataType:
    return spark_type(spark_fields([field])[0].type)
