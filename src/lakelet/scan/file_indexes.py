"""Leave out files by their indexes: those in which a value that is asked for cannot be.

A file's indexes are in its manifest entry, or in a file beside it. They are asked about equality, order and NULL, under the names
and types that columns had when the file was written; a column of another type since is not asked about. An index that is missing
or cannot be read leaves nothing out.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lakelet.errors import CorruptionError, NotFoundError
from lakelet.format.index.file.bitmap import NAME as BITMAP
from lakelet.format.index.file.bitmap import BitmapIndex, has_bitmap
from lakelet.format.index.file.bloom import NAME as BLOOM
from lakelet.format.index.file.bloom import BloomFilterIndex
from lakelet.format.index.file.container import decode_indexes
from lakelet.format.index.file.range_bitmap import NAME as RANGE_BITMAP
from lakelet.format.index.file.range_bitmap import RangeBitmapIndex, has_range_bitmap
from lakelet.format.index.file.settings import has_file_indexes, ranged_columns
from lakelet.format.index.file.values import is_hashed, looked_for
from lakelet.format.index.file.writer import SUFFIX
from lakelet.format.partition_folders import PartitionFolders
from lakelet.model.row_arrays import Mask
from lakelet.model.schema import TableSchema
from lakelet.model.types import Atomic, Field, with_nullable
from lakelet.options import FILE_INDEX_READ_ENABLED, TableOptions
from lakelet.predicate.tree import And, Comparison, InList, IsNull, Or, Predicate, columns, normalise
from lakelet.scan.value_spans import value_spans
from lakelet.storage.home import TableHome

_LOG = logging.getLogger(__name__)
EMBEDDED_COLUMN = "_EMBEDDED_FILE_INDEX"
_READERS = 8


@dataclass(frozen=True, slots=True)
class FileIndexes:
    """The file indexes of one table, for one condition."""

    home: TableHome
    schema: TableSchema
    where: Predicate

    @staticmethod
    def of(home: TableHome, schema: TableSchema, options: TableOptions, where: object) -> FileIndexes | None:
        """None where no index can leave a file out."""
        stored = TableOptions(schema.options)
        if not has_file_indexes(stored) or not options.get(FILE_INDEX_READ_ENABLED):
            return None
        if not isinstance(where, Predicate):
            return None
        condition = normalise(where)
        return FileIndexes(home, schema, condition) if _asks(condition, ranged_columns(stored)) else None

    def keep(self, entries: pa.Table, rows: Sequence[int], written: TableSchema) -> Mask:
        """A mask of these rows of the entries, whose files have that schema: False where no row of the file can match."""
        stored = self._stored(written)
        if not stored:
            return np.ones(len(rows), np.bool_)
        names = ["_PARTITION", "_BUCKET", "_EXTRA_FILES", "_EXTERNAL_PATH"]
        if EMBEDDED_COLUMN in entries.column_names:
            names.append(EMBEDDED_COLUMN)
        found = entries.select(names).take(pa.array(rows, pa.int64())).to_pylist()
        folders = PartitionFolders(self.home.paths, self.schema)

        def may_match(entry: dict[str, object]) -> bool:
            data, where = self._container(entry, folders)
            if data is None:
                return True
            try:
                return _File.of(decode_indexes(data, where=where), stored, where).may_match(self.where)
            except CorruptionError as error:
                _LOG.warning("a file index is ignored: %s", error)
                return True

        beside = sum(1 for entry in found if _index_file(entry) is not None)
        if beside > 1:
            with ThreadPoolExecutor(min(_READERS, beside)) as pool:
                return np.fromiter(pool.map(may_match, found), np.bool_, len(found))
        return np.fromiter(map(may_match, found), np.bool_, len(found))

    def _container(self, entry: dict[str, object], folders: PartitionFolders) -> tuple[bytes | None, str]:
        embedded = entry.get(EMBEDDED_COLUMN)
        if isinstance(embedded, bytes):
            return embedded, f"the manifest entry of a file of {self.home.where(self.home.paths.root)}"
        name = _index_file(entry)
        if name is None or entry["_EXTERNAL_PATH"] is not None or "/" in name:
            return None, ""
        partition, bucket = entry["_PARTITION"], entry["_BUCKET"]
        assert isinstance(partition, bytes)
        assert isinstance(bucket, int)
        path = f"{folders.bucket_folder(partition, bucket)}/{name}"
        try:
            return self.home.store.get(path), self.home.where(path)
        except NotFoundError:
            return None, ""

    def _stored(self, written: TableSchema) -> dict[str, Field]:
        """The columns of the condition, as they were when the file was written, where their type is still the same."""
        before = {field.id: field for field in written.fields}
        stored = {}
        for name in columns(self.where):
            now = self.schema.field(name)
            then = before.get(now.id)
            if then is None or not (is_hashed(now.type) or has_bitmap(now.type) or has_range_bitmap(now.type)):
                continue
            if with_nullable(then.type, True) == with_nullable(now.type, True):
                stored[name] = then
        return stored


@dataclass(frozen=True, slots=True)
class _File:
    """The indexes of one file, and its columns by the names that the condition has for them."""

    indexes: dict[str, dict[str, bytes | None]]
    stored: dict[str, Field]
    # The columns whose values the file has in order, by the names that the condition has for them.
    ranges: dict[str, RangeBitmapIndex]
    where: str

    @staticmethod
    def of(indexes: dict[str, dict[str, bytes | None]], stored: dict[str, Field], where: str) -> _File:
        """The indexes of a file."""
        ranges = {}
        for name, field in stored.items():
            found = indexes.get(field.name, {})
            if RANGE_BITMAP in found and isinstance(field.type, Atomic) and has_range_bitmap(field.type):
                ranges[name] = RangeBitmapIndex.of(found[RANGE_BITMAP], field.type, where=where)
        return _File(indexes, stored, ranges, where)

    def may_match(self, condition: Predicate) -> bool:
        """False where no row can make the condition true."""
        match condition:
            case And(terms):
                return all(self.may_match(term) for term in terms) and self._in_ranges(condition)
            case Or(terms):
                return any(self.may_match(term) for term in terms)
        return self._may_match_term(condition) and self._in_ranges(condition)

    def _in_ranges(self, condition: Predicate) -> bool:
        """Whether every column with values in order has one with which the condition may be true."""
        asked = [name for name in self.ranges if name in columns(condition)]
        return all(value_spans(self.ranges[name], name, condition) for name in asked)

    def _may_match_term(self, condition: Predicate) -> bool:
        match condition:
            case Comparison(column, "=", literal):
                return self._may_hold(column, looked_for(literal))
            case Comparison(column, "<>", literal):
                return self._may_hold_others(column, looked_for(literal))
            case InList(column, values, False):
                return self._may_hold(column, _all_looked_for(values.drop_null()))
            case InList(column, values, True):
                return not values.null_count and self._may_hold_others(column, _all_looked_for(values))
            case IsNull(column, negated):
                return self._may_be_null(column, negated)
        return True

    def _found(self, column: str) -> tuple[Atomic, dict[str, bytes | None]] | None:
        field = self.stored.get(column)
        if field is None or not isinstance(field.type, Atomic):
            return None
        return field.type, self.indexes.get(field.name, {})

    def _may_hold(self, column: str, values: pa.Array) -> bool:
        """Whether a row may have one of the values."""
        found = self._found(column)
        if not len(values) or found is None:
            return bool(len(values))
        data_type, indexes = found
        # Without any bytes an index says that all values of the column are NULL.
        if BITMAP in indexes:
            data = indexes[BITMAP]
            if data is None or not BitmapIndex.of(data, data_type, where=self.where).may_hold(values):
                return False
        if BLOOM in indexes:
            data = indexes[BLOOM]
            return data is not None and BloomFilterIndex.of(data, where=self.where).may_hold(values, data_type)
        return True

    def _may_hold_others(self, column: str, values: pa.Array) -> bool:
        """Whether a row may have a value that is none of these."""
        found = self._found(column)
        if found is None or found[1].get(BITMAP) is None:
            return True
        data = found[1][BITMAP]
        assert data is not None
        return BitmapIndex.of(data, found[0], where=self.where).may_hold_others(values)

    def _may_be_null(self, column: str, negated: bool) -> bool:
        """Whether a row may be NULL; or, `negated`, may not."""
        found = self._found(column)
        if found is None or found[1].get(BITMAP) is None:
            return True
        data = found[1][BITMAP]
        assert data is not None
        index = BitmapIndex.of(data, found[0], where=self.where)
        return index.count > 0 if negated else index.has_null


def _all_looked_for(values: pa.Array) -> pa.Array:
    if not len(values) or not pa.types.is_floating(values.type):
        return values
    return pa.concat_arrays([looked_for(value) for value in values])


def _asks(condition: Predicate, ranged: set[str]) -> bool:
    """Whether a condition has a term that an index can answer; `ranged` are the columns that are asked about order."""
    match condition:
        case And(terms) | Or(terms):
            return any(_asks(term, ranged) for term in terms)
        case Comparison(_, "=" | "<>", _) | InList() | IsNull():
            return True
        case Comparison(column, _, _):
            return column in ranged
    return False


def _index_file(entry: dict[str, object]) -> str | None:
    """The name of the file beside a data file that has its indexes."""
    extra = entry["_EXTRA_FILES"]
    names = [name for name in extra if name.endswith(SUFFIX)] if isinstance(extra, list) else []
    return names[0] if len(names) == 1 else None
