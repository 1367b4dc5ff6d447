from pathlib import Path

import pytest

import lakelet
from lakelet import CorruptionError, InvalidError, Lake, NotFoundError
from tests.unit.sql.viewed import view_of


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    found = lakelet.connect(tmp_path)
    found.sql("CREATE TABLE t (id INT, v STRING, d DOUBLE) WITH ('write-only' = 'true')")
    for start in (0, 10, 20):
        found.sql(f"INSERT INTO t SELECT i, 'v' || i, i / 2 FROM range({start}, {start + 10}) r(i)")
    return found


@pytest.mark.parametrize(
    ("where", "files"),
    [
        ("", 3),
        ("WHERE id < 10", 1),
        ("WHERE id >= 10 AND v <> 'x'", 2),
        ("WHERE id = 5 OR id = 25", 2),
        ("WHERE id > 100", 0),
        ("WHERE id IS NULL", 0),
        ("WHERE hash(id) = 1", 3),
        ("WHERE id < 10 AND hash(v) = 1", 1),
        ("WHERE d < 3", 1),
    ],
)
def test_files_that_cannot_match_are_left_out(lake: Lake, where: str, files: int) -> None:
    assert len(view_of(lake, f"SELECT * FROM t {where}").assigned.files) == files


def test_a_table_without_files_has_columns(lake: Lake) -> None:
    lake.sql("CREATE TABLE empty (id INT, l ARRAY<INT>, z TIMESTAMP(3) WITH LOCAL TIME ZONE)")
    assert lake.sql("SELECT * FROM empty").to_arrow().num_rows == 0
    assert lake.sql("SELECT typeof(id), typeof(l), typeof(z) FROM empty RIGHT JOIN (SELECT 1) ON true").rows() == [
        ("INTEGER", "INTEGER[]", "TIMESTAMP WITH TIME ZONE")
    ]


def test_a_file_that_is_gone_is_named(lake: Lake, tmp_path: Path) -> None:
    file = view_of(lake, "SELECT * FROM t WHERE id = 5").assigned.files[0]
    (tmp_path / file.path).unlink()
    with pytest.raises(CorruptionError, match=file.path.rsplit("/", 1)[-1]):
        lake.sql("SELECT * FROM t").rows()
    assert len(lake.sql("SELECT * FROM t WHERE id >= 10").rows()) == 20


@pytest.mark.parametrize("kept", [0, 20, 200, -60, -8])
def test_a_file_that_is_broken_is_named(lake: Lake, tmp_path: Path, kept: int) -> None:
    file = view_of(lake, "SELECT * FROM t WHERE id = 5").assigned.files[0]
    content = (tmp_path / file.path).read_bytes()
    (tmp_path / file.path).write_bytes(content[:kept].ljust(len(content), b"\xff"))
    with pytest.raises(CorruptionError, match=file.path.rsplit("/", 1)[-1]):
        lake.sql("SELECT * FROM t").rows()


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT CASE WHEN i = 250000 THEN error('oh') ELSE i END FROM range(300000) r(i) JOIN t ON t.id = 1", "oh"),
        ("SELECT (v || i)::INT FROM range(3) r(i), t", "v"),
        ("SELECT * FROM t, read_csv('/nowhere/x.csv')", "nowhere"),
    ],
)
def test_files_are_not_blamed_for_other_errors(lake: Lake, query: str, message: str) -> None:
    with pytest.raises((InvalidError, NotFoundError), match=message):
        lake.sql(query).rows()


def test_plans_are_kept_for_the_same_version_only(lake: Lake) -> None:
    query = "SELECT count(*), max(id) FROM t WHERE id > 5"
    assert lake.sql(query).rows() == [(24, 29)]
    assert lake.sql(query).rows() == [(24, 29)]
    lake.sql("INSERT INTO t VALUES (99, 'x', 1)")
    assert lake.sql(query).rows() == [(25, 99)]
    lake.table("default.t").rollback(2)
    assert lake.sql(query).rows() == [(14, 19)]
    lake.sql("INSERT INTO t VALUES (50, 'y', 1)")
    assert lake.sql(query).rows() == [(15, 50)]
    lake.sql("DROP TABLE t")
    lake.sql("CREATE TABLE t (id BIGINT)")
    assert lake.sql(query).rows() == [(0, None)]
    lake.sql("INSERT INTO t VALUES (7)")
    assert lake.sql(query).rows() == [(1, 7)]


def test_a_changed_schema_is_seen_at_once(lake: Lake) -> None:
    query = "SELECT * FROM t WHERE id = 5"
    assert lake.sql(query).columns == ("id", "v", "d")
    lake.sql("ALTER TABLE t RENAME COLUMN v TO w")
    assert lake.sql(query).columns == ("id", "w", "d")
    lake.sql("ALTER TABLE t DROP COLUMN w")
    assert lake.sql(query).rows() == [(5, 2.5)]
