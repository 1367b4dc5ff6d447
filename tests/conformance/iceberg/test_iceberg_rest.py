"""Everything that SQL does with Iceberg tables, in Iceberg's own REST catalog. pyiceberg reads the results from the same
server."""

from __future__ import annotations

import datetime as dt
import itertools
import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.table import Table

import lakelet
from lakelet.errors import (
    AlreadyExistsError,
    CommitUnknownError,
    InvalidError,
    LakeletError,
    PermissionDeniedError,
    UnavailableError,
)
from tests.conformance.iceberg_rest.client import RestServer

PATIENT = "'commit.retry.num-retries' = '100', 'commit.retry.min-wait-ms' = '5', 'commit.retry.max-wait-ms' = '100'"
_numbers = itertools.count()


class Shop:
    """A lake that knows the server as the catalog `prod`, and a database of its own there."""

    def __init__(self, server: RestServer, folder: Path) -> None:
        self.server = server
        self.lake = lakelet.connect(str(folder), given(server))
        self.database = f"shop{next(_numbers)}"
        self.lake.sql(f"CREATE DATABASE prod.{self.database}")
        server.seen()

    def sql(self, text: str) -> list[tuple[object, ...]]:
        """Runs a statement; {d} is the database."""
        return self.lake.sql(text.format(d=f"prod.{self.database}")).rows()

    def table(self, name: str = "t") -> Table:
        """As pyiceberg sees it, by a catalog of its own."""
        return load_catalog("reader", type="rest", uri=self.server.uri).load_table(f"{self.database}.{name}")

    def read(self, name: str = "t", branch: str = "main") -> list[tuple[object, ...]]:
        """All rows as pyiceberg reads them."""
        scan = self.table(name).scan()
        if branch != "main":
            scan = scan.use_ref(branch)
        return sorted((tuple(row.values()) for row in scan.to_arrow().to_pylist()), key=repr)

    def files(self, name: str = "t") -> list[Path]:
        return sorted((self.server.folder / self.database / name).rglob("*.parquet"))


def given(server: RestServer, **more: str) -> dict[str, str]:
    """Options of `connect()`."""
    properties = {"type": "rest", "uri": server.uri, **more}
    return {f"catalog.prod.{key}": value for key, value in properties.items()}


@pytest.fixture
def shop(iceberg_rest: RestServer, tmp_path: Path) -> Shop:
    return Shop(iceberg_rest, tmp_path / "lake")


# ---------------------------------------------------------------- catalogs and tables


def test_a_catalog_that_is_kept(shop: Shop, tmp_path: Path) -> None:
    lake = lakelet.connect(str(tmp_path / "other"))
    lake.sql(f"CREATE CATALOG ice WITH ('type' = 'rest', 'uri' = '{shop.server.uri}')")
    shop.sql("CREATE TABLE {d}.t AS SELECT 1 AS id")
    again = lakelet.connect(str(tmp_path / "other"))
    assert again.sql("SHOW CATALOGS").rows() == [("ice",), ("iceberg",)]
    assert again.sql(f"SELECT * FROM ice.{shop.database}.t").rows() == [(1,)]
    assert json.loads((tmp_path / "other/catalogs/ice.json").read_text()) == {"type": "rest", "uri": shop.server.uri}
    with pytest.raises(UnavailableError):
        lake.sql("CREATE CATALOG down WITH ('type' = 'rest', 'uri' = 'http://127.0.0.1:1')")
    assert lake.sql("SHOW CATALOGS").rows() == [("ice",), ("iceberg",)]


def test_databases(shop: Shop) -> None:
    shop.sql("CREATE DATABASE IF NOT EXISTS {d}")
    with pytest.raises(AlreadyExistsError):
        shop.sql("CREATE DATABASE {d}")
    inner = f"prod.`{shop.database}.eu`"
    shop.sql(f"CREATE DATABASE {inner}")
    shop.sql(f"CREATE TABLE {inner}.t AS SELECT 7 AS id")
    assert shop.sql(f"SHOW TABLES IN {inner}") == [("t",)]
    assert (shop.database,) in shop.sql("SHOW DATABASES IN prod")
    with pytest.raises(InvalidError, match="not empty"):
        shop.sql("DROP DATABASE {d}")
    shop.sql(f"DROP DATABASE {inner} CASCADE")
    shop.sql("DROP DATABASE {d}")
    assert (shop.database,) not in shop.sql("SHOW DATABASES IN prod")


def test_a_table_from_its_beginning_to_its_end(shop: Shop) -> None:
    shop.sql(
        "CREATE TABLE {d}.t (id BIGINT NOT NULL COMMENT 'the key', ts TIMESTAMP, s STRING) USING iceberg "
        "PARTITIONED BY (days(ts), bucket(4, id), truncate(2, s)) COMMENT 'sales'"
    )
    with pytest.raises(AlreadyExistsError):
        shop.sql("CREATE TABLE {d}.t (id INT)")
    shop.sql("INSERT INTO {d}.t VALUES (1, '2026-01-01 10:00:00', 'abc'), (2, '1969-12-31 23:00:00', NULL)")
    shop.sql("ALTER TABLE {d}.t ADD PARTITION FIELD hours(ts)")
    shop.sql("ALTER TABLE {d}.t DROP PARTITION FIELD bucket(4, id)")
    shop.sql("ALTER TABLE {d}.t REPLACE PARTITION FIELD ts_day WITH months(ts) AS month")
    shop.sql("ALTER TABLE {d}.t ADD COLUMN (note STRING AFTER id, n INT)")
    shop.sql("ALTER TABLE {d}.t RENAME COLUMN n TO number")
    shop.sql("ALTER TABLE {d}.t ALTER COLUMN number TYPE BIGINT")
    shop.sql("ALTER TABLE {d}.t ALTER COLUMN number FIRST")
    shop.sql("ALTER TABLE {d}.t ALTER COLUMN id DROP NOT NULL")
    shop.sql("ALTER TABLE {d}.t DROP COLUMN note")
    shop.sql("ALTER TABLE {d}.t SET TBLPROPERTIES ('write.distribution-mode' = 'hash', 'a' = 'b')")
    shop.sql("ALTER TABLE {d}.t UNSET TBLPROPERTIES ('a')")
    shop.sql("INSERT INTO {d}.t (number, s) VALUES (5000000000, 'xyz')")
    table = shop.table()
    assert [field.name for field in table.spec().fields] == ["s_trunc", "ts_hour", "month"]
    assert len(table.specs()) == 4
    assert [str(field) for field in table.schema().fields] == [
        "5: number: optional long",
        "1: id: optional long (the key)",
        "2: ts: optional timestamp",
        "3: s: optional string",
    ]
    assert table.properties["write.distribution-mode"] == "hash"
    assert "a" not in table.properties
    assert table.properties["comment"] == "sales"
    expected = [
        (5_000_000_000, None, None, "xyz"),
        (None, 1, dt.datetime(2026, 1, 1, 10), "abc"),
        (None, 2, dt.datetime(1969, 12, 31, 23), None),
    ]
    assert shop.read() == expected
    assert sorted(shop.sql("SELECT * FROM {d}.t"), key=repr) == expected
    shop.sql("ALTER TABLE {d}.t RENAME TO renamed")
    shop.sql(f"RENAME TABLE prod.{shop.database}.renamed TO prod.{shop.database}.again")
    assert shop.sql("SHOW TABLES IN {d}") == [("again",)]
    assert shop.read("again") == expected
    assert shop.sql("DROP TABLE {d}.again") == [(f"dropped table prod.{shop.database}.again",)]
    assert shop.sql("SHOW TABLES IN {d}") == []
    assert shop.files() == [], "the server removes the files"


# ---------------------------------------------------------------- rows


def test_overwrites(shop: Shop) -> None:
    shop.sql("CREATE TABLE {d}.t (id INT, day INT, s STRING) PARTITIONED BY (day, bucket(2, id))")
    shop.sql("INSERT INTO {d}.t VALUES (1, 1, 'a'), (2, 1, 'b'), (3, 2, 'c'), (4, 3, 'd')")
    shop.sql("INSERT OVERWRITE {d}.t PARTITION (day = 1) (id, s) VALUES (5, 'static')")
    assert shop.read() == [(3, 2, "c"), (4, 3, "d"), (5, 1, "static")]
    shop.sql("INSERT OVERWRITE {d}.t VALUES (3, 2, 'dynamic')")
    assert shop.read() == [(3, 2, "dynamic"), (4, 3, "d"), (5, 1, "static")]
    shop.sql("TRUNCATE TABLE {d}.t PARTITION (day = 3)")
    assert shop.read() == [(3, 2, "dynamic"), (5, 1, "static")]
    shop.sql("SET 'dynamic-partition-overwrite' = 'false'")
    shop.sql("INSERT OVERWRITE {d}.t VALUES (9, 9, 'all')")
    assert shop.read() == [(9, 9, "all")]
    operations = [snapshot.summary.operation.value for snapshot in shop.table().snapshots() if snapshot.summary]
    assert operations == ["append", "overwrite", "overwrite", "delete", "overwrite"]


def test_changes_and_time_travel(shop: Shop) -> None:
    shop.sql("CREATE TABLE {d}.t PARTITIONED BY (p) AS SELECT x AS id, x % 2 AS p, 'row' AS s FROM range(6) r(x)")
    first = shop.table().current_snapshot()
    assert first is not None
    shop.sql("UPDATE {d}.t SET s = 'changed' WHERE id = 1")
    shop.sql("DELETE FROM {d}.t WHERE id IN (2, 3)")
    shop.sql(
        "MERGE INTO {d}.t AS t USING (VALUES (4, 'merged'), (10, 'new')) AS n(id, s) ON t.id = n.id "
        "WHEN MATCHED THEN UPDATE SET s = n.s WHEN NOT MATCHED THEN INSERT (id, p, s) VALUES (n.id, 0, n.s)"
    )
    expected = [(0, 0, "row"), (1, 1, "changed"), (10, 0, "new"), (4, 0, "merged"), (5, 1, "row")]
    assert shop.read() == expected
    assert sorted(shop.sql("SELECT * FROM {d}.t"), key=repr) == expected
    assert shop.sql(f"SELECT count(*) FROM {{d}}.t FOR VERSION AS OF {first.snapshot_id} WHERE s = 'row'") == [(6,)]
    assert shop.sql("SELECT operation FROM {d}.t$snapshots") == [(one,) for one in ("append", *["overwrite"] * 3)]


def test_branches(shop: Shop) -> None:
    shop.sql("CREATE TABLE {d}.t AS SELECT 1 AS id")
    shop.sql("ALTER TABLE {d}.t CREATE BRANCH dev RETAIN 7 DAYS")
    shop.sql("ALTER TABLE {d}.t CREATE TAG monthly RETAIN 30 DAYS")
    shop.sql("INSERT INTO {d}.t$branch_dev VALUES (2)")
    shop.sql("UPDATE {d}.t$branch_dev SET id = 3 WHERE id = 2")
    assert shop.read() == [(1,)]
    assert shop.read(branch="dev") == [(1,), (3,)]
    assert shop.table().refs()["dev"].max_ref_age_ms == 7 * 86_400_000, "a commit keeps the age of its branch"
    assert shop.sql(f"CALL sys.iceberg_fast_forward('prod.{shop.database}.t', 'main', 'dev')")[0][0] == "main"
    assert shop.read() == [(1,), (3,)]
    assert shop.sql("SELECT id FROM {d}.t FOR VERSION AS OF 'monthly'") == [(1,)]
    shop.sql("DROP BRANCH dev ON {d}.t")
    shop.sql("ALTER TABLE {d}.t DROP TAG monthly")
    assert set(shop.table().refs()) == {"main"}


def test_maintenance(shop: Shop) -> None:
    shop.sql("CREATE TABLE {d}.t (id INT, p INT) PARTITIONED BY (p)")
    for number in range(6):
        shop.sql(f"INSERT INTO {{d}}.t VALUES ({number}, {number % 2})")
    name = f"prod.{shop.database}.t"
    stray = shop.files()[0].with_name("stray.parquet")
    stray.write_bytes(b"of no snapshot")
    (made,) = shop.sql(f"CALL sys.iceberg_rewrite_data_files(table => '{name}', min_input_files => 2)")
    assert made[1:3] == (6, 2)
    shop.sql(f"CALL sys.iceberg_rewrite_manifests('{name}')")
    shop.sql(expiry(shop))
    assert len(shop.table().snapshots()) == 1
    assert len(shop.files()) == 3
    assert shop.sql(f"CALL sys.iceberg_remove_orphan_files('{name}')") == [], "it is too young"
    assert sorted(shop.sql("SELECT id FROM {d}.t")) == [(number,) for number in range(6)]
    assert sorted(row[0] for row in shop.read()) == list(range(6))  # type: ignore[type-var]


# ---------------------------------------------------------------- writers at once


def test_threads_append(shop: Shop, tmp_path: Path) -> None:
    shop.sql(f"CREATE TABLE {{d}}.t (id INT) TBLPROPERTIES ({PATIENT})")
    errors: list[BaseException] = []

    def append(number: int) -> None:
        try:
            lake = lakelet.connect(str(tmp_path / f"writer{number}"), given(shop.server))
            for turn in range(4):
                lake.sql(f"INSERT INTO prod.{shop.database}.t VALUES ({number * 100 + turn})")
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=append, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert shop.read() == sorted(((number * 100 + turn,) for number in range(3) for turn in range(4)), key=repr)
    assert len(shop.table().snapshots()) == 12


# ---------------------------------------------------------------- faults


def test_statements_whose_answer_is_lost_count_once(shop: Shop) -> None:
    shop.sql("CREATE TABLE {d}.t AS SELECT x AS id FROM range(3) r(x)")
    for text in (
        "INSERT INTO {d}.t VALUES (10)",
        "UPDATE {d}.t SET id = id + 100 WHERE id = 1",
        "DELETE FROM {d}.t WHERE id = 2",
        "MERGE INTO {d}.t AS t USING (VALUES (10), (11)) AS n(id) ON t.id = n.id WHEN NOT MATCHED THEN INSERT (id) VALUES (n.id)",
    ):
        shop.server.fault("after", 503)
        shop.sql(text)
    shop.server.fault("after", 500)
    shop.sql(f"CALL sys.iceberg_rewrite_data_files(table => 'prod.{shop.database}.t', min_input_files => 2)")
    assert sorted(row[0] for row in shop.read()) == [0, 10, 11, 101]  # type: ignore[type-var]
    assert len(shop.table().snapshots()) == 6
    assert sorted(shop.sql("SELECT id FROM {d}.t")) == [(0,), (10,), (11,), (101,)]


@pytest.mark.parametrize(
    "change",
    [
        "ADD COLUMN more INT",
        "ADD PARTITION FIELD bucket(4, id)",
        "SET TBLPROPERTIES ('a' = 'b')",
        "CREATE BRANCH dev",
        "CREATE TAG monthly",
    ],
)
def test_changes_of_metadata_whose_answer_is_lost(shop: Shop, change: str) -> None:
    shop.sql("CREATE TABLE {d}.t AS SELECT 1 AS id")
    before = shop.table().metadata
    shop.server.fault("before", 503)
    with pytest.raises(CommitUnknownError, match=f"table prod.{shop.database}.t: the catalog did not say whether"):
        shop.sql(f"ALTER TABLE {{d}}.t {change}")
    assert shop.table().metadata == before
    shop.server.fault("after", 503)
    shop.sql(f"ALTER TABLE {{d}}.t {change}")
    assert shop.table().metadata != before
    assert shop.server.seen().count("UPDATE_TABLE") == 3, "the rows, and one request for each statement"


def test_expiry_whose_answer_is_lost(shop: Shop) -> None:
    shop.sql("CREATE TABLE {d}.t AS SELECT 1 AS id")
    shop.sql("DELETE FROM {d}.t")
    call = expiry(shop)
    shop.server.fault("before", 503)
    with pytest.raises(CommitUnknownError):
        shop.sql(call)
    assert len(shop.files()) == 1, "the snapshot may still be there, and is"
    assert len(shop.table().snapshots()) == 2
    shop.server.fault("after", 503)
    shop.sql(call)
    assert shop.files() == []
    assert len(shop.table().snapshots()) == 1


def expiry(shop: Shop) -> str:
    """Expires all but the newest snapshot."""
    moment = (dt.datetime.now(dt.UTC) - dt.timedelta(milliseconds=1)).strftime("%Y-%m-%d %H:%M:%S.%f")
    name = f"prod.{shop.database}.t"
    return f"CALL sys.iceberg_expire_snapshots(table => '{name}', older_than => '{moment}', retain_last => 1)"


def test_a_table_of_which_nobody_says_that_it_was_made(shop: Shop) -> None:
    shop.server.fault("after", 503, route="CREATE_TABLE")
    with pytest.raises(CommitUnknownError, match=f"prod.{shop.database}.t: .* whether the table was made"):
        shop.sql("CREATE TABLE {d}.t AS SELECT 1 AS id")
    assert shop.sql("SELECT * FROM {d}.t") == []


@pytest.mark.parametrize("status", [500, 503])
def test_a_catalog_that_fails_at_reads(shop: Shop, status: int) -> None:
    shop.sql("CREATE TABLE {d}.t AS SELECT 1 AS id")
    shop.server.fault("before", status, route="LOAD_TABLE")
    with pytest.raises(UnavailableError, match=rf"prod\.{shop.database}\.t: .*asked for by the test"):
        shop.sql("SELECT * FROM {d}.t")
    assert shop.sql("SELECT * FROM {d}.t") == [(1,)]


# ---------------------------------------------------------------- secrets


@pytest.fixture
def guarded(shop: Shop) -> Iterator[Shop]:
    """A shop whose server wants a token."""
    shop.sql("CREATE TABLE {d}.t AS SELECT 1 AS id")
    shop.server.need_token("s3cr3t-token")
    yield shop
    shop.server.need_token("")


def test_tokens(guarded: Shop, tmp_path: Path) -> None:
    query = f"SELECT * FROM prod.{guarded.database}.t"
    right = lakelet.connect(str(tmp_path / "right"), given(guarded.server, token="s3cr3t-token"))
    assert right.sql(query).rows() == [(1,)]
    for more in (
        {},
        {"token": "s3cr3t-other"},
        {"auth.type": "basic", "auth.basic.username": "u", "auth.basic.password": "s3cr3t"},
    ):
        with pytest.raises(PermissionDeniedError) as raised:
            lakelet.connect(str(tmp_path / "wrong"), given(guarded.server, **more)).sql(query)
        assert "s3cr3t" not in str(raised.value)
    with pytest.raises(PermissionDeniedError):
        guarded.sql("INSERT INTO {d}.t VALUES (2)")
    kept = "CREATE CATALOG kept WITH ('type' = 'rest', 'uri' = '{}', 'token' = 's3cr3t-token')"
    with pytest.raises(InvalidError, match="'token' would be readable"):
        right.sql(kept.format(guarded.server.uri))


def test_a_token_that_expires_between_reading_and_committing(guarded: Shop, tmp_path: Path) -> None:
    lake = lakelet.connect(str(tmp_path / "right"), given(guarded.server, token="s3cr3t-token"))
    lake.sql(f"INSERT INTO prod.{guarded.database}.t VALUES (2)")
    guarded.server.fault("before", 401, times=2)
    with pytest.raises(PermissionDeniedError) as raised:
        lake.sql(f"INSERT INTO prod.{guarded.database}.t VALUES (3)")
    assert "s3cr3t" not in str(raised.value)
    assert len(guarded.files()) == 2
    assert lake.sql(f"SELECT count(*) FROM prod.{guarded.database}.t").rows() == [(2,)]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_credentials_are_changed_for_a_token(guarded: Shop, tmp_path: Path) -> None:
    # The token that Iceberg's test catalog gives for the credential.
    guarded.server.need_token("client-credentials-token:sub=user")
    options = given(guarded.server, credential="user:s3cr3t")
    lake = lakelet.connect(str(tmp_path / "right"), options)
    lake.sql(f"INSERT INTO prod.{guarded.database}.t VALUES (2)")
    assert lake.sql(f"SELECT count(*) FROM prod.{guarded.database}.t").rows() == [(2,)]
    with pytest.raises(LakeletError) as raised:
        lakelet.connect(str(tmp_path / "wrong"), options | {"catalog.prod.credential": "other:s3cr3t"}).sql(
            "SHOW DATABASES IN prod"
        )
    assert "s3cr3t" not in str(raised.value)
