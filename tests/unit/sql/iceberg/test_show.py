"""SHOW, DESCRIBE, DROP and TRUNCATE of Iceberg tables, and statements about catalogs."""

from pathlib import Path

import pytest

import lakelet
from lakelet.errors import AlreadyExistsError, InvalidError, NotFoundError, UnavailableError
from tests.unit.sql.iceberg.ice_session import ice_session
from tests.unit.sql_session import SqlSession


@pytest.fixture
def sql(tmp_path: Path) -> SqlSession:
    made = ice_session(tmp_path)
    made.rows(
        "CREATE TABLE iceberg.shop.t (id BIGINT NOT NULL, x DOUBLE, n ROW<a INT COMMENT 'c'>) PARTITIONED BY (x, bucket(2, id))",
        "INSERT INTO iceberg.shop.t (id, x) VALUES (1, 0.1), (1, 1e300), (1, 'nan'), (1, NULL)",
    )
    return made


def test_partitions(sql: SqlSession) -> None:
    # Doubles are read in full, also where pyiceberg's decoder reads four bytes of them.
    assert sorted(sql.column("SHOW PARTITIONS iceberg.shop.t")) == [
        "x=0.1/id_bucket=0",
        "x=1e%2B300/id_bucket=0",
        "x=nan/id_bucket=0",
        "x=null/id_bucket=0",
    ]
    sql.rows("ALTER TABLE iceberg.shop.t CREATE BRANCH b", "TRUNCATE TABLE iceberg.shop.t$branch_b")
    assert sql.rows("SHOW PARTITIONS iceberg.shop.t$branch_b") == []
    sql.rows("CREATE TABLE iceberg.shop.plain (a INT)")
    sql.fails("SHOW PARTITIONS iceberg.shop.plain", "is not partitioned", "iceberg")


def test_columns(sql: SqlSession) -> None:
    assert sql.rows("DESCRIBE TABLE iceberg.shop.t") == sql.rows("SHOW COLUMNS FROM iceberg.shop.t")
    assert sql.rows("SHOW COLUMNS IN iceberg.shop.t LIKE 'X'") == [("x", "DOUBLE", "YES", "partition", None, None)]
    assert sql.rows("DESCRIBE iceberg.shop.t n.a") == [("n.a", "INT", "YES", None, None, "c")]
    facts = {row[0]: row[1] for row in sql.rows("DESCRIBE EXTENDED iceberg.shop.t")}
    assert (facts["Partitioned by"], facts["Rows stored"], facts["Format"]) == (
        "x, bucket(2, id)",
        "4",
        "Iceberg, version 2",
    )
    sql.fails("DESCRIBE iceberg.shop.t n.b", "column 'b' is not there", "b")


def test_properties(sql: SqlSession) -> None:
    sql.rows("ALTER TABLE iceberg.shop.t SET ('some' = 'thing')")
    assert sql.rows("SHOW TBLPROPERTIES iceberg.shop.t ('some')") == [("some", "thing")]
    sql.fails("SHOW TBLPROPERTIES iceberg.shop.t ('sme')", "is not set; did you mean some", "'sme'")


def test_a_dropped_table_takes_its_files_along(sql: SqlSession) -> None:
    before = {path for path in sql.files() if "/shop/t/" in path}
    assert len(before) > 5
    sql.fails("DROP TABLE iceberg.shop.t$branch_b", "DROP BRANCH", "iceberg")
    assert sql.done("DROP TABLE iceberg.shop.T PURGE") == "dropped table iceberg.shop.t"
    assert not before & set(sql.files())
    sql.fails("DROP TABLE iceberg.shop.t", "does not exist", "iceberg", NotFoundError)


def test_a_table_without_garbage_collection_keeps_them(sql: SqlSession) -> None:
    sql.rows("ALTER TABLE iceberg.shop.t SET ('gc.enabled' = 'false')")
    before = set(sql.files())
    assert sql.done("DROP TABLE iceberg.shop.t") == "dropped table iceberg.shop.t; its files stay"
    assert set(sql.files()) == before


@pytest.fixture
def of_another_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are written as other engines do, which also take times that are not shown here."""
    monkeypatch.setattr("lakelet.iceberg.write.value_fit.first_unshowable", lambda _: None)


@pytest.mark.usefixtures("of_another_engine")
def test_partitions_beyond_the_year_9999(sql: SqlSession) -> None:
    sql.rows(
        "CREATE TABLE iceberg.shop.far (a TIMESTAMP, b TIMESTAMP, c TIMESTAMP) PARTITIONED BY (months(a), days(b), hours(c))",
        "INSERT INTO iceberg.shop.far SELECT t, t, t FROM (VALUES (TIMESTAMP '12000-03-04 05:00:00'), ('2020-01-01')) v(t)",
    )
    assert sql.column("SHOW PARTITIONS iceberg.shop.far") == [
        "a_month=12000-03/b_day=12000-03-04/c_hour=12000-03-04-05",
        "a_month=2020-01/b_day=2020-01-01/c_hour=2020-01-01-00",
    ]
    assert sql.rows("SELECT year(a) FROM iceberg.shop.far WHERE a > '9999-12-31 23:59:59.999999'") == [(12000,)]
    with pytest.raises(InvalidError, match=r"table iceberg\.shop\.far: \$manifests cannot show partitions beyond"):
        sql.rows("SELECT * FROM iceberg.shop.far$manifests")


@pytest.mark.usefixtures("of_another_engine")
def test_days_and_moments_beyond_the_year_9999(sql: SqlSession) -> None:
    sql.rows(
        "CREATE TABLE iceberg.shop.far (d DATE, t TIMESTAMP, z TIMESTAMP_LTZ) PARTITIONED BY (d, t, z)",
        "INSERT INTO iceberg.shop.far VALUES (DATE '12000-03-04', TIMESTAMP '12000-03-04 05:00', TIMESTAMP '12000-03-04 05:00')",
    )
    moment = "12000-03-04T05%3A00%3A00.000000"
    assert sql.column("SHOW PARTITIONS iceberg.shop.far") == [f"d=12000-03-04/t={moment}/z={moment}%2B00%3A00"]


def test_truncate(sql: SqlSession) -> None:
    sql.fails("TRUNCATE TABLE iceberg.shop.t PARTITION (id = 1)", r"partitioned by bucket\(2, id\)", "id")
    sql.fails("TRUNCATE TABLE iceberg.shop.t PARTITION (x = 'y')", "partition column 'x'", "'y'")
    assert (
        sql.done("TRUNCATE iceberg.shop.t PARTITION (x = 7)") == "partition x = 7.0 of table iceberg.shop.t was empty"
    )
    sql.done("TRUNCATE TABLE iceberg.shop.t PARTITION (x = NULL)")
    assert sql.rows("SELECT count(*), count(x) FROM iceberg.shop.t") == [(3, 3)]
    assert sql.done("TRUNCATE TABLE iceberg.shop.t") == "emptied table iceberg.shop.t"
    assert sql.rows("SELECT * FROM iceberg.shop.t") == []


class TestCatalogs:
    def test_made_kept_and_forgotten(self, sql: SqlSession, tmp_path: Path) -> None:
        properties = f"('type' = 'sql', 'uri' = 'sqlite:///{tmp_path}/o.db', 'warehouse' = 'file://{tmp_path}/o')"
        assert sql.done(f"CREATE CATALOG other WITH {properties}") == "created catalog other"
        sql.fails(f"CREATE CATALOG OTHER WITH {properties}", "catalog 'OTHER' exists", kind=AlreadyExistsError)
        assert sql.done(f"CREATE CATALOG IF NOT EXISTS other WITH {properties}") == "catalog other exists"
        sql.rows("CREATE DATABASE other.db", "CREATE TABLE other.db.t AS SELECT 1 AS a")
        lake = lakelet.connect(str(tmp_path))
        assert lake.sql("SHOW CATALOGS").rows() == [("iceberg",), ("other",)]
        assert lake.sql("SELECT * FROM other.db.t").rows() == [(1,)]
        assert sql.done("DROP CATALOG Other") == "dropped catalog other"
        sql.fails("SELECT * FROM other.db.t", "catalog 'other' is not known", "other", NotFoundError)
        sql.fails("DROP CATALOG other", "is not known", "other", NotFoundError)
        assert sql.done("DROP CATALOG IF EXISTS other") == "catalog other does not exist"

    def test_refused(self, sql: SqlSession) -> None:
        sql.fails("CREATE CATALOG c", "expected WITH and the properties", "")
        sql.fails("CREATE CATALOG c WITH ('warehouse' = 'x')", "at least 'type' or 'uri'", "(")
        sql.fails("CREATE CATALOG `a.b` WITH ('type' = 'sql')", "catalog name 'a.b'", "`a.b`")
        sql.fails("CREATE CATALOG c WITH ('type' = 'sqll')", "type 'sqll' is unknown", "c")
        sql.fails(
            "CREATE CATALOG c WITH ('type' = 'rest', 'uri' = 'http://127.0.0.1:1')", "refused", kind=UnavailableError
        )
        sql.fails("DROP CATALOG iceberg", "it is the lake's own", "iceberg")
        sql.fails("SHOW DATABASES IN icebreg", "did you mean iceberg", "icebreg", NotFoundError)

    def test_databases(self, sql: SqlSession) -> None:
        sql.fails("CREATE DATABASE iceberg.Shop", r"database 'iceberg\.Shop' exists", kind=AlreadyExistsError)
        assert sql.done("CREATE DATABASE IF NOT EXISTS iceberg.shop") == "database iceberg.shop exists"
        sql.fails("CREATE DATABASE iceberg.x LOCATION 'y'", "has but a name here", "LOCATION")
        sql.fails("DROP DATABASE iceberg.shop", r"holds 1 tables \(t\)", "iceberg")
        sql.fails("DROP DATABASE iceberg.shopp", "did you mean shop", "iceberg", NotFoundError)
        assert sql.done("DROP DATABASE IF EXISTS iceberg.gone") == "database iceberg.gone does not exist"
        assert sql.rows("DESCRIBE DATABASE iceberg.shop")[2] == ("Tables", "1")
        sql.fails("USE iceberg.shop", "named in full", "iceberg")
        sql.done("DROP DATABASE iceberg.shop CASCADE")
        assert sql.rows("SHOW DATABASES IN iceberg") == []

    def test_a_database_of_two_levels(self, sql: SqlSession) -> None:
        sql.rows(
            "CREATE DATABASE iceberg.`a`",
            "CREATE DATABASE iceberg.`a.b`",
            "CREATE TABLE iceberg.`a.b`.t AS SELECT 1 AS x",
        )
        assert sql.rows("SELECT x FROM iceberg.`a.b`.t") == [(1,)]
        assert sql.rows("SHOW TABLES IN iceberg.`a.b`") == [("t",)]
