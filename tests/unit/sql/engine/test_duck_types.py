import duckdb
import pytest

from lakelet.model.type_parser import parse_type
from lakelet.sql.engine.duck_types import duck_type, reads_natively

TYPES = {
    "BOOLEAN": "BOOLEAN",
    "TINYINT": "TINYINT",
    "SMALLINT": "SMALLINT",
    "INT NOT NULL": "INTEGER",
    "BIGINT": "BIGINT",
    "FLOAT": "FLOAT",
    "DOUBLE": "DOUBLE",
    "DECIMAL(10, 2)": "DECIMAL(10,2)",
    "STRING": "VARCHAR",
    "CHAR(3)": "VARCHAR",
    "VARCHAR(8)": "VARCHAR",
    "BYTES": "BLOB",
    "BINARY(3)": "BLOB",
    "DATE": "DATE",
    "TIME(3)": "TIME",
    "TIMESTAMP(3)": "TIMESTAMP",
    "TIMESTAMP(6)": "TIMESTAMP",
    "TIMESTAMP(9)": "TIMESTAMP_NS",
    "TIMESTAMP(6) WITH LOCAL TIME ZONE": "TIMESTAMP WITH TIME ZONE",
    "ARRAY<INT>": "INTEGER[]",
    "MAP<STRING, BIGINT>": "MAP(VARCHAR, BIGINT)",
    "MULTISET<STRING>": "MAP(VARCHAR, INTEGER)",
    "ROW<`a b` INT, c ARRAY<DOUBLE>>": 'STRUCT("a b" INTEGER, c DOUBLE[])',
}


@pytest.mark.parametrize(("ours", "theirs"), TYPES.items())
def test_a_type_is_one_of_duckdbs(ours: str, theirs: str) -> None:
    found = duckdb.sql(f"SELECT CAST(NULL AS {duck_type(parse_type(ours))}) AS x").types[0]
    assert str(found) == theirs


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("INT", True),
        ("DOUBLE", True),
        ("TIMESTAMP(6)", True),
        ("TIMESTAMP(9)", False),
        ("TIMESTAMP(9) WITH LOCAL TIME ZONE", False),
        ("ARRAY<INT>", True),
        ("ARRAY<DOUBLE>", False),
        ("ARRAY<TIMESTAMP(9)>", False),
        ("MAP<STRING, INT>", True),
        ("MULTISET<INT>", False),
        ("ROW<a INT, b STRING>", True),
        ("ROW<a INT, A STRING>", False),
        ("ROW<a FLOAT, b ROW<c DOUBLE>>", True),
        ("ARRAY<ROW<a FLOAT>>", False),
        ("ROW<a ARRAY<FLOAT>>", False),
    ],
)
def test_duckdb_reads_only_what_it_reads_alike(text: str, expected: bool) -> None:
    assert reads_natively(parse_type(text)) is expected
