"""CREATE OR REPLACE TABLE: history kept where keys and buckets stay, a new table otherwise, the old one after any failure."""

import pytest

from lakelet import Lake
from lakelet.errors import ConflictError, InvalidError, LakeletError, UnavailableError
from lakelet.sql.session import Session
from lakelet.storage.memory import MemoryStore
from tests.unit.hooked_store import HookedStore
from tests.unit.sql_session import SqlSession

# Every way in which rows find their bucket: the definition behind the columns.
LAYOUTS = {
    "append": ("", ""),
    "append, buckets": ("", "WITH ('bucket' = '2', 'bucket-key' = 'id')"),
    "partitioned": ("", "PARTITIONED BY (p)"),
    "keyed": (", PRIMARY KEY (id)", "WITH ('bucket' = '2')"),
    "keyed, partitioned": (", PRIMARY KEY (id, p)", "PARTITIONED BY (p) WITH ('bucket' = '1')"),
    "dynamic": (", PRIMARY KEY (id)", ""),
    "crossing": (", PRIMARY KEY (id)", "PARTITIONED BY (p)"),
    "postponed": (", PRIMARY KEY (id)", "WITH ('bucket' = '-2')"),
    "deletion vectors": (", PRIMARY KEY (id)", "WITH ('bucket' = '1', 'deletion-vectors.enabled' = 'true')"),
}


def layout(name: str, columns: str, *, replace: bool = True) -> str:
    keys, behind = LAYOUTS[name]
    return f"CREATE {'OR REPLACE ' if replace else ''}TABLE d.t ({columns}{keys}) {behind}"


@pytest.fixture
def sql() -> SqlSession:
    made = SqlSession()
    made.rows("CREATE DATABASE d")
    return made


def filled(sql: SqlSession, name: str) -> SqlSession:
    sql.rows(layout(name, "id BIGINT, p STRING, v INT, w STRING", replace=False))
    sql.rows("INSERT INTO d.t VALUES (1, 'a', 10, 'x'), (2, 'b', 20, 'y')")
    return sql


def shown(sql: SqlSession, what: str = "id, p, v") -> list[tuple[object, ...]]:
    if sql.lake.table("d.t").options.get("bucket") == "-2":
        sql.lake.table("d.t").compact()
    return sorted(sql.rows(f"SELECT {what} FROM d.t"))


@pytest.mark.parametrize("name", LAYOUTS)
class TestKept:
    def test_columns_change_and_the_history_stays(self, sql: SqlSession, name: str) -> None:
        filled(sql, name)
        last = sql.rows("SELECT max(snapshot_id) FROM d.t$snapshots")[0][0]
        said = sql.done(layout(name, "id BIGINT, p STRING, v STRING, n INT COMMENT 'new'"))
        assert said == "replaced table d.t"
        assert shown(sql) == []
        sql.rows("INSERT INTO d.t VALUES (1, 'a', 'text', 7)")
        assert shown(sql, "id, p, v, n") == [(1, "a", "text", 7)]
        if name != "postponed":
            old = sql.rows(f"SELECT id, p, v, w FROM d.t FOR VERSION AS OF {last} ORDER BY id")
            assert old == [(1, "a", 10, "x"), (2, "b", 20, "y")]
        assert len(sql.lake.table("d.t").schemas()) == 2
        assert sql.lake.tables("d") == ["t"]

    def test_a_query_that_reads_the_table(self, sql: SqlSession, name: str) -> None:
        filled(sql, name)
        if name == "postponed":
            sql.lake.table("d.t").compact()
        keys, behind = LAYOUTS[name]
        keys = f"({keys.removeprefix(', ')})" if keys else ""
        query = "SELECT id, p, v + 1 AS v, id::INT AS extra FROM d.t"
        said = sql.done(f"CREATE OR REPLACE TABLE d.t {keys} {behind} AS {query}")
        assert said == "replaced table d.t, 2 rows"
        assert shown(sql, "id, p, v, extra") == [(1, "a", 11, 1), (2, "b", 21, 2)]
        assert sql.rows("SELECT count(*) FROM d.t$snapshots WHERE commit_kind = 'OVERWRITE'") == [(1,)]

    def test_the_same_again_is_one_overwrite(self, sql: SqlSession, name: str) -> None:
        filled(sql, name)
        sql.rows(layout(name, "id BIGINT, p STRING, v INT, w STRING"))
        assert shown(sql) == []
        assert len(sql.lake.table("d.t").schemas()) == 1

    def test_rows_that_do_not_fit_leave_the_table(self, sql: SqlSession, name: str) -> None:
        filled(sql, name)
        before = shown(sql)
        keys, behind = LAYOUTS[name]
        keys = f"({keys.removeprefix(', ')})" if keys else ""
        for query in (
            "SELECT id, error('no') AS p FROM d.t",
            "SELECT nothing FROM d.t",
            "SELECT '101'::BIT AS id",
            "SELECT 1 AS other, NULL AS more",
        ):
            with pytest.raises(LakeletError):
                sql.rows(f"CREATE OR REPLACE TABLE d.t {keys} {behind} AS {query}")
            assert shown(sql) == before
            assert sql.lake.tables("d") == ["t"]


class TestNew:
    @pytest.mark.parametrize("before", LAYOUTS)
    @pytest.mark.parametrize("after", ["append", "keyed", "partitioned", "crossing"])
    def test_other_keys_and_buckets(self, sql: SqlSession, before: str, after: str) -> None:
        if before == after:
            return
        filled(sql, before)
        if before == "postponed":
            sql.lake.table("d.t").compact()
        keys, behind = LAYOUTS[after]
        keys = f"({keys.removeprefix(', ')})" if keys else ""
        said = sql.done(f"CREATE OR REPLACE TABLE d.t {keys} {behind} AS SELECT id, p, v * 2 AS v FROM d.t")
        assert said == "replaced table d.t, 2 rows"
        assert shown(sql) == [(1, "a", 20), (2, "b", 40)]
        assert sql.lake.tables("d") == ["t"]
        sql.rows("INSERT INTO d.t VALUES (3, 'c', 1)")
        assert len(shown(sql)) == 3

    def test_a_key_of_another_type_is_a_new_table(self, sql: SqlSession) -> None:
        filled(sql, "keyed")
        sql.rows("CREATE OR REPLACE TABLE d.t (id STRING, p STRING, v INT, PRIMARY KEY (id)) WITH ('bucket' = '2')")
        assert [schema.id for schema in sql.lake.table("d.t").schemas()] == [0]
        assert sql.rows("SELECT * FROM d.t") == []

    def test_a_query_that_fails_leaves_the_old_one(self, sql: SqlSession) -> None:
        filled(sql, "append")
        before = sql.files()
        query = "SELECT id, CASE WHEN id = 2 THEN error('boom') ELSE p END AS p FROM d.t"
        with pytest.raises(LakeletError, match="boom"):
            sql.rows(f"CREATE OR REPLACE TABLE d.t (PRIMARY KEY (id)) AS {query}")
        assert sql.files() == before

    def test_no_table_there(self, sql: SqlSession) -> None:
        assert sql.done("CREATE OR REPLACE TABLE d.t AS SELECT 1 AS a") == "created table d.t, 1 row"
        assert sql.done("CREATE OR REPLACE TABLE u (a INT)") == "created table default.u"

    def test_like(self, sql: SqlSession) -> None:
        filled(sql, "keyed")
        sql.rows("CREATE TABLE d.u (x INT)", "CREATE OR REPLACE TABLE d.u LIKE d.t")
        assert sql.lake.table("d.u").schema.primary_keys == ("id",)

    def test_names_that_differ_in_case(self, sql: SqlSession) -> None:
        filled(sql, "append")
        assert sql.done("CREATE OR REPLACE TABLE D.T AS SELECT 1 AS id") == "replaced table d.t, 1 row"
        assert sql.lake.tables("d") == ["t"]


def test_an_alter_in_between_is_a_conflict() -> None:
    inner = MemoryStore()
    filled_sql = SqlSession(inner)
    filled_sql.rows("CREATE DATABASE d")
    filled(filled_sql, "append")
    store = HookedStore(inner)

    def alter() -> None:
        Lake(inner).table("d.t").add_column("late", "INT")

    store.when, store.after = lambda call, path: call == "open_output", alter
    with pytest.raises(ConflictError, match="altered while"):
        Session(Lake(store)).run("CREATE OR REPLACE TABLE d.t AS SELECT 1 AS id, 'x' AS n")
    assert sorted(filled_sql.rows("SELECT id, p, v, late FROM d.t")) == [(1, "a", 10, None), (2, "b", 20, None)]


def test_a_commit_that_fails_takes_the_columns_back() -> None:
    inner = MemoryStore()
    filled_sql = SqlSession(inner)
    filled_sql.rows("CREATE DATABASE d")
    filled(filled_sql, "append")
    store = HookedStore(inner)

    def fail() -> None:
        raise InvalidError("the manifest")

    store.when, store.after = lambda call, path: "/manifest/manifest-list" in path, fail
    with pytest.raises((InvalidError, UnavailableError)):
        Session(Lake(store)).run("CREATE OR REPLACE TABLE d.t AS SELECT 1 AS id, 'x' AS n")
    assert sorted(filled_sql.rows("SELECT * FROM d.t")) == [(1, "a", 10, "x"), (2, "b", 20, "y")]
