"""SQL profiles: the restricted one refuses whatever reaches beyond the lake's tables, the local one nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from lakelet.catalog.connect import connect
from lakelet.catalog.lake import Lake
from lakelet.errors import InvalidError, LakeletError, PermissionDeniedError
from lakelet.sql import dispatch
from lakelet.sql.profile import LOCAL, RESTRICTED, SqlProfile
from lakelet.sql.session import Session
from lakelet.sql.statements import refused
from lakelet.sql.views.functions import ALLOWED, TABLES

VARIABLE = pa.table({"id": [7]})


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    made = connect(str(tmp_path_factory.mktemp("lake")))
    made.sql("CREATE TABLE t (id BIGINT, s STRING)")
    made.sql("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    made.sql("CREATE VIEW v AS SELECT id * 10 AS ten FROM t")
    made.sql("CREATE TABLE duckdb_like (id BIGINT)")
    return made


@pytest.fixture(scope="module")
def session(lake: Lake) -> Iterator[Session]:
    made = Session(lake, RESTRICTED)
    yield made
    made.close()


@pytest.fixture
def secret(tmp_path: Path) -> str:
    path = tmp_path / "secret.csv"
    path.write_text("id\n42\n")
    return str(path)


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("SELECT id FROM t WHERE s = 'b'", [(2,)]),
        ("SELECT count(*) FROM t", [(2,)]),
        ("FROM v ORDER BY ten", [(10,), (20,)]),
        ("WITH x AS (FROM t) SELECT max(x.id) FROM x JOIN t USING (id)", [(2,)]),
        ("VALUES (1)", [(1,)]),
        ("(SELECT 1)", [(1,)]),
        ("TABLE duckdb_like", []),
        ("SELECT * FROM range(2)", [(0,), (1,)]),
        ("SELECT list_transform([1], lambda x: x + 1)", [([2],)]),
        ("SELECT id FROM t VERSION AS OF 1 ORDER BY id", [(1,), (2,)]),
        ("SELECT * FROM query('SELECT 1')", [(1,)]),
        ("USE default; SELECT 1", [(1,)]),
        ("SET TimeZone = 'Asia/Tokyo'; SELECT 1", [(1,)]),
        ("RESET TimeZone; SELECT 1", [(1,)]),
    ],
)
def test_queries_over_tables_run(session: Session, text: str, rows: list[tuple[object, ...]]) -> None:
    assert session.run(text).rows() == rows


def test_parameters_and_frames_that_are_handed_over(session: Session) -> None:
    assert session.run("SELECT $a + 1", {"a": 1}).rows() == [(2,)]
    assert session.run("SELECT * FROM f", frames={"f": VARIABLE}).rows() == [(7,)]


@pytest.mark.parametrize(
    "text",
    [
        "FROM '{file}'",
        'FROM "{file}"',
        "FROM 'https://example.com/a.csv'",
        "SELECT (SELECT content FROM read_text('{file}'))",
        "SELECT * FROM t WHERE id IN (FROM read_csv('{file}'))",
        "WITH x AS (FROM read_csv('{file}')) FROM x",
        "FROM t, LATERAL (FROM glob('*'))",
        "FROM system.main.read_csv('{file}')",
        "FROM query('FROM read_csv(''{file}'')')",
        "FROM query_table('{file}')",
        "FROM query((SELECT content FROM read_text('{file}')))",
        "FROM t VERSION AS OF (SELECT id FROM read_csv('{file}'))",
        "FROM t VERSION AS OF (SELECT max(id) FROM t)",
        "FROM (DESCRIBE t)",
        "FROM (SUMMARIZE t)",
        "FROM (PIVOT t ON s)",
        "PIVOT t ON s USING sum(id)",
        "SUMMARIZE t",
        "FROM t$files",
        "FROM sys.tables",
        "FROM t$snapshots VERSION AS OF 1",
        "FROM iceberg.shop.orders",
        "FROM information_schema.tables",
        "FROM pg_catalog.pg_class",
        "FROM duckdb_tables",
        "FROM system.main.duckdb_tables",
        # What other queries of the session have in DuckDB.
        "FROM temp.main.lakelet_rows_1",
        "FROM lakelet_1.main.t",
        "SHOW ALL TABLES",
        "SELECT getvariable('a')",
        "SELECT current_setting('threads')",
        "SELECT getenv('HOME')",
        "SET TimeZone = (SELECT content FROM read_text('{file}'))",
        "WITH x AS (SELECT 1) INSERT INTO t SELECT 1, 'x'",
        "COPY t TO '{file}'",
        "ATTACH '{file}'",
        "LOAD httpfs",
        "INSTALL httpfs",
    ],
)
def test_what_reaches_further_is_refused(session: Session, secret: str, text: str) -> None:
    with pytest.raises((PermissionDeniedError, InvalidError)) as raised:
        session.run(text.format(file=secret)).rows()
    known = ("ATTACH", "LOAD", "INSTALL")
    assert text.startswith(known) or isinstance(raised.value, PermissionDeniedError)


def test_variables_of_the_calling_code_are_not_seen(session: Session) -> None:
    import sys

    with pytest.raises(LakeletError, match="VARIABLE"):
        session.run("SELECT * FROM VARIABLE", caller=sys._getframe())
    assert Session(session.context.lake).run("SELECT * FROM VARIABLE", caller=sys._getframe()).rows() == [(7,)]


def test_every_function_of_duckdb_is_listed_or_refused(session: Session) -> None:
    with session.context.engine.space() as space:
        found = space.run("SELECT DISTINCT function_name, function_type FROM duckdb_functions() ORDER BY ALL")
        assert len(found) > 500
        for name, kind in found:
            quoted = '"' + name.replace('"', '""') + '"'
            is_table = kind in ("table", "table_macro", "pragma")
            text = f"FROM {quoted}('/etc/hosts')" if is_table else f"SELECT {quoted}('/etc/hosts')"
            tree = space.tree(text)
            assert not tree.get("error"), text
            if name.lower() in (TABLES if is_table else ALLOWED | TABLES):
                RESTRICTED.check_query(tree)
                continue
            with pytest.raises(PermissionDeniedError, match="is not allowed by the SQL profile 'restricted'"):
                RESTRICTED.check_query(tree)


def test_no_function_that_reaches_files_is_listed(session: Session) -> None:
    reaching = (
        *("read_text", "read_blob", "read_csv", "read_csv_auto", "read_json", "read_json_auto", "read_ndjson"),
        *("read_json_objects", "read_parquet", "parquet_scan", "parquet_metadata", "parquet_schema", "sniff_csv"),
        *("read_duckdb", "glob", "getenv", "current_setting", "query", "query_table", "duckdb_settings", "getvariable"),
    )
    assert not {*reaching} & (ALLOWED | TABLES)
    for name in reaching:
        with pytest.raises(LakeletError):
            session.run(f"SELECT * FROM {name}('/etc/hosts')").rows()


def test_every_setting_but_the_listed_is_refused(session: Session) -> None:
    with session.context.engine.space() as space:
        names = [name for (name,) in space.run("SELECT name FROM duckdb_settings()")]
    assert len(names) > 50
    for name in (*names, "execution.engine", "dynamic-partition-overwrite"):
        if name == "TimeZone":
            continue
        for text in (f"SET '{name}' = '1'", f"RESET '{name}'"):
            with pytest.raises(PermissionDeniedError, match="the setting"):
                session.run(text)


def test_every_statement_but_the_listed_is_refused(session: Session) -> None:
    assert RESTRICTED.statements is not None
    for word in {*dispatch.keywords(), *refused.STATEMENTS} - RESTRICTED.statements:
        with pytest.raises(PermissionDeniedError, match=f"the statement {word} is not allowed"):
            session.run(f"{word} t")


def test_the_engine_reads_nothing_but_the_lake(session: Session, secret: str) -> None:
    """The second lock: what the lists let through by a defect reaches no file."""
    with session.context.engine.space() as space:
        for text in (f"FROM read_csv('{secret}')", f"COPY (SELECT 1) TO '{secret}'", f"ATTACH '{secret}.db'"):
            with pytest.raises(PermissionDeniedError):
                space.run(text)
        with pytest.raises(LakeletError):
            space.run("SET enable_external_access = true")


def test_local_is_the_default_and_limits_nothing(lake: Lake, secret: str) -> None:
    session = Session(lake)
    assert session.context.profile is LOCAL
    assert SqlProfile("local") == LOCAL
    assert session.run(f"FROM '{secret}'").rows() == [(42,)]
    assert session.run("SELECT count(*) FROM t$files").rows() == [(1,)]
    assert LOCAL.engine_settings(lake.location) == {}
