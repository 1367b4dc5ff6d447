"""`ls.sql`: run Spark SQL over tables of a lake, joined with one another and with the session's own tables.

    SELECT o.id, c.name FROM shop.orders VERSION AS OF 3 o JOIN customers_view c USING (customer)
    SELECT count(*) FROM shop.orders TIMESTAMP AS OF '2026-01-01 12:00'          also FOR VERSION, FOR TIMESTAMP
    SELECT * FROM shop.orders VERSION AS OF 'a-tag'
    SELECT * FROM shop.orders$branch_dev
    INSERT INTO shop.orders (id, amount) SELECT …
    INSERT OVERWRITE shop.orders PARTITION (dt = '2026-01-01') SELECT …

A name of two parts whose first is a database of the lake is a table of the lake, one of three parts whose first is an Iceberg
catalog that the lake knows a table of that; all other names are Spark's. Only these
names are replaced, by frames of `lakelet.spark.table` that hold the columns which the statement mentions; the rest of
the text reaches Spark as it is, so that everything Spark can do works. A timestamp without a zone is in the session's time zone.

INSERT matches columns by position, as Spark does, unless BY NAME; values are converted as Spark's INSERT does where nothing is
lost. Without PARTITION, INSERT OVERWRITE replaces the whole table, or the partitions that the rows belong to where
spark.sql.sources.partitionOverwriteMode is "dynamic". It returns one row: the snapshot and the number of added rows.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from lakelet.catalog.lake import Lake
from lakelet.errors import InvalidError
from lakelet.spark.column_names import quoted
from lakelet.spark.opened_lake import open_lake
from lakelet.spark.opened_table import open_table
from lakelet.spark.read.table_frame import scan_frame
from lakelet.spark.sql.aliases import aliases, key_of, qualifiers
from lakelet.spark.sql.insert import Insert, parse_insert
from lakelet.spark.sql.insert_target import InsertTarget
from lakelet.spark.sql.names import LakeNames, TableName
from lakelet.spark.sql.read_columns import read_columns
from lakelet.sql.lexer.spark_references import Reference, references
from lakelet.sql.lexer.spark_words import Word, words_of
from lakelet.table.read.table_scan import TableScan

_QUERIES = ("SELECT", "WITH", "FROM", "VALUES", "TABLE", "(")
_READS = (*_QUERIES, "CREATE", "INSERT")


def sql(
    spark: SparkSession,
    warehouse: str | os.PathLike[str],
    text: str,
    options: Mapping[str, str] | None = None,
) -> DataFrame:
    """Runs a statement. `options` are those of the connection, and table options for this statement alone."""
    lake = open_lake(warehouse, options)
    statement = _statement(spark, lake, text, {str(key): str(value) for key, value in (options or {}).items()})
    insert = parse_insert(text, statement.words)
    target = None if insert is None else statement.names.find(insert.target)
    if insert is not None and target is not None:
        return statement.insert(insert, target)
    return statement.run()


def query(spark: SparkSession, lake: Lake, text: str) -> DataFrame:
    """The rows of a query over tables of a lake that is open; an error for any other statement, and nothing is done."""
    return _statement(spark, lake, text, lake.opened_with).read()


def _statement(spark: SparkSession, lake: Lake, text: str, options: Mapping[str, str]) -> _Statement:
    words = words_of(text, quotes_names=_quotes_names(spark))
    if not words:
        raise InvalidError("the statement is empty")
    return _Statement(spark, lake.location, options, LakeNames(spark, lake), text, words)


@dataclass(frozen=True, slots=True)
class _Statement:
    spark: SparkSession
    warehouse: str
    options: Mapping[str, str]
    names: LakeNames
    text: str
    words: Sequence[Word]
    scans: dict[tuple[TableName, int | str | None, str | None], TableScan] = field(default_factory=dict)
    # Iceberg tables as all references of the statement see them.
    pinned: dict[tuple[str, str], Any] = field(default_factory=dict)

    def run(self) -> DataFrame:
        """Anything but an INSERT into a table of the lake."""
        found = self._found(0, len(self.text))
        if found:
            self._check_kind()
        text, frames = self._replaced(found, (0, len(self.text)))
        return self._spark_sql(text, frames)

    def read(self) -> DataFrame:
        """A query and nothing else. Whether it is one is up to Spark's own parser: within parentheses it takes no other."""
        if self.words[0].keyword not in _QUERIES:
            raise InvalidError(f"expected a query ({', '.join(_QUERIES[:-1])}), found {self.words[0].text}")
        ends = next((word.start for word in reversed(self.words) if word.keyword != ";"), 0)
        end = next((word.start for word in self.words if word.keyword == ";" and word.start > ends), len(self.text))
        text, frames = self._replaced(self._found(0, end), (0, end))
        return self._spark_sql(f"SELECT * FROM ({text}\n)", frames)

    def insert(self, insert: Insert, target: TableName) -> DataFrame:
        """Writes the rows of the query."""
        goal = self._target(target)
        goal.check(insert)
        rows = self._spark_sql(*self._query(insert))
        return goal.write(rows, insert)

    def _target(self, name: TableName) -> InsertTarget:
        if name.catalog is None:
            return InsertTarget(self.spark, self.warehouse, name, self.options)
        from lakelet.spark.iceberg.sql_tables import IcebergTarget  # noqa: PLC0415 - pyiceberg loads with it, and need not be there.

        return IcebergTarget(self.spark, self.warehouse, name, self.options)

    def _query(self, insert: Insert) -> tuple[str, dict[str, DataFrame]]:
        """The query of an INSERT; common tables named before INSERT come before it."""
        spans = (insert.prefix, insert.query)
        found = [one for start, end in spans for one in self._found(start, end)]
        prefix, frames = self._replaced(found, insert.prefix)
        query, others = self._replaced(found, insert.query, len(frames))
        whole = f"{prefix} SELECT * FROM ({query})" if prefix.strip() else query
        return whole, {**frames, **others}

    def _found(self, start: int, end: int) -> list[tuple[Reference, TableName]]:
        """The references to tables of the lake within a part of the text."""
        within = [reference for reference in references(self.words) if start <= reference.start < end]
        named = ((reference, self.names.find(reference)) for reference in within)
        return [(reference, name) for reference, name in named if name is not None]

    def _check_kind(self) -> None:
        """InvalidError for statements that would change a table of the lake, or store a name that only the statement knows."""
        first = self.words[0].keyword
        makes_view = first == "CREATE" and any(word.keyword == "VIEW" for word in self.words[1:5])
        if makes_view:
            raise InvalidError(
                "CREATE VIEW over tables of a lake: use sql(…, 'SELECT …').createOrReplaceTempView(name)"
            )
        if first == "EXPLAIN":
            raise InvalidError("EXPLAIN over tables of a lake: use sql(…, 'SELECT …').explain()")
        if first not in _READS:
            raise InvalidError(f"{first}: this SQL reads tables of a lake and inserts into them, and does nothing else")

    def _replaced(
        self, found: Sequence[tuple[Reference, TableName]], span: tuple[int, int], first: int = 0
    ) -> tuple[str, dict[str, DataFrame]]:
        """A part of the text with `{name}` for each table, and the frames of these names."""
        frames: dict[str, DataFrame] = {}
        changes: list[tuple[int, int, str]] = []
        start, end = span
        known = [reference for reference, _ in found]
        called = aliases(self.words, known)
        for reference, name in found:
            if start <= reference.start < end:
                key = f"table{first + len(frames)}"
                frames[key] = self._frame(reference, name)
                plain = reference.after == "TABLE"
                # In parentheses, for another alias and TABLESAMPLE may follow.
                new = f"{{{key}}}" if plain else f"({{{key}}} AS {_escaped(quoted(called[key_of(reference)]))})"
                changes.append((reference.start, reference.end, new))
        for one in qualifiers(self.words, known):
            if start <= one.start < end:
                changes.append((one.start, one.end, _escaped(quoted(called[one.key]))))
        parts = []
        for begin, behind, new in sorted(changes):
            parts += [_escaped(self.text[start:begin]), new]
            start = behind
        return "".join((*parts, _escaped(self.text[start:end]))), frames

    def _frame(self, reference: Reference, name: TableName) -> DataFrame:
        mentioned = read_columns(self.words)
        if name.catalog is not None:
            return self._iceberg_frame(reference, name, None if self._reads_patterns() else mentioned)
        scan = self._scan(reference, name)
        if mentioned is not None and not self._reads_patterns():
            chosen = tuple(column for column in scan.columns if column.lower() in mentioned)
            scan = replace(scan, columns=chosen or (scan.schema.primary_keys or scan.columns)[:1])
        return scan_frame(self.spark, scan)

    def _iceberg_frame(self, reference: Reference, name: TableName, mentioned: frozenset[str] | None) -> DataFrame:
        from lakelet.spark.iceberg.sql_tables import IcebergTables  # noqa: PLC0415 - pyiceberg loads with it, and need not be there.

        tables = IcebergTables(self.spark, self.names.lake, self.pinned)
        return tables.frame(name, reference.version, self._moment(reference.timestamp), mentioned)

    def _scan(self, reference: Reference, name: TableName) -> TableScan:
        """The pinned scan that all references to this version of a table share, whatever is committed meanwhile."""
        key = (name, reference.version, reference.timestamp)
        if key not in self.scans:
            opened = open_table(self.warehouse, name.table, self.options, name.branch)
            moment = self._moment(reference.timestamp)
            self.scans[key] = opened.scan(version=reference.version, timestamp=moment)
        return self.scans[key]

    def _moment(self, text: str | None) -> int | None:
        """Milliseconds of a timestamp as Spark parses it."""
        if text is None:
            return None
        rows = self.spark.sql("SELECT unix_millis(try_to_timestamp(:moment))", args={"moment": text}).collect()
        if rows[0][0] is None:
            raise InvalidError(f"TIMESTAMP AS OF {text!r}: expected a moment such as 2026-01-01 12:00:00")
        return int(rows[0][0])

    def _reads_patterns(self) -> bool:
        return _is_on(self.spark, "spark.sql.parser.quotedRegexColumnNames")

    def _spark_sql(self, text: str, frames: Mapping[str, Any]) -> DataFrame:
        # Without frames Spark takes braces as they are.
        return self.spark.sql(text, **frames) if frames else self.spark.sql(text.replace("{{", "{").replace("}}", "}"))


def _quotes_names(spark: SparkSession) -> bool:
    """Whether text in double quotes is a name; Spark heeds the setting in ANSI mode only."""
    return all(_is_on(spark, f"spark.sql.ansi.{name}") for name in ("doubleQuotedIdentifiers", "enabled"))


def _is_on(spark: SparkSession, setting: str) -> bool:
    # Without a default of ours, which would hide Spark's own: ANSI mode is on unless told otherwise.
    return str(spark.conf.get(setting)).lower() == "true"


def _escaped(text: str) -> str:
    """Text with its braces escaped."""
    return text.replace("{", "{{").replace("}", "}}")
