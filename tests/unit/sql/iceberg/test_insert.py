"""INSERT into Iceberg tables; what rows do is in tests/sql/scripts/iceberg.test."""

from pathlib import Path
from typing import Any

import pytest

from lakelet.errors import ConflictError, InvalidError, NotFoundError
from lakelet.iceberg.write.table_writer import TableWriter
from lakelet.sql.engine import execution
from lakelet.sql.engine.execution import EngineInsert
from tests.unit.sql.iceberg.ice_session import ice_session
from tests.unit.sql_session import SqlSession


@pytest.fixture
def sql(tmp_path: Path) -> SqlSession:
    made = ice_session(tmp_path)
    made.rows(
        "CREATE TABLE iceberg.shop.t (id BIGINT NOT NULL, region STRING, day DATE, s STRING) "
        "PARTITIONED BY (region, day, bucket(2, id))"
    )
    return made


@pytest.mark.parametrize(
    ("text", "reason", "at"),
    [
        ("PARTITION (regoin = 'x') (id) VALUES (1)", "has no column 'regoin'; did you mean region", "regoin"),
        ("PARTITION (id = 1) (s) VALUES ('x')", r"is partitioned by bucket\(2, id\)", "id"),
        ("PARTITION (s = 'x') (id) VALUES (1)", "'s' is no partition column", "s ="),
        ("PARTITION (region = 'x', Region = 'y') (id) VALUES (1)", "'region' is given twice", "Region"),
        ("PARTITION (region = 'x') (id, region) VALUES (1, 'y')", "has its value from PARTITION", "region) VALUES"),
        ("(id, nothing) VALUES (1, 2)", "has no column 'nothing'", "nothing"),
        ("(id, id) VALUES (1, 2)", "named twice", "id) VALUES"),
        ("(id) VALUES (1), (1.5)", "1.5 does not convert", "1.5"),
        ("(id) VALUES (1, 2)", "expected 1 values for id, found 2", "(1, 2)"),
        ("(id) SELECT x FROM range(1)", "not found", "x FROM"),
    ],
)
def test_refused_at_its_place(sql: SqlSession, text: str, reason: str, at: str) -> None:
    sql.fails(f"INSERT INTO iceberg.shop.t {text}", reason, at)


def test_refused(sql: SqlSession) -> None:
    sql.fails(
        "INSERT INTO iceberg.shop.t (id) SELECT CAST(NULL AS BIGINT)", "required, found NULL 1 time", kind=InvalidError
    )
    sql.fails("INSERT INTO iceberg.shop.t SELECT 1", "expected 4 columns", kind=InvalidError)
    sql.fails("INSERT INTO iceberg.shop.t$files VALUES (1)", "system table", "iceberg")
    sql.fails("INSERT INTO iceberg.shop.t$branch_no (id) VALUES (1)", "branch 'no'", kind=NotFoundError)
    sql.fails("INSERT INTO iceberg.shop.tt VALUES (1)", "does not exist; did you mean t", "iceberg", NotFoundError)
    sql.rows("ALTER TABLE iceberg.shop.t SET ('write.format.default' = 'orc')")
    sql.fails("INSERT INTO iceberg.shop.t (id) VALUES (1)", "only Parquet is written", kind=InvalidError)


def test_rows_that_fail_late_leave_no_file(sql: SqlSession) -> None:
    query = "SELECT i, i % 5, NULL, CASE WHEN i = 190000 THEN error('late') END FROM range(200000) r(i)"
    sql.fails(f"INSERT INTO iceberg.shop.t {query}", "late", kind=InvalidError)


def test_a_partition_of_null_and_one_of_text(sql: SqlSession) -> None:
    sql.rows("INSERT INTO iceberg.shop.t (id, region) VALUES (1, NULL), (1, 'null'), (1, '')")
    assert sql.rows("INSERT OVERWRITE iceberg.shop.t PARTITION (region = NULL, day = NULL) (id) VALUES (9)")[0][1] == 1
    assert sql.rows("SELECT region, id FROM iceberg.shop.t ORDER BY ALL") == [("", 1), ("null", 1), (None, 9)]


@pytest.mark.parametrize(
    ("partition", "dynamic", "left"),
    [
        # All that PARTITION may name: a row filter, whatever the setting is.
        ("PARTITION (region = 'eu', day = '2026-01-01')", "true", [3, 4, 9]),
        ("PARTITION (region = 'eu', day = '2026-01-01')", "false", [3, 4, 9]),
        # Less of it: what rows belong to, of which the bucket is another one than that of 1.
        ("PARTITION (region = 'eu', day)", "true", [1, 2, 3, 4, 9]),
        ("PARTITION (region = 'eu')", "true", [1, 2, 3, 4, 9]),
        ("PARTITION (region = 'eu')", "false", [4, 9]),
        ("", "true", [1, 2, 3, 4, 9]),
        ("", "false", [9]),
    ],
)
def test_what_an_overwrite_replaces(sql: SqlSession, partition: str, dynamic: str, left: list[int]) -> None:
    sql.rows(
        "INSERT INTO iceberg.shop.t (id, region, day) VALUES "
        "(1, 'eu', '2026-01-01'), (2, 'eu', '2026-01-01'), (3, 'eu', '2026-01-02'), (4, 'us', '2026-01-01')"
    )
    sql.rows(f"SET 'dynamic-partition-overwrite' = '{dynamic}'")
    columns = [name for name in ("region", "day") if f"{name} =" not in partition]
    values = ["'eu'" if name == "region" else "DATE '2026-01-03'" for name in columns]
    sql.rows(
        f"INSERT OVERWRITE iceberg.shop.t {partition} ({', '.join(['id', *columns])}) VALUES ({', '.join(['9', *values])})"
    )
    assert sql.rows("SELECT id FROM iceberg.shop.t ORDER BY id") == [(number,) for number in left]


def test_another_writer_in_the_replaced_partition(sql: SqlSession, monkeypatch: pytest.MonkeyPatch) -> None:
    sql.rows("INSERT INTO iceberg.shop.t (id, region) VALUES (1, 'eu')")
    write = TableWriter.close

    def overtaken(self: Any) -> Any:
        monkeypatch.setattr(TableWriter, "close", write)
        SqlSession(sql.store).rows("INSERT INTO iceberg.shop.t (id, region) VALUES (2, 'eu')")
        return write(self)

    monkeypatch.setattr(TableWriter, "close", overtaken)
    with pytest.raises(ConflictError, match="changed while it was overwritten"):
        sql.rows("INSERT OVERWRITE iceberg.shop.t PARTITION (region = 'eu', day = NULL) (id) VALUES (3)")
    assert sql.rows("SELECT id FROM iceberg.shop.t ORDER BY id") == [(1,), (2,)]


class TestOtherEngines:
    @pytest.fixture(autouse=True)
    def _no_engines(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(execution, "_ENGINES", {})

    def test_the_query_goes_there_as_it_is(self, sql: SqlSession) -> None:
        seen: list[EngineInsert] = []

        def run(insert: EngineInsert) -> tuple[int | None, int]:
            seen.append(insert)
            return 17, 3

        execution.register_engine("spark", run)
        sql.rows("SET execution.engine = 'spark'")
        found = sql.rows("INSERT INTO Iceberg.Shop.T (id, s) SELECT explode(array(1)),  'x' FROM nowhere")
        assert found == [(17, 3)]
        (given,) = seen
        assert given.query == "SELECT explode(array(1)),  'x' FROM nowhere"
        assert (given.table, given.columns, given.mode) == (("iceberg", "shop", "t"), ("id", "s"), "append")
        sql.rows("INSERT OVERWRITE iceberg.shop.t PARTITION (region = 'eu', day = NULL) BY NAME SELECT 1")
        assert (seen[1].mode, seen[1].partition, seen[1].by_name) == ("overwrite", {"region": "eu", "day": None}, True)
        sql.rows("INSERT OVERWRITE iceberg.shop.t$branch_b PARTITION (region = 'eu') (id) SELECT 1")
        assert (seen[2].mode, seen[2].partition, seen[2].fixed) == ("overwrite_partitions", None, {"region": "eu"})
        assert seen[2].branch == "b"

    def test_values_stay_here(self, sql: SqlSession) -> None:
        sql.rows("SET execution.engine = 'spark'", "INSERT INTO iceberg.shop.t (id) VALUES (1)")
        assert sql.rows("SELECT count(*) FROM iceberg.shop.t") == [(1,)]

    def test_one_that_is_not_loaded(self, sql: SqlSession) -> None:
        sql.rows("SET execution.engine = 'spark'")
        sql.fails(
            "INSERT INTO iceberg.shop.t (id) SELECT 1",
            "is 'spark', which is not loaded: import lakelet.spark",
            kind=InvalidError,
        )
        sql.fails("SET execution.engine = 'flink'", "expected local or spark", kind=InvalidError)
        sql.rows("RESET execution.engine", "INSERT INTO iceberg.shop.t (id) SELECT 1")
