"""Files of other writers with values that Lakelet does not write: what their statistics say is unknown, their rows are read."""

from pathlib import Path

import pyarrow as pa
import pytest

import lakelet
from lakelet.errors import InvalidError
from lakelet.sink.rows import cast
from lakelet.table import Table

_VALUES = {
    "TIME(3)": pa.array([86_400_000, -1], pa.int32()).view(pa.time32("ms")),
    "DATE": pa.array([2**31 - 1, -(2**31) + 1], pa.int32()).view(pa.date32()),
    "TIMESTAMP(3)": pa.array([10**15, -(10**15)], pa.timestamp("ms")),
}


def written(
    folder: Path, monkeypatch: pytest.MonkeyPatch, kind: str, file_format: str, *, keyed: bool = False
) -> tuple[lakelet.Lake, Table]:
    """A table with a file that holds such values, and one that does not."""
    lake = lakelet.connect(str(folder))
    lake.create_database("db")
    options = {"file.format": file_format, **({"bucket": "1"} if keyed else {})}
    columns = [("id", "INT NOT NULL"), ("v", kind)]
    table = lake.create_table("db.t", columns, primary_key=["id"] if keyed else (), options=options)
    with monkeypatch.context() as patch:
        patch.setattr(cast, "check_values", lambda *_: None)
        table.write(pa.table({"id": pa.array([1, 2], pa.int32()), "v": _VALUES[kind]}))
    table.write([{"id": 3, "v": None}])
    return lake, table


@pytest.mark.parametrize("keyed", [False, True])
@pytest.mark.parametrize("kind", _VALUES)
@pytest.mark.parametrize("file_format", ["parquet", "avro", "orc"])
def test_rule_28_reads_filter_over_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file_format: str, kind: str, keyed: bool
) -> None:
    if (file_format, kind) == ("orc", "TIMESTAMP(3)"):
        pytest.skip("Arrow reads no such timestamps from ORC files")
    lake, table = written(tmp_path, monkeypatch, kind, file_format, keyed=keyed)
    assert sorted(table.scan(where="id < 9", columns=["id"]).to_arrow()["id"].to_pylist()) == [1, 2, 3]
    assert table.scan(where="id = 2", columns=["id"]).to_arrow().num_rows == 1
    assert table.scan(where="v IS NOT NULL", columns=["id"]).to_arrow().num_rows == 2
    assert lake.sql("SELECT id FROM db.t WHERE id >= 2 ORDER BY id").rows() == [(2,), (3,)]
    assert len(lake.sql("SELECT min_value_stats FROM db.t$files").rows()) == 2
    table.compact(full=True)
    assert table.scan(where="id = 1", columns=["id"]).to_arrow().num_rows == 1


@pytest.mark.parametrize("kind", ["DATE", "TIMESTAMP(3)"])
def test_rows_say_which_column_has_no_python_value(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    lake, _ = written(tmp_path, monkeypatch, kind, "avro")
    with pytest.raises(InvalidError, match=r"column 'v'.*to_arrow\(\)"):
        lake.sql("SELECT id, v FROM db.t").rows()


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("TIME(3)", "TIME '24:00:00'"),
        *(
            (kind, f"{kind[:9]} '{sign}infinity'")
            for kind in ("TIMESTAMP(0)", "TIMESTAMP(3)", "TIMESTAMP(6)")
            for sign in ("", "-")
        ),
        *(("DATE", f"DATE '{day}'") for day in ("infinity", "-infinity", "12024-01-01", "0044-03-15 (BC)")),
        ("TIMESTAMP(3) WITH LOCAL TIME ZONE", "TIMESTAMPTZ 'infinity'"),
    ],
)
def test_rule_28_insert_refuses_what_nobody_shows(tmp_path: Path, kind: str, value: str) -> None:
    lake = lakelet.connect(str(tmp_path))
    lake.create_database("db")
    table = lake.create_table("db.t", [("id", "INT"), ("v", kind)])
    for statement in (f"VALUES (1, {value})", f"SELECT 1, {value}"):
        with pytest.raises(InvalidError, match=r"column 'v' is .*row 0"):
            lake.sql(f"INSERT INTO db.t {statement}")
    assert table.scan().count() == 0
