"""A scan in every form it can be had."""

import pickle
import subprocess
import sys
from pathlib import Path

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import lakelet
from lakelet import InvalidError, Lake, NotFoundError, Table
from lakelet.storage.memory import MemoryStore

ROWS = [{"id": number, "p": "ab"[number % 2], "x": number / 2} for number in range(20)]


@pytest.fixture
def table() -> Table:
    lake = Lake(MemoryStore())
    lake.create_database("d")
    made = lake.create_table("d.t", [("id", "BIGINT NOT NULL"), ("p", "STRING"), ("x", "DOUBLE")], partitioned_by=["p"])
    made.write(ROWS[:10])
    made.write(ROWS[10:])
    return made


def by_id(rows: list[dict[str, object]]) -> list[dict[str, object]]:
    return sorted(rows, key=lambda row: row["id"])  # type: ignore[arg-type,return-value]


def test_every_form_has_the_same_rows(table: Table) -> None:
    scan = table.scan()
    assert by_id(scan.to_arrow().to_pylist()) == ROWS
    assert by_id([row for batch in scan.to_batches() for row in batch.to_pylist()]) == ROWS
    assert by_id(scan.to_reader().read_all().to_pylist()) == ROWS
    assert by_id(pa.table(scan).to_pylist()) == ROWS
    frame = scan.to_pandas()
    assert isinstance(frame, pd.DataFrame)
    assert by_id(frame.to_dict("records")) == ROWS
    polars = scan.to_polars()
    assert isinstance(polars, pl.DataFrame)
    assert by_id(polars.to_dicts()) == ROWS
    relation = scan.to_duckdb().order("id")
    assert [dict(zip(relation.columns, row, strict=True)) for row in relation.fetchall()] == ROWS
    assert (
        by_id([row for split in scan.plan().splits for batch in scan.read(split) for row in batch.to_pylist()]) == ROWS
    )


def test_types_and_names_are_the_tables(table: Table) -> None:
    scan = table.scan(columns=["x", "id"])
    assert scan.arrow_schema.names == ["x", "id"]
    assert scan.to_arrow().schema == scan.arrow_schema
    assert scan.to_arrow().schema.types == [pa.float64(), pa.int64()]
    assert table.scan(where="id < 0").to_arrow().schema == table.scan().arrow_schema
    assert list(table.scan(where="id < 0").to_batches()) == []


class TestDuckdb:
    def test_a_relation_is_read_as_often_as_asked(self, table: Table) -> None:
        relation = table.scan().to_duckdb()
        for _ in range(3):
            assert relation.count("*").fetchall() == [(20,)]
        assert relation.filter("id < 3").order("id").fetchall() == [(0, "a", 0.0), (1, "b", 0.5), (2, "a", 1.0)]
        assert relation.aggregate("p, sum(x) AS total").order("p").fetchall() == [("a", 45.0), ("b", 50.0)]
        assert relation.filter("x >= 9 AND p = 'b'").project("id").fetchall() == [(19,)]
        assert relation.filter("id IS NULL").fetchall() == []

    def test_filters_are_applied_exactly(self, table: Table) -> None:
        relation = table.scan(where="id >= 5", columns=["id", "x"]).to_duckdb()
        assert relation.filter("id < 7").order("id").fetchall() == [(5, 2.5), (6, 3.0)]
        assert relation.filter("x IN (2.5, 9)").order("id").fetchall() == [(5, 2.5), (18, 9.0)]
        assert relation.filter("id % 7 = 0 OR x = 3").order("id").project("id").fetchall() == [(6,), (7,), (14,)]

    def test_a_limit_comes_before_the_filter(self, table: Table) -> None:
        relation = table.scan(limit=5).to_duckdb()
        total = relation.count("*").fetchall()[0][0]
        kept = relation.filter("id >= 0").count("*").fetchall()[0][0]
        assert (total, kept) == (5, 5)

    def test_nan_matches_as_duckdb_says(self, table: Table) -> None:
        table.write([{"id": 100, "p": "a", "x": float("nan")}])
        relation = table.scan().to_duckdb()
        assert relation.filter("x > 100").project("id").fetchall() == [(100,)]
        assert relation.filter("x = 'nan'::DOUBLE").project("id").fetchall() == [(100,)]

    def test_it_joins_on_the_callers_connection(self, table: Table) -> None:
        connection = duckdb.connect()
        connection.execute("CREATE TABLE names AS SELECT 'a' AS p, 'first' AS name")
        relation = table.scan(where="id < 4").to_duckdb(connection)
        relation.create_view("numbers")
        found = connection.sql("SELECT id, name FROM numbers JOIN names USING (p) ORDER BY id").fetchall()
        assert found == [(0, "first"), (2, "first")]


class TestLimits:
    @pytest.mark.parametrize("limit", [0, 1, 7, 20, 100])
    def test_rows_and_counts(self, table: Table, limit: int) -> None:
        expected = min(limit, 20)
        assert table.scan(limit=limit).to_arrow().num_rows == expected
        assert sum(batch.num_rows for batch in table.scan(limit=limit).to_batches()) == expected
        assert table.scan(limit=limit).count() == expected
        assert table.scan(limit=limit, where="id >= 0").count() == expected
        assert table.scan(limit=limit, where="id >= 15").to_arrow().num_rows == min(limit, 5)

    def test_less_than_nothing_is_refused(self, table: Table) -> None:
        with pytest.raises(InvalidError, match="limit -1"):
            table.scan(limit=-1)


def test_an_arrow_expression_filters(table: Table) -> None:
    kept = table.scan(where=(pc.field("id") > 3) & (pc.field("p") == "b"), columns=["id"])
    assert sorted(kept.to_arrow().column("id").to_pylist()) == [5, 7, 9, 11, 13, 15, 17, 19]
    with pytest.raises(InvalidError):
        table.scan(where=pc.field("zz") == 1).to_arrow()


def test_counts_without_a_filter_read_no_data(table: Table) -> None:
    scan = table.scan()
    for path, _ in table.files():
        scan.home.store.delete([path])
    assert scan.count() == 20


class TestVersions:
    def test_a_scan_stays_on_its_snapshot(self, table: Table) -> None:
        scan = table.scan()
        table.write(ROWS)
        assert scan.count() == 20
        assert by_id(scan.to_arrow().to_pylist()) == ROWS
        assert table.scan().count() == 40

    def test_by_id_text_and_time(self, table: Table) -> None:
        first, second = table.snapshots()
        assert table.scan(version=1).count() == 10
        assert table.scan(version="2").count() == 20
        assert table.scan(timestamp=second.time_ms).count() == 20
        assert table.scan(timestamp="9999-12-31T00:00:00Z").count() == 20
        with pytest.raises(NotFoundError, match="at or before"):
            table.scan(timestamp=first.time_ms - 1)
        with pytest.raises(NotFoundError, match="at or before"):
            table.scan(timestamp="1970-01-01")

    def test_what_is_not_there(self, table: Table) -> None:
        with pytest.raises(NotFoundError, match=r"snapshot 3 is not in .*: snapshots 1 to 2 exist"):
            table.scan(version=3)
        with pytest.raises(NotFoundError, match=r"'eod' is neither a tag .* nor a snapshot id"):
            table.scan(version="eod")
        with pytest.raises(NotFoundError, match="tag 'eod'"):
            table.scan(tag="eod")
        with pytest.raises(InvalidError, match="ISO 8601"):
            table.scan(timestamp="yesterday")
        with pytest.raises(InvalidError, match="reads one version"):
            table.scan(version=1, tag="eod")

    def test_columns_are_checked(self, table: Table) -> None:
        with pytest.raises(NotFoundError, match="column 'zz'"):
            table.scan(columns=["zz"])
        for columns in ([], ["id", "id"]):
            with pytest.raises(InvalidError, match="at least one column, each once"):
                table.scan(columns=columns)


READ_ELSEWHERE = """
import pickle, sys
scan, split = pickle.load(open(sys.argv[1], "rb"))
print(sorted(row["id"] for batch in scan.read(split) for row in batch.to_pylist()))
"""


def test_scans_and_splits_are_read_in_another_process(tmp_path: Path) -> None:
    lake = lakelet.connect(str(tmp_path / "warehouse"))
    lake.create_database("d")
    table = lake.create_table("d.t", [("id", "BIGINT"), ("p", "STRING")], partitioned_by=["p"])
    table.write([{"id": number, "p": "ab"[number % 2]} for number in range(6)])
    table.rename_column("id", "number")
    table.rename_column("number", "id")
    scan = table.scan(where="id > 0")
    found = []
    for index, split in enumerate(scan.plan().splits):
        path = tmp_path / f"split-{index}"
        path.write_bytes(pickle.dumps((scan, split)))
        done = subprocess.run(
            [sys.executable, "-c", READ_ELSEWHERE, str(path)], capture_output=True, text=True, check=True
        )
        found.append(done.stdout.strip())
    assert sorted(found) == ["[1, 3, 5]", "[2, 4]"]


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_a_frame_library_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    lake = Lake(MemoryStore())
    lake.create_database("d")
    scan = lake.create_table("d.t", [("id", "BIGINT")]).scan()
    monkeypatch.setattr("lakelet.table.read.data_frames.find_spec", lambda name: None)
    with pytest.raises(InvalidError, match=f"pip install {package}"):
        getattr(scan, f"to_{package}")()
