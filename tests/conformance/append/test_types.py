"""Every type, in every file format, written by each implementation and read by all."""

from __future__ import annotations

import datetime
from collections.abc import Sequence

import pytest

from lakelet import InvalidError
from tests.conformance import every_type
from tests.conformance.every_type import Column
from tests.conformance.tables import JAVA, LAKELET, NATIVE, PYTHON, READERS, Warehouse, same, spell_rows

FORMATS = ("parquet", "orc", "avro")

# What one implementation wrote and another cannot read: writer, format, reader, and the columns.
UNREADABLE = {
    # Java pads CHAR in ORC files and strips it when it reads; pypaimon shows the padding.
    (JAVA, "orc", PYTHON): {"char"},
    (JAVA, "orc", NATIVE): {"char"},
    # The native reader loses, sometimes, the members of a ROW that is the value of a MAP in Avro files.
    **{(writer, "avro", NATIVE): {"deep"} for writer in (LAKELET, JAVA, NATIVE)},
    # pypaimon writes INT64 nanoseconds, which Java takes for something else.
    (PYTHON, "parquet", JAVA): {"ts9", "ltz9"},
    (NATIVE, "parquet", JAVA): {"ts9", "ltz9"},
}
# What an implementation cannot write.
UNWRITABLE = {
    (PYTHON, "avro"): {"ints", "moments", "matrix", "people", "prices", "codes", "lists", "deep", "days"},
}


def write_and_compare(
    warehouse: Warehouse, writer: str, file_format: str, chosen: list[Column], readers: Sequence[str]
) -> None:
    left_out = UNWRITABLE.get((writer, file_format), set())
    chosen = [column for column in chosen if column[0] not in left_out]
    columns = [("id", "INT"), *((name, text) for name, text, _ in chosen)]
    warehouse.create(PYTHON if writer == NATIVE else writer, "t", columns, options={"file.format": file_format})
    rows = every_type.rows(chosen)
    warehouse.write(writer, "t", rows)

    expected = spell_rows(rows, warehouse.table("t").schema.fields)
    for reader in readers:
        unreadable = UNREADABLE.get((writer, file_format, reader), set())
        shown = [name for name, _ in columns if name not in unreadable]
        wanted = [{name: row[name] for name in shown} for row in expected]
        same(warehouse.rows(reader, "t", columns=shown), wanted, reader)


@pytest.mark.parametrize("file_format", FORMATS)
@pytest.mark.parametrize("writer", [LAKELET, JAVA, PYTHON, NATIVE])
def test_every_type(warehouse: Warehouse, writer: str, file_format: str) -> None:
    if (writer, file_format) == (NATIVE, "orc"):
        pytest.skip("the native writer has no ORC")
    chosen = every_type.columns(file_format, multiset=False)
    write_and_compare(warehouse, writer, file_format, chosen, READERS)


@pytest.mark.parametrize("file_format", FORMATS)
@pytest.mark.parametrize("writer", [LAKELET, JAVA])
def test_every_type_with_those_that_pypaimon_lacks(warehouse: Warehouse, writer: str, file_format: str) -> None:
    write_and_compare(warehouse, writer, file_format, every_type.columns(file_format), (LAKELET, JAVA))


@pytest.mark.parametrize("moment", [datetime.datetime(1, 1, 1), datetime.datetime(1969, 12, 31, 23, 59, 59, 500000)])
def test_orc_refuses_moments_that_java_would_change(warehouse: Warehouse, moment: datetime.datetime) -> None:
    warehouse.create(LAKELET, "t", [("at", "TIMESTAMP(3)")], options={"file.format": "orc"})
    with pytest.raises(InvalidError, match="parquet"):
        warehouse.write(LAKELET, "t", [{"at": moment}])


@pytest.mark.parametrize("writer", [LAKELET, JAVA])
def test_blanks_at_the_end_of_a_char_in_orc(warehouse: Warehouse, writer: str) -> None:
    """Java pads a CHAR in ORC files and cuts all blanks off whatever it reads; Lakelet's own files keep them."""
    columns = [("c", "CHAR(4)"), ("v", "VARCHAR(4)"), ("l", "ARRAY<CHAR(3)>")]
    warehouse.create(LAKELET, "t", columns, options={"file.format": "orc"})
    texts = ["", " a", "a", "a ", "a  ", "é\t "]
    rows = [{"c": text, "v": text, "l": [text]} for text in texts]
    warehouse.write(writer, "t", rows)
    trimmed = [{"c": text.rstrip(" "), "v": text, "l": [text.rstrip(" ")]} for text in texts]
    fields = warehouse.table("t").schema.fields
    same(warehouse.rows(JAVA, "t"), spell_rows(trimmed, fields), JAVA)
    same(warehouse.rows(LAKELET, "t"), spell_rows(rows if writer == LAKELET else trimmed, fields), LAKELET)


def test_formats_mixed_in_one_table(warehouse: Warehouse) -> None:
    chosen = [
        column for column in every_type.columns("orc", nanos=False, multiset=False) if column[0] not in {"char", "deep"}
    ]
    warehouse.create(JAVA, "t", [("id", "INT"), *((name, text) for name, text, _ in chosen)])
    rows = every_type.rows(chosen)
    written = []
    for round_, file_format in enumerate([*FORMATS, *reversed(FORMATS)]):
        if round_ % 2:
            warehouse.table("t").set_options({"file.format": file_format})
        else:
            warehouse.java.alter(warehouse.folder, "db.t", {"op": "option", "key": "file.format", "value": file_format})
        for writer in (LAKELET, JAVA):
            warehouse.write(writer, "t", rows)
            written += rows
    endings = {name.rsplit(".", 1)[-1] for name, _ in warehouse.table("t").files()}
    assert endings == set(FORMATS)
    expected = spell_rows(written, warehouse.table("t").schema.fields)
    same(warehouse.agree("t"), expected, "all")
