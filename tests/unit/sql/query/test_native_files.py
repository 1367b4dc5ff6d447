from pathlib import Path

import pytest

import lakelet
from lakelet import InvalidError, Lake
from tests.unit.sql.viewed import readers_of, view_of


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return lakelet.connect(tmp_path)


def made(lake: Lake, columns: str, options: str = "", rows: str = "(1, 'a'), (2, 'b')") -> None:
    never = "'write-only' = 'true'"
    lake.sql(f"CREATE TABLE t ({columns}) WITH ({never}{options})")
    lake.sql(f"INSERT INTO t VALUES {rows}")


KEY = "id INT NOT NULL, v STRING, PRIMARY KEY (id) NOT ENFORCED"


def test_plain_parquet_files_are_duckdbs(lake: Lake) -> None:
    made(lake, "id INT, v STRING")
    assert readers_of(lake, "SELECT * FROM t") == (1, 0)


@pytest.mark.parametrize("kind", ["orc", "avro"])
def test_other_formats_are_ours(lake: Lake, kind: str) -> None:
    made(lake, "id INT, v STRING", f", 'file.format' = '{kind}'")
    assert readers_of(lake, "SELECT * FROM t") == (0, 1)


@pytest.mark.parametrize("kind", ["TIMESTAMP(9)", "MULTISET<INT>", "ARRAY<DOUBLE>"])
def test_types_that_duckdb_reads_otherwise_are_ours(lake: Lake, kind: str) -> None:
    made(lake, f"id INT, x {kind}", rows="(1, NULL)")
    assert readers_of(lake, "SELECT * FROM t") == (0, 1)


def test_a_store_that_duckdb_does_not_reach_is_ours() -> None:
    from lakelet.storage.memory import MemoryStore

    lake = Lake(MemoryStore())
    made(lake, "id INT, v STRING")
    assert readers_of(lake, "SELECT * FROM t") == (0, 1)
    assert lake.sql("SELECT count(*) FROM t WHERE v > 'a'").rows() == [(1,)]


def test_a_path_that_duckdb_would_take_for_a_pattern_is_ours(tmp_path: Path) -> None:
    lake = lakelet.connect(tmp_path / "ware[1]*house")
    made(lake, "id INT, v STRING")
    assert readers_of(lake, "SELECT * FROM t") == (0, 1)
    assert lake.sql("SELECT count(v) FROM t").rows() == [(2,)]


def test_a_partition_named_like_a_pattern_is_ours(lake: Lake) -> None:
    lake.sql("CREATE TABLE t (id INT, p STRING) PARTITIONED BY (p)")
    lake.sql("INSERT INTO t VALUES (1, '[ab]'), (2, 'a'), (3, 'x=1/y'), (4, NULL)")
    assert sorted(lake.sql("SELECT * FROM t").rows(), key=str) == [(1, "[ab]"), (2, "a"), (3, "x=1/y"), (4, None)]


def test_merged_files_are_duckdbs_but_for_the_rows_that_do_not_count(lake: Lake) -> None:
    made(lake, KEY, ", 'bucket' = '1'", rows="(1, 'a'), (2, 'b'), (3, 'c'), (4, 'd'), (5, 'e')")
    lake.sql("INSERT INTO t VALUES (2, 'B'), (6, 'f')")
    lake.sql("DELETE FROM t WHERE id = 3")
    view = view_of(lake, "SELECT * FROM t")
    assert not view.assigned.ours
    assert sum(len(rows) for rows in view.assigned.gone.values()) == 3
    assert sorted(lake.sql("SELECT * FROM t").rows()) == [(1, "a"), (2, "B"), (4, "d"), (5, "e"), (6, "f")]
    assert lake.sql("SELECT count(*) FROM t WHERE v = 'b'").rows() == [(0,)]
    assert lake.sql("SELECT id FROM t WHERE v IN ('b', 'c')").rows() == []


def test_mostly_outdated_files_are_merged(lake: Lake) -> None:
    made(lake, KEY, ", 'bucket' = '1'")
    for text in "xyz":
        lake.sql(f"INSERT INTO t VALUES (1, '{text}'), (2, '{text}')")
    view = view_of(lake, "SELECT * FROM t")
    assert view.assigned.ours
    assert sorted(lake.sql("SELECT * FROM t").rows()) == [(1, "z"), (2, "z")]


def test_files_without_a_row_that_counts_are_not_read(lake: Lake) -> None:
    made(lake, KEY, ", 'bucket' = '1'", rows="(1, 'a')")
    lake.sql("INSERT INTO t VALUES (1, 'A'), (2, 'b'), (3, 'c')")
    assert readers_of(lake, "SELECT * FROM t") == (1, 0)


def test_deleted_rows_are_left_out_by_position(lake: Lake) -> None:
    lake.sql(f"CREATE TABLE t ({KEY}) WITH ('bucket' = '1', 'deletion-vectors.enabled' = 'true')")
    lake.sql("INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    lake.table("default.t").compact(full=True)
    lake.sql("INSERT INTO t VALUES (2, 'B')")
    view = view_of(lake, "SELECT * FROM t")
    assert [rows.tolist() for rows in view.assigned.gone.values()] == [[1]]
    assert not view.assigned.ours
    assert sorted(lake.sql("SELECT * FROM t").rows()) == [(1, "a"), (2, "B"), (3, "c")]
    assert lake.sql("SELECT id FROM t WHERE v = 'b'").rows() == []
    assert lake.sql("SELECT count(*) FROM t").rows() == [(3,)]
    assert len(lake.sql("SELECT * FROM t LIMIT 3").rows()) == 3


@pytest.mark.parametrize("name", ["file_row_number", "File_Index", "lakelet_position", "gone", "data", "filename"])
def test_columns_may_be_called_what_duckdb_and_we_call_theirs(lake: Lake, name: str) -> None:
    made(
        lake,
        f'id INT NOT NULL, "{name}" STRING, PRIMARY KEY (id) NOT ENFORCED',
        ", 'bucket' = '1'",
        "(1, 'a'), (2, 'b'), (3, 'c')",
    )
    lake.sql("INSERT INTO t VALUES (2, 'B')")
    assert sorted(lake.sql(f'SELECT id, "{name}" FROM t').rows()) == [(1, "a"), (2, "B"), (3, "c")]
    assert lake.sql(f"""SELECT id FROM t WHERE "{name}" = 'B'""").rows() == [(2,)]
    lake.sql(f'ALTER TABLE t RENAME COLUMN "{name}" TO other')
    assert sorted(lake.sql("SELECT id, other FROM t").rows()) == [(1, "a"), (2, "B"), (3, "c")]
    assert sorted(lake.sql("SELECT * FROM t").rows()) == [(1, "a"), (2, "B"), (3, "c")]


def test_columns_that_differ_by_case_alone_are_refused(lake: Lake) -> None:
    lake.create_database("default", if_not_exists=True)
    table = lake.create_table("default.t", [("a", "INT"), ("A", "INT")])
    table.write([{"a": 1, "A": 2}])
    with pytest.raises(InvalidError, match="columns 'a' and 'A' differ in case alone"):
        lake.sql("SELECT * FROM t")
    assert table.scan().to_arrow().to_pylist() == [{"a": 1, "A": 2}]


def test_files_of_older_schemas_are_read_by_field_id(lake: Lake) -> None:
    made(lake, "id INT, v STRING")
    lake.sql("ALTER TABLE t RENAME COLUMN v TO w")
    lake.sql("ALTER TABLE t ADD COLUMN v STRING")
    lake.sql("ALTER TABLE t ALTER COLUMN id TYPE BIGINT")
    lake.sql("INSERT INTO t VALUES (3000000000, 'c', 'new')")
    view = view_of(lake, "SELECT * FROM t")
    assert len(view.assigned.native) == 2
    assert sorted(lake.sql("SELECT id, w, v FROM t").rows()) == [
        (1, "a", None),
        (2, "b", None),
        (3000000000, "c", "new"),
    ]
    assert lake.sql("SELECT id FROM t WHERE v = 'a'").rows() == []
    assert lake.sql("SELECT id FROM t WHERE w = 'a'").rows() == [(1,)]


def test_many_files_with_deleted_rows_are_joined_at_once(lake: Lake) -> None:
    lake.sql(f"CREATE TABLE t ({KEY.replace('STRING', 'INT')}) WITH ('bucket' = '20', 'write-only' = 'true')")
    lake.sql("INSERT INTO t SELECT i, i FROM range(400) r(i)")
    lake.sql("INSERT INTO t SELECT i, -i FROM range(0, 400, 4) r(i)")
    view = view_of(lake, "SELECT * FROM t")
    assert len(view.assigned.gone) == 20
    expected = [(number, -number if number % 4 == 0 else number) for number in range(400)]
    assert sorted(lake.sql("SELECT * FROM t").rows()) == expected
    assert lake.sql("SELECT count(*), max(v) FROM t WHERE v >= 0").rows() == [(301, 399)]
    assert lake.sql("SELECT count(*) FROM t WHERE v % 4 = 0 AND v > 0").rows() == [(0,)]
