import duckdb
import pyarrow as pa
import pytest

from lakelet.sql.iceberg.duck_columns import duck_column, reads_alike

_KINDS = (
    *(
        pa.bool_(),
        pa.int32(),
        pa.int64(),
        pa.float32(),
        pa.float64(),
        pa.string(),
        pa.binary(),
        pa.binary(4),
        pa.uuid(),
    ),
    *(
        pa.date32(),
        pa.time64("us"),
        pa.timestamp("us"),
        pa.timestamp("us", "UTC"),
        pa.timestamp("ns"),
        pa.decimal128(9, 2),
    ),
    *(pa.timestamp("ns", "UTC"), pa.list_(pa.int32()), pa.map_(pa.string(), pa.int64())),
    pa.struct([("a b", pa.string()), ("c", pa.list_(pa.date32()))]),
)


@pytest.mark.parametrize("kind", _KINDS, ids=str)
def test_a_type_is_the_one_in_which_duckdb_sees_arrow(kind: pa.DataType) -> None:
    rows = pa.table({"a": pa.nulls(1, kind)})
    with duckdb.connect() as connection:
        connection.register("t", rows)
        (seen,) = connection.sql("SELECT a FROM t").types
        (named,) = connection.sql(f"SELECT CAST(NULL AS {duck_column(kind)})").types
    assert str(seen) == str(named)


@pytest.mark.parametrize(
    ("stored", "wanted", "alike"),
    [
        *((pa.int32(), pa.int64(), True), (pa.int64(), pa.int32(), False), (pa.int16(), pa.int32(), False)),
        *((pa.large_string(), pa.string(), True), (pa.binary(), pa.string(), False), (pa.uuid(), pa.uuid(), True)),
        *((pa.binary(16), pa.uuid(), False), (pa.timestamp("ns"), pa.timestamp("us"), False)),
        *(
            (pa.timestamp("ns"), pa.timestamp("ns"), False),
            (pa.timestamp("us", "Etc/UTC"), pa.timestamp("us", "UTC"), False),
        ),
        *((pa.decimal128(5, 2), pa.decimal128(9, 2), True), (pa.decimal128(5, 1), pa.decimal128(9, 2), False)),
        (pa.dictionary(pa.int32(), pa.string()), pa.string(), False),
        (pa.list_(pa.int32()), pa.list_(pa.int64()), True),
        (pa.list_(pa.float64()), pa.list_(pa.float64()), False),
        (pa.struct([("a", pa.int32())]), pa.struct([("a", pa.int32())]), True),
        (pa.struct([("a", pa.float32())]), pa.struct([("a", pa.float32())]), False),
        (pa.struct([("a", pa.int32()), ("A", pa.int32())]), pa.struct([("a", pa.int32()), ("A", pa.int32())]), False),
    ],
)
def test_what_both_readers_see_alike(stored: pa.DataType, wanted: pa.DataType, alike: bool) -> None:
    assert reads_alike(stored, wanted) == alike
