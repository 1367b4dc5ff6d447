"""Read Parquet, CSV or JSON files as a DataFrame in a table's types, strictly: a malformed value is an error, never a NULL.

    Parquet    the columns of all files, NULL where a file lacks one; values of `k=v` folders are read as the table's type,
               never guessed
    CSV        columns by the names in the header, which all files share; values parsed as the table's types; nothing
               between two separators is NULL, quotes with nothing in between are empty text
    JSON       one object a line, columns by name; a key that the table does not have is an error, inside of rows too

A column that the table does not have is an error. So is a value that would be cut or rounded (`strict_text`), and a file that
cannot be read, whatever the session's settings. Text is parsed twice: once to count the rows that are malformed, before
anything is written, and once to write. Without a table the types are those that Spark infers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, DataFrameReader, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from lakelet.catalog.names import matching
from lakelet.errors import InvalidError
from lakelet.model.types import Atomic, Field
from lakelet.spark.column_names import column_named
from lakelet.spark.jobs.strict_text import StrictText, check_keys
from lakelet.spark.session import settings
from lakelet.spark.types import spark_type

FORMATS = ("parquet", "csv", "json")
_MALFORMED = "_lakelet_malformed"
_OURS = {
    "mode",
    "header",
    "inferschema",
    "enforceschema",
    "columnnameofcorruptrecord",
    "multiline",
    "mergeschema",
    "ignorecorruptfiles",
    "ignoremissingfiles",
}
_ALL_FILES = {"ignoreCorruptFiles": "false", "ignoreMissingFiles": "false"}
_ALL_COLUMNS = {"mergeSchema": "true"}
_TEXT_OPTIONS = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _MALFORMED}
_NO_GUESSING = {
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
    "spark.sql.parquet.respectSummaryFiles": "false",
}
_LONGEST = 200
_TOLD_LINES = 5
# Nothing is NULL but what is left out: quotes with nothing in between are text.
_NOT_NULL = {"nullValue": "\ue000"}
_FOLDER = re.compile(r"/([^/=]+)=[^/]*(?=/)")


@dataclass(frozen=True, slots=True)
class SourceFrame:
    """Files to read: their paths, format and options for Spark's reader. `extra` are columns that the table need not have."""

    spark: SparkSession
    paths: tuple[str, ...]
    format: str
    options: Mapping[str, str]
    extra: tuple[str, ...] = ()

    def inferred(self) -> DataFrame:
        """The rows in the types that Spark infers."""
        with reading(self.paths):
            match self.format:
                case "csv":
                    return self._reader(header="true", inferSchema="true", mode="FAILFAST").csv(list(self.paths))
                case "json":
                    return self._reader(mode="FAILFAST").json(list(self.paths))
                case _:
                    return self._reader(**_ALL_COLUMNS).parquet(*self.paths)

    def typed(self, fields: Sequence[Field]) -> DataFrame:
        """The rows in the types of these columns, as far as the files have them."""
        with reading(self.paths):
            if self.format == "parquet":
                return self._parquet(fields)
            strict = StrictText.of(self.options)
            found = self._found()
            types = {column.name: self._matched(column.name, fields) for column in found}
            for column in found:
                self._check_format(column, types[column.name])
            frame = self._text(
                [
                    T.StructField(name, T.StringType() if field is None else strict.read_type(field.type))
                    for name, field in types.items()
                ]
            )
            columns = {name: column_named(name) for name in types}
            _check(
                frame,
                self.paths,
                [strict.is_bad(columns[name], field.type) for name, field in types.items() if field is not None],
            )
            return frame.select(
                *[
                    columns[name] if field is None else strict.value(columns[name], field.type).alias(name)
                    for name, field in types.items()
                ]
            )

    def _found(self) -> list[T.StructField]:
        """The columns that the files have; those inside of others only for JSON."""
        if self.format == "csv":
            return list(self._reader(header="true", inferSchema="false").csv(list(self.paths)).schema)
        whole = self._reader(
            primitivesAsString="true", samplingRatio="1.0", dropFieldIfAllNull="false", **_TEXT_OPTIONS
        )
        return [column for column in whole.json(list(self.paths)).schema if column.name != _MALFORMED]

    def _matched(self, name: str, fields: Sequence[Field]) -> Field | None:
        """The column of the table; None for one that it need not have."""
        field = _matching(name, fields)
        if field is None and name not in self.extra:
            known = ", ".join(field.name for field in fields)
            raise InvalidError(
                f"the files have the column {name!r}, which is not in the table; its columns are {known}"
            )
        return field

    def _check_format(self, column: T.StructField, field: Field | None) -> None:
        if field is None:
            return
        if self.format == "csv" and not isinstance(field.type, Atomic):
            raise InvalidError(f"column {column.name!r} is {field.type}, which CSV cannot hold: use JSON or Parquet")
        check_keys(column.dataType, field.type, column.name)

    def _text(self, columns: Sequence[T.StructField]) -> DataFrame:
        schema = T.StructType([*columns, T.StructField(_MALFORMED, T.StringType())])
        if self.format == "json":
            return self._reader(**_TEXT_OPTIONS).schema(schema).json(list(self.paths))
        reader = self._reader(header="true", enforceSchema="false", **_TEXT_OPTIONS)
        return reader.schema(schema).csv(list(self.paths))

    def _parquet(self, fields: Sequence[Field]) -> DataFrame:
        with settings(self.spark, _NO_GUESSING):
            frame = self._reader(**_ALL_COLUMNS).parquet(*self.paths)
            schema = frame.schema
            matched = {column.name: self._matched(column.name, fields) for column in schema}
            folders = set(_FOLDER.findall(next(iter(frame.inputFiles()), "")))
            replaced = [
                T.StructField(column.name, spark_type(found.type))
                if column.name in folders and (found := matched[column.name]) is not None
                else column
                for column in schema
            ]
            if replaced == list(schema):
                return frame
            return self._reader().schema(T.StructType(replaced)).parquet(*self.paths)

    def _reader(self, **options: str) -> DataFrameReader:
        text = _NOT_NULL if self.format == "csv" else {}
        return self.spark.read.options(**{**text, **self.options, **_ALL_FILES, **options})


def check_read_options(options: Mapping[str, str] | None) -> dict[str, str]:
    """The options for Spark's reader; InvalidError for those that strict reading relies on."""
    given = {str(key): str(value) for key, value in (options or {}).items()}
    ours = [key for key in given if key.lower() in _OURS]
    if ours:
        raise InvalidError(f"read option {ours[0]!r} is set by the load itself, which reads by name and drops no row")
    StrictText.of(given)
    return given


class reading:
    """Converts Spark's errors about unreadable files into an error of Lakelet, of one line."""

    def __init__(self, paths: Sequence[str]) -> None:
        self._paths = paths

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if isinstance(error, PySparkException) or hasattr(error, "java_exception"):
            where = ", ".join(self._paths)
            raise InvalidError(f"{where} cannot be read: {_reason(str(error))[: 2 * _LONGEST]}") from None


def _reason(text: str) -> str:
    """The innermost cause that the JVM names, with the lines that belong to it; else the first line."""
    cause = text.rpartition("Caused by: ")[2] if "Caused by: " in text else text
    lines = [line.strip() for line in cause.split("\n\tat ", 1)[0].splitlines() if line.strip()]
    return "; ".join(lines[:_TOLD_LINES])


def _check(frame: DataFrame, paths: Sequence[str], losses: Sequence[Column]) -> None:
    """InvalidError with the number of malformed rows and some of them."""
    bad = F.col(_MALFORMED).isNotNull()
    for loss in losses:
        bad = bad | loss
    names = [name for name in frame.columns if name != _MALFORMED]
    # Columns that a query does not use are not parsed, so that this one uses all.
    used = F.sum(sum((column_named(name).isNull().cast("long") for name in names), F.lit(0)))
    shown = F.coalesce(F.col(_MALFORMED), F.to_json(F.struct(*[column_named(name) for name in names])))
    example = F.when(bad, F.substring(shown, 1, _LONGEST))
    row = frame.agg(F.count(F.when(bad, 1)), F.min(example), F.max(example), F.first(example, True), used).collect()[0]
    if row[0]:
        texts = "; ".join(repr(text) for text in dict.fromkeys([row[3], row[1], row[2]]))
        raise InvalidError(
            f"{', '.join(paths)}: {row[0]} rows are malformed for the columns of the table, such as {texts}; nothing was written"
        )


def _matching(name: str, fields: Sequence[Field]) -> Field | None:
    found = matching(name, [field.name for field in fields])
    return next((field for field in fields if field.name == found), None)
