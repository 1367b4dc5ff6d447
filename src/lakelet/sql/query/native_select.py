"""Generate the SQL with which DuckDB reads data files.

    SELECT CAST("qty" AS BIGINT) AS "quantity", … FROM read_parquet(['…/data-1.parquet', …])
    SELECT … FROM read_parquet('…/data-2.parquet', file_row_number = true) ANTI JOIN positions ON …

Files written under one schema share one SELECT, by the names that the columns have in these files; columns are renamed and
widened in it, by field id. A file with deleted or superseded rows gets one of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

import pyarrow as pa

from lakelet.model.schema import TableSchema
from lakelet.model.types import FLOATS, Atomic, DataType, Field, Row
from lakelet.read.evolve import same_layout
from lakelet.sql.engine.duck_types import duck_type, has_floats
from lakelet.sql.lexer.quotes import listed, literal, quoted
from lakelet.sql.query.native_files import FILE_NUMBER, ROW_NUMBER, AssignedFiles, Positions

_POSITION = "lakelet_position"
# With more files than this that have deleted rows, one join for all of them is cheaper than one each.
_MOST_JOINS = 16
_FILE_SHIFT = 40

AddFrame = Callable[[pa.Table], str]


def native_selects(
    assigned: AssignedFiles,
    schema_of: Callable[[int], TableSchema],
    fields: Sequence[Field],
    location: str,
    add_frame: AddFrame,
    in_parts: Collection[str] = (),
) -> list[str]:
    """The SELECTs of all files that DuckDB reads, in the columns and types of the schema that is read. Of columns `in_parts`,
    which are ROWs, single fields alone are used."""
    gone = {f"{location}/{path}": positions for path, positions in assigned.gone.items()}
    found: list[str] = []
    for number, files in assigned.native.items():
        columns = _columns(schema_of(number), fields, in_parts)
        found += file_selects(columns, [f"{location}/{file.path}" for file in files], gone, add_frame)
    return found


def file_selects(columns: str, paths: Sequence[str], gone: Mapping[str, Positions], add_frame: AddFrame) -> list[str]:
    """The SELECTs of files with the same columns, without the deleted positions `gone` of each path."""
    whole = [path for path in paths if path not in gone]
    partly = [path for path in paths if path in gone]
    found: list[str] = []
    if whole:
        found.append(f"SELECT {columns} FROM read_parquet({listed(whole)}, hive_partitioning = false)")
    if len(partly) > _MOST_JOINS:
        found.append(_joined(partly, gone, columns, add_frame))
    else:
        found += [_joined([path], gone, columns, add_frame) for path in partly]
    return found


def _joined(paths: Sequence[str], gone: Mapping[str, Positions], columns: str, add_frame: AddFrame) -> str:
    """The SELECT of files without their deleted positions."""
    if len(paths) == 1:
        place, positions = ROW_NUMBER, pa.array(gone[paths[0]])
    else:
        place = f"(CAST({FILE_NUMBER} AS BIGINT) << {_FILE_SHIFT}) | {ROW_NUMBER}"
        positions = pa.concat_arrays(
            [pa.array(gone[path] | (number << _FILE_SHIFT)) for number, path in enumerate(paths)]
        )
    source = add_frame(pa.table({_POSITION: positions}))
    read = f"read_parquet({listed(paths)}, hive_partitioning = false, {ROW_NUMBER} = true)"
    return f"SELECT {columns} FROM {read} AS data ANTI JOIN {source} AS gone ON gone.{_POSITION} = {place}"


def _columns(stored: TableSchema, fields: Sequence[Field], in_parts: Collection[str]) -> str:
    by_id = {one.id: one for one in stored.fields}
    return ", ".join(
        f"{_evolved(by_id.get(one.id), one, in_parts=one.name in in_parts)} AS {quoted(one.name)}" for one in fields
    )


def _evolved(stored: Field | None, field: Field, *, in_parts: bool) -> str:
    if stored is None:
        return f"CAST(NULL AS {duck_type(field.type)})"
    if in_parts:
        return row_parts(quoted(stored.name), stored.type, field.type)
    return _converted(quoted(stored.name), stored.type, field.type)


def row_parts(column: str, stored: DataType, wanted: DataType) -> str:
    """Some fields of a ROW, as a ROW of its own, for uses of these fields alone: where the ROW is NULL, they are. DuckDB reads no
    other field of it."""
    assert isinstance(stored, Row)
    assert isinstance(wanted, Row)
    return f"CAST({_packed(column, stored, wanted)} AS {duck_type(wanted)})"


def _packed(column: str, stored: Row, wanted: Row) -> str:
    by_id = {one.id: one for one in stored.fields}
    items = ", ".join(f"{quoted(one.name)} := {_inner(column, by_id.get(one.id), one)}" for one in wanted.fields)
    return f"struct_pack({items})"


def _converted(column: str, stored: DataType, wanted: DataType) -> str:
    """A stored value in the type that is read. A ROW whose fields changed or have to be shielded is made anew, by field id."""
    if isinstance(stored, Row) and isinstance(wanted, Row) and (has_floats(stored) or not same_layout(stored, wanted)):
        packed = _packed(column, stored, wanted)
        return f"CAST(CASE WHEN {column} IS NULL THEN NULL ELSE {packed} END AS {duck_type(wanted)})"
    if isinstance(stored, Atomic) and stored.kind in FLOATS:
        column = shielded(column, duck_type(stored))
    return f"CAST({column} AS {duck_type(wanted)})"


def _inner(row: str, stored: Field | None, wanted: Field) -> str:
    if stored is None:
        return f"CAST(NULL AS {duck_type(wanted.type)})"
    return _converted(f"struct_extract({row}, {literal(stored.name)})", stored.type, wanted.type)


def shielded(column: str, kind: str) -> str:
    """A floating-point column hidden from DuckDB's statistics pruning. Footers of some writers ignore NaN, which is the greatest
    value, so no condition may be pruned by them. DuckDB pushes filters through every simpler expression."""
    return f"CASE WHEN isnan({column}) THEN 'nan'::{kind} ELSE {column} END"
