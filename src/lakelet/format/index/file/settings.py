"""Which columns of a table have which file indexes, by its options.

    file-index.bloom-filter.columns   = user, address
    file-index.bloom-filter.user.items = 50000
    file-index.bitmap.columns         = country
    file-index.range-bitmap.columns   = price

An index that Lakelet does not write is refused when a table is created or altered. A table that another engine made with one
is written without it: indexes only say which files may be left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from lakelet.errors import InvalidError
from lakelet.format.index.file import bitmap, bloom, range_bitmap
from lakelet.format.index.file.bitmap import BitmapWriter, has_bitmap
from lakelet.format.index.file.bloom import BloomWriter
from lakelet.format.index.file.range_bitmap import RangeBitmapWriter, default_chunk_bytes, has_range_bitmap
from lakelet.format.index.file.values import is_hashed
from lakelet.model.near_names import nearest
from lakelet.model.types import Atomic, DataType, Field
from lakelet.options import FILE_INDEX_SETTING, TableOptions
from lakelet.options.kinds import POSITIVE_SIZE, SIZE, Kind, NotAValueError

_COLUMNS = "columns"
_OTHERS = ("read.enabled", "in-manifest-threshold")
_PARAMETERS = {
    bloom.NAME: ("items", "fpp"),
    bitmap.NAME: ("version", "index-block-size"),
    range_bitmap.NAME: ("chunk-size",),
}
_WRITTEN = " or ".join(_PARAMETERS)
_TAKES = {bloom.NAME: is_hashed, bitmap.NAME: has_bitmap, range_bitmap.NAME: has_range_bitmap}
# Paimon's index type that is read and written by Java alone.
_FOREIGN = ("bsi",)
# Sizes are numbers of 32 bits in Java.
_MOST_BYTES = 2**31 - 1


@dataclass(frozen=True, slots=True)
class IndexedColumn:
    """A column with an index of one type, and the parameters that are set."""

    name: str
    type: DataType
    index: str
    parameters: dict[str, str] = field(default_factory=dict)

    def writer(self) -> BloomWriter | BitmapWriter | RangeBitmapWriter:
        """A new writer of the index."""
        assert isinstance(self.type, Atomic)
        if self.index == range_bitmap.NAME:
            return RangeBitmapWriter(self.type, self._chunk_bytes(self.type))
        if self.index == bitmap.NAME:
            return BitmapWriter(self.type, self._block_bytes())
        return BloomWriter(self.type, *self._bloom())

    def check(self) -> None:
        """InvalidError where the index cannot be written."""
        option = f"option 'file-index.{self.index}.{_COLUMNS}'"
        if self.index in _FOREIGN:
            raise InvalidError(f"{option}: an index of the type {self.index} is not written; expected {_WRITTEN}")
        if self.index not in _PARAMETERS:
            raise InvalidError(f"{option}: {self.index!r} is no type of file index; expected {_WRITTEN}")
        if not _TAKES[self.index](self.type):
            raise InvalidError(f"{option}: a {self.index} index takes no column of {self.type}, as {self.name!r} is")
        for parameter in self.parameters:
            if parameter not in _PARAMETERS[self.index]:
                expected = ", ".join(_PARAMETERS[self.index])
                raise InvalidError(
                    f"option 'file-index.{self.index}.{self.name}.{parameter}': expected one of {expected}"
                )
        if self.index == range_bitmap.NAME:
            assert isinstance(self.type, Atomic)
            self._chunk_bytes(self.type)
        elif self.index == bitmap.NAME:
            self._block_bytes()
        else:
            self._bloom()

    def _block_bytes(self) -> int:
        version = self.parameters.get("version", "2")
        if version != "2":
            raise InvalidError(
                f"option 'file-index.{self.index}.{self.name}.version': expected 2, the version that is written, "
                f"found {version}"
            )
        return self._size("index-block-size", bitmap.DEFAULT_BLOCK_BYTES, POSITIVE_SIZE)

    def _chunk_bytes(self, data_type: Atomic) -> int:
        return self._size("chunk-size", default_chunk_bytes(data_type), SIZE)

    def _size(self, parameter: str, default: int, kind: Kind[int]) -> int:
        given = self.parameters.get(parameter)
        try:
            found = default if given is None else kind.convert(given)
        except NotAValueError as error:
            raise InvalidError(
                f"option 'file-index.{self.index}.{self.name}.{parameter}': expected {kind.expected}, found {given!r}"
            ) from error
        if found > _MOST_BYTES:
            raise InvalidError(
                f"option 'file-index.{self.index}.{self.name}.{parameter}': expected at most {_MOST_BYTES} bytes, found {given!r}"
            )
        return found

    def _bloom(self) -> tuple[int, float]:
        prefix = f"option 'file-index.{self.index}.{self.name}"
        try:
            items = int(self.parameters.get("items", bloom.DEFAULT_ITEMS))
        except ValueError:
            items = 0
        try:
            fpp = float(self.parameters.get("fpp", bloom.DEFAULT_FPP))
        except ValueError:
            fpp = 0.0
        if items < 1:
            raise InvalidError(f"{prefix}.items': expected a number of values, found {self.parameters.get('items')!r}")
        if not 0 < fpp < 1:
            raise InvalidError(f"{prefix}.fpp': expected a share between 0 and 1, found {self.parameters.get('fpp')!r}")
        if bloom.bit_count(items, fpp) // 8 > bloom.MAX_BYTES:
            raise InvalidError(f"{prefix}': {items} items make a filter of more than {bloom.MAX_BYTES} bytes")
        return items, fpp


def check_file_indexes(options: TableOptions, fields: Sequence[Field]) -> None:
    """InvalidError where options ask for an index that is not written, of a column that is not there, or in another way wrong."""
    given = options.get_family(FILE_INDEX_SETTING)
    if not given:
        return
    columns = _columns(options)
    names = [one.name for one in fields]
    for index, name in columns:
        if name not in names:
            raise InvalidError(
                f"option 'file-index.{index}.{_COLUMNS}': there is no column {name!r}{nearest(name, names)}"
            )
    for one in _indexed(options, fields):
        one.check()
    for key in given:
        if key.endswith(f".{_COLUMNS}") or key in _OTHERS:
            continue
        if not any(key.startswith(f"{index}.{name}.") for index, name in columns):
            raise InvalidError(f"option 'file-index.{key}': expected a parameter of a column with an index")


def indexed_columns(options: TableOptions, fields: Sequence[Field]) -> tuple[IndexedColumn, ...]:
    """The columns whose indexes are written."""
    found = []
    for one in _indexed(options, fields):
        try:
            one.check()
        except InvalidError:
            continue
        found.append(one)
    return tuple(found)


def has_file_indexes(options: TableOptions) -> bool:
    """Whether files of the table may have indexes."""
    return any(key.startswith("file-index.") and key.endswith(f".{_COLUMNS}") for key in options.raw)


def ranged_columns(options: TableOptions) -> set[str]:
    """The columns whose values files may have in order."""
    return {name for index, name in _columns(options) if index == range_bitmap.NAME}


def _columns(options: TableOptions) -> list[tuple[str, str]]:
    """The types of indexes and the columns that have them."""
    return [
        (key.removesuffix(f".{_COLUMNS}"), name.strip())
        for key, text in options.get_family(FILE_INDEX_SETTING).items()
        if key.endswith(f".{_COLUMNS}")
        for name in (text or "").split(",")
    ]


def _indexed(options: TableOptions, fields: Sequence[Field]) -> list[IndexedColumn]:
    if not has_file_indexes(options):
        return []
    given = options.get_family(FILE_INDEX_SETTING)
    types = {one.name: one.type for one in fields}
    found = []
    for index, name in _columns(options):
        if name in types:
            prefix = f"{index}.{name}."
            parameters = {
                key.removeprefix(prefix): text or ""
                for key, text in given.items()
                if key.startswith(prefix) and "." not in key.removeprefix(prefix)
            }
            found.append(IndexedColumn(name, types[name], index, parameters))
    return found
