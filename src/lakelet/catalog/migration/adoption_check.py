"""Check that a Parquet file may be adopted as it is: every reader of the table must understand its columns.

A file is compared with what Lakelet itself would write for the same columns. Readers go by the type of the table, not by that
of the file, so that a column must be stored exactly so; only a DECIMAL may have any of its four forms. A partition column may
be missing, for readers take it from the manifest; where a file has it, its value must be that of its folder. Dates and
timestamps that the file's writer counted by the Julian calendar are refused: Spark's reader rebases them, and others do not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from functools import cache

import pyarrow as pa
import pyarrow.parquet as pq

from lakelet.catalog.migration.parquet_footers import Footer, Leaf, Range, leaves_of
from lakelet.errors import InvalidError
from lakelet.format.data.data_file_format import WriteSettings
from lakelet.format.data.parquet_file import ParquetFormat
from lakelet.model.arrow.arrow_types import from_arrow, to_arrow
from lakelet.model.types import Atomic, Field, Kind

_SHOWN = 20
# From here on both calendars, and all time zones of both, agree.
_FIRST_DAY, _FIRST_MOMENT = date(1582, 10, 15), datetime(1900, 1, 1)


def fields_of(footer: Footer, where: str) -> list[Field]:
    """The columns of a file as those of a new table, all of them nullable."""
    fields = []
    for column in footer.schema:
        data_type = from_arrow(column.type, where=f"{where}: column {column.name!r}")
        if column.name in footer.instants:
            data_type = Atomic(Kind.TIMESTAMP_LTZ, 9)
        fields.append(Field(-1, column.name, data_type))
    return fields


def problems(
    footer: Footer, fields: Sequence[Field], partition: Mapping[str, object], columns_in_path: Sequence[str]
) -> list[str]:
    """The reasons why a file cannot be part of a table with these columns; none if it can.

    `partition` has the values of its partition columns, `columns_in_path` are those that its folders name.
    """
    if footer.problem is not None:
        return [footer.problem]
    present = set(footer.schema.names)
    known = {field.name for field in fields}
    found = [f"column {name!r} is not in the table" for name in footer.schema.names if name not in known]
    for field in fields:
        if field.name in present:
            found.extend(_column_problems(footer, field) or _julian_problems(footer, field))
        elif field.name not in columns_in_path:
            found.append(f"column {field.name!r}, {field.type}, is missing")
    if not found:
        found = [
            f"column {name!r} has other values than its folder says"
            for name, value in partition.items()
            if name in present and not _says(footer.ranges.get(name), footer.rows, _typed(fields, name, value))
        ]
    return found


def refuse(found: Mapping[str, Sequence[str]], what: str) -> None:
    """InvalidError that lists files and what is wrong with each."""
    if not found:
        return
    shown = [f"{path}: {'; '.join(texts)}" for path, texts in list(found.items())[:_SHOWN]]
    more = f"\n… and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    raise InvalidError(f"{what}: {len(found)} files cannot be adopted as they are:\n" + "\n".join(shown) + more)


def _column_problems(footer: Footer, field: Field) -> list[str]:
    expected = _expected_leaves(field)
    found = [leaf for leaf in footer.leaves if leaf.path == field.name or leaf.path.startswith(f"{field.name}.")]
    if [leaf.path for leaf in found] != [leaf.path for leaf in expected]:
        paths = ", ".join(leaf.path for leaf in found)
        return [f"column {field.name!r} is {field.type}, but is stored as {paths}"]
    texts = [
        f"column {want.path!r} is {field.type}, which is stored as {want}; found {have}"
        for want, have in zip(expected, found, strict=True)
        if not _reads_as(have, want)
    ]
    known = footer.ranges.get(field.name)
    no_nulls = found[0].required or (known is not None and known.nulls == 0)
    if not field.type.nullable and not no_nulls and not texts:
        texts.append(f"column {field.name!r} is {field.type}, but may hold NULLs by the file's statistics")
    return texts


def _julian_problems(footer: Footer, field: Field) -> list[str]:
    if not footer.julian:
        return []
    return [
        f"column {leaf.path!r} may hold days or moments that the file's writer counted by the Julian calendar"
        for leaf in footer.leaves
        if leaf.path == field.name or leaf.path.startswith(f"{field.name}.")
        if leaf.physical == "INT96" or leaf.kind == "Date" or leaf.kind.startswith("timestamp")
        if not _is_after_julian(footer.ranges.get(leaf.path), footer.rows)
    ]


def _is_after_julian(known: Range | None, rows: int) -> bool:
    match known:
        case Range(datetime() as low):
            return low.replace(tzinfo=None) >= _FIRST_MOMENT
        case Range(date() as low):
            return low >= _FIRST_DAY
        case _:
            return known is not None and known.nulls == rows


def _reads_as(have: Leaf, want: Leaf) -> bool:
    if (have.kind, have.repetition) != (want.kind, want.repetition):
        return False
    return have.physical == want.physical or want.kind.startswith("decimal")


@cache
def _expected_leaves(field: Field) -> tuple[Leaf, ...]:
    sink = pa.BufferOutputStream()
    ParquetFormat().open_writer(sink, [field], WriteSettings(), without_ranges=frozenset()).close()
    return leaves_of(pq.ParquetFile(pa.BufferReader(sink.getvalue())))


def _typed(fields: Sequence[Field], name: str, value: object) -> object:
    data_type = next(field.type for field in fields if field.name == name)
    return pa.scalar(value, to_arrow(data_type)).as_py()


def _says(known: Range | None, rows: int, value: object) -> bool:
    """Whether all rows certainly have this value."""
    if known is None or known.nulls is None:
        return False
    return known.nulls == rows if value is None else known.nulls == 0 and known.low == value == known.high
