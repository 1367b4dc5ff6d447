"""DEFAULT expressions in statements: declared, shown, evaluated by all that writes rows, kept through changes of columns."""

import datetime as dt
import json
from typing import Any

import pyarrow as pa
import pytest

from lakelet import InvalidError, Lake
from lakelet.sql.session import Session
from lakelet.storage.memory import MemoryStore
from tests.unit.hooked_store import HookedStore
from tests.unit.sql_session import SqlSession

START = dt.datetime(2026, 3, 4, 22, 30, 0, 500_000)
OPTION = "fields.{}.default-expression"


class StandingClock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = START

    def now_ms(self) -> int:
        return round(self.now.replace(tzinfo=dt.UTC).timestamp() * 1000)

    def monotonic(self) -> float:
        return self.now_ms() / 1000

    def sleep(self, seconds: float) -> None:
        self.now += dt.timedelta(seconds=seconds)


@pytest.fixture
def clock() -> StandingClock:
    return StandingClock()


@pytest.fixture
def sql(clock: StandingClock) -> SqlSession:
    made = SqlSession()
    made.lake = Lake(made.store, clock=clock)
    made.session = Session(made.lake)
    made.rows("CREATE DATABASE d", "USE d")
    return made


APPEND = """CREATE TABLE t (id INT, made TIMESTAMP DEFAULT current_timestamp, z TIMESTAMP_LTZ(0) DEFAULT now(),
            day DATE NOT NULL DEFAULT current_date + 1, u STRING NOT NULL DEFAULT uuid() COMMENT 'key', v INT DEFAULT 1 + 2)"""
KEYED = APPEND.replace("id INT", "id INT PRIMARY KEY NOT ENFORCED")
LAYOUTS = {
    "append": APPEND,
    "fixed": KEYED + " WITH ('bucket' = '2')",
    "dynamic": KEYED,
    "cross": KEYED.replace("v INT", "p INT DEFAULT 7, v INT") + " PARTITIONED BY (p)",
}
# What a row has by its defaults, but for the uuid.
DEFAULTS = (START, START.replace(microsecond=0, tzinfo=dt.UTC), dt.date(2026, 3, 5), 3)


@pytest.fixture(params=LAYOUTS)
def table(request: pytest.FixtureRequest, sql: SqlSession) -> str:
    sql.rows(LAYOUTS[request.param])
    return str(request.param)


def filled(sql: SqlSession, where: str = "TRUE") -> dict[int, str]:
    """The uuids of rows by id, after a look at all other defaults."""
    found = sql.rows(f"SELECT id, u, made, z, day, v FROM t WHERE {where}")
    for row in found:
        assert row[2:] == DEFAULTS
        assert len(row[1]) == 36
    assert len({row[1] for row in found}) == len(found)
    return {row[0]: row[1] for row in found}


def test_inserts(sql: SqlSession, table: str) -> None:
    sql.rows("INSERT INTO t (id) VALUES (1), (2)")
    sql.rows("INSERT INTO t (id, u, made) VALUES (3, DEFAULT, DEFAULT), (4, DEFAULT, DEFAULT)")
    sql.rows("INSERT INTO t BY NAME SELECT i::INT AS id FROM range(5, 8) r(i)")
    sql.rows("INSERT INTO t (id) SELECT 8")
    assert sorted(filled(sql)) == [1, 2, 3, 4, 5, 6, 7, 8]


def test_all_defaults(sql: SqlSession) -> None:
    sql.rows(APPEND, "INSERT INTO t DEFAULT VALUES", "INSERT INTO t DEFAULT VALUES")
    assert len(sql.rows("SELECT DISTINCT u FROM t")) == 2
    assert sql.rows("SELECT DISTINCT id, made, z, day, v FROM t") == [(None, *DEFAULTS)]


def test_what_is_returned_is_what_is_written(sql: SqlSession, table: str) -> None:
    returned = sql.rows("INSERT INTO t (id, made) VALUES (1, DEFAULT), (2, DEFAULT) RETURNING id, u")
    returned += sql.rows("INSERT INTO t (id) VALUES (3) RETURNING id, u")
    assert dict(returned) == filled(sql)
    changed = sql.rows("UPDATE t SET u = DEFAULT, made = DEFAULT WHERE id < 3 RETURNING id, u")
    assert dict(changed) == filled(sql, "id < 3")
    assert not {u for _, u in changed} & {u for _, u in returned}


def test_updates_and_merges(sql: SqlSession, table: str, clock: StandingClock) -> None:
    sql.rows("INSERT INTO t (id, u, made) VALUES (1, 'a', NULL), (2, 'b', NULL), (3, 'c', NULL)")
    sql.rows("UPDATE t SET (u, made) = (DEFAULT, DEFAULT) WHERE id <= 2")
    sql.rows(
        """MERGE INTO t USING (SELECT i::INT AS k FROM range(3, 6) r(i)) s ON t.id = s.k
           WHEN MATCHED THEN UPDATE SET u = DEFAULT, made = DEFAULT WHEN NOT MATCHED THEN INSERT (id) VALUES (k)"""
    )
    before = filled(sql)
    assert sorted(before) == [1, 2, 3, 4, 5]
    clock.sleep(60)
    sql.rows("UPDATE t SET v = 9 WHERE id = 1")
    assert sql.rows("SELECT u, made FROM t WHERE id = 1") == [(before[1], START)]
    sql.rows("UPDATE t SET made = DEFAULT WHERE id = 1")
    assert sql.rows("SELECT u, made FROM t WHERE id = 1") == [(before[1], START + dt.timedelta(minutes=1))]


def test_conflicts_of_keys(sql: SqlSession) -> None:
    sql.rows(LAYOUTS["fixed"], "INSERT INTO t (id, u) VALUES (1, 'kept')")
    done = sql.rows("INSERT INTO t (id) VALUES (1), (2), (3) ON CONFLICT DO NOTHING RETURNING id, u")
    assert dict(done) == filled(sql, "id > 1")
    assert sql.rows("SELECT u FROM t WHERE id = 1") == [("kept",)]
    sql.rows("INSERT INTO t (id) VALUES (1), (4) ON CONFLICT DO UPDATE SET u = excluded.u")
    assert sorted(filled(sql)) == [1, 2, 3, 4]


def test_copy(sql: SqlSession, tmp_path: Any) -> None:
    sql.rows(APPEND)
    (tmp_path / "in.csv").write_text("id\n1\n2\n")
    sql.rows(f"COPY t (id) FROM '{tmp_path}/in.csv' (HEADER)")
    assert sorted(filled(sql)) == [1, 2]


def test_a_setting_of_the_session_changes_no_default(sql: SqlSession, table: str) -> None:
    """A session may see moments in its own zone; what is written is the table's matter."""
    sql.rows("ALTER TABLE t ADD COLUMNS (s STRING DEFAULT now(), w STRING DEFAULT now() || uuid())")
    sql.rows("SET TimeZone = 'Asia/Kolkata'")
    sql.rows("INSERT INTO t (id) VALUES (1)", "INSERT INTO t (id, made, s, w) VALUES (2, DEFAULT, DEFAULT, DEFAULT)")
    sql.rows("INSERT INTO t (id, made, s, w) VALUES (3, NULL, NULL, NULL)")
    sql.rows("UPDATE t SET made = DEFAULT, s = DEFAULT, w = DEFAULT WHERE id = 3")
    sql.rows("SET TimeZone = 'UTC'")
    text = "2026-03-04 22:30:00.5+00"
    assert sorted(filled(sql)) == [1, 2, 3]
    assert sql.rows("SELECT DISTINCT s, w[:24] FROM t") == [(text, text)]


def test_default_stands_where_it_is_said(sql: SqlSession) -> None:
    """Among many rows of VALUES each gets its own."""
    sql.rows(APPEND)
    rows = ", ".join(f"({number}, {'DEFAULT' if number % 3 else repr(str(number))})" for number in range(5000))
    sql.rows(f"INSERT INTO t (id, u) VALUES {rows}")
    found = dict(sql.rows("SELECT id, u FROM t"))
    assert all(found[number] == str(number) for number in range(0, 5000, 3))
    assert len({one for one in found.values() if len(one) == 36}) == 5000 - len(range(0, 5000, 3))


def test_clauses_that_ask_for_defaults_beside_others(sql: SqlSession, table: str) -> None:
    sql.rows("INSERT INTO t (id, u) VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    sql.rows(
        """MERGE INTO t USING (SELECT i::INT AS k FROM range(1, 7) r(i)) s ON t.id = s.k
           WHEN MATCHED AND k = 1 THEN UPDATE SET u = DEFAULT WHEN MATCHED THEN UPDATE SET u = u || 'x'
           WHEN NOT MATCHED AND k = 4 THEN INSERT (id, u) VALUES (k, 'given') WHEN NOT MATCHED THEN INSERT (id) VALUES (k)"""
    )
    found = filled(sql, "id IN (1, 5, 6)")
    assert len(set(found.values())) == 3
    assert sql.rows("SELECT id, u FROM t WHERE id IN (2, 3, 4) ORDER BY id") == [(2, "bx"), (3, "cx"), (4, "given")]


def test_a_statement_that_is_tried_again_returns_what_it_writes() -> None:
    store = MemoryStore()
    Session(Lake(store)).run("CREATE DATABASE d")
    Session(Lake(store)).run("CREATE TABLE d.t (id INT PRIMARY KEY NOT ENFORCED, u STRING DEFAULT uuid(), n INT)")
    for text in (
        "INSERT INTO d.t (id) VALUES (1), (2) RETURNING id, u",
        "UPDATE d.t SET u = DEFAULT RETURNING id, u",
        "INSERT INTO d.t (id) VALUES (7), (8) ON CONFLICT DO NOTHING RETURNING id, u",
    ):
        hooked = HookedStore(store)
        seen: list[str] = []
        hooked.when = lambda call, path: call == "put" and "manifest-list" in path
        hooked.after = lambda seen=seen: (
            seen.append("")
            or Lake(store)
            .table("d.t")
            .write([{"id": 100 + len(Lake(store).table("d.t").snapshots()), "u": "other", "n": 1}])
        )
        returned = dict(Session(Lake(hooked)).run(text).rows())
        assert seen
        stored = dict(Session(Lake(store)).run("SELECT id, u FROM d.t").rows())
        assert {key: stored[key] for key in returned} == returned


class TestDeclared:
    def test_in_an_option_and_never_as_a_literal(self, sql: SqlSession) -> None:
        sql.rows(APPEND)
        stored = json.loads(sql.store.get("d.db/t/schema/schema-0"))
        literal = {one["name"]: one["defaultValue"] for one in stored["fields"] if "defaultValue" in one}
        assert literal == {"v": "3"}
        assert stored["options"] == {
            OPTION.format("made"): "current_timestamp",
            OPTION.format("z"): "now()",
            OPTION.format("day"): "current_date + 1",
            OPTION.format("u"): "uuid()",
        }

    def test_shown(self, sql: SqlSession) -> None:
        sql.rows(APPEND)
        shown = {row[0]: row[4] for row in sql.rows("DESCRIBE t")}
        assert shown == {
            "id": None, "made": "current_timestamp", "z": "now()", "day": "current_date + 1", "u": "uuid()", "v": "3",
        }  # fmt: skip
        listed = sql.rows("SELECT column_name, column_default FROM information_schema.columns WHERE table_name = 't'")
        assert dict(listed) == shown | {"day": "(current_date + 1)"}
        assert {one["name"]: one["default"] for one in sql.lake.table("d.t").describe()["columns"]} == shown  # type: ignore[attr-defined]

    def test_made_again_by_what_is_shown(self, sql: SqlSession) -> None:
        sql.rows(
            """CREATE TABLE t (a INT DEFAULT CASE WHEN random() < 0.5 THEN 1 ELSE 2 END NOT NULL, b STRING DEFAULT (uuid() -- id
               ), c BOOLEAN DEFAULT (random() IN (1, 2)), "d e" BYTES DEFAULT X'FF' COMMENT 'it''s',
               f DATE DEFAULT CURRENT_DATE, g TIMESTAMP DEFAULT now() AT TIME ZONE 'Asia/Kolkata' + INTERVAL 2 DAYS,
               h DOUBLE DEFAULT -random(), i STRING DEFAULT uuid()::VARCHAR, j DECIMAL(4, 1) DEFAULT random()::DECIMAL(3, 1))"""
        )
        before = sql.lake.table("d.t").schema
        text = sql.rows("SHOW CREATE TABLE t")[0][0]
        assert "WITH" not in text
        sql.rows("DROP TABLE t", text)
        after = sql.lake.table("d.t").schema
        assert (after.fields, after.options) == (before.fields, before.options)
        assert len(after.options) == 9

    def test_changed(self, sql: SqlSession) -> None:
        sql.rows(APPEND, "INSERT INTO t (id) VALUES (1)")
        sql.rows("ALTER TABLE t ADD COLUMN w STRING DEFAULT 'x' || uuid() AFTER id", "INSERT INTO t (id) VALUES (2)")
        assert [row[1] is None for row in sql.rows("SELECT id, w FROM t ORDER BY id")] == [True, False]
        options = sql.lake.table("d.t").options
        assert options[OPTION.format("w")] == "'x' || uuid()"
        sql.rows("ALTER TABLE t RENAME COLUMN w TO x", "INSERT INTO t (id) VALUES (3)")
        assert sql.column("SELECT left(x, 1) FROM t WHERE id = 3") == ["x"]
        sql.rows("ALTER TABLE t ALTER COLUMN x SET DEFAULT 'plain'", "INSERT INTO t (id) VALUES (4)")
        assert sql.column("SELECT x FROM t WHERE id = 4") == ["plain"]
        assert OPTION.format("x") not in sql.lake.table("d.t").options
        sql.rows("ALTER TABLE t ALTER COLUMN x SET DEFAULT (uuid())", "INSERT INTO t (id) VALUES (5)")
        assert sql.lake.table("d.t").schema.field("x").default is None
        assert sql.column("SELECT length(x) FROM t WHERE id = 5") == [36]
        sql.rows("ALTER TABLE t ALTER COLUMN x DROP DEFAULT", "INSERT INTO t (id) VALUES (6)")
        assert sql.column("SELECT x FROM t WHERE id = 6") == [None]
        sql.rows("ALTER TABLE t DROP COLUMN u", "INSERT INTO t (id) VALUES (7)")
        assert OPTION.format("u") not in sql.lake.table("d.t").options
        sql.rows("ALTER TABLE t MODIFY x STRING DEFAULT uuid() COMMENT 'c'", "INSERT INTO t (id) VALUES (8)")
        assert sql.column("SELECT length(x) FROM t WHERE id = 8") == [36]

    def test_like_and_replace(self, sql: SqlSession) -> None:
        sql.rows(APPEND, "CREATE TABLE other LIKE t EXCLUDING OPTIONS", "INSERT INTO other (id) VALUES (1)")
        assert sql.rows("SELECT made, length(u) FROM other") == [(START, 36)]
        sql.rows("CREATE OR REPLACE TABLE other (id INT, k STRING DEFAULT uuid())", "INSERT INTO other (id) VALUES (1)")
        assert sql.column("SELECT length(k) FROM other") == [36]
        assert list(sql.lake.table("d.other").options) == [OPTION.format("k")]

    @pytest.mark.parametrize(
        ("column", "reason", "at"),
        [
            ("a INT DEFAULT 'x' || 'y'", "expected a value of type INT", "'x'"),
            ("a INT DEFAULT random()", "of type double", "random"),
            ("a INT DEFAULT b", "a default names no columns, found b", "b"),
            ("a INT DEFAULT (SELECT 1)", "takes no subquery", "(SELECT"),
            ("a STRING DEFAULT getenv('HOME')", "does not call getenv", "getenv"),
            ("a INT DEFAULT nextval('s')", "does not call nextval", "nextval"),
            ("a INT DEFAULT ?", "takes no parameter", "?"),
            ("a INT DEFAULT 1 +", "expected an expression", ")"),
            ("a INT DEFAULT (1", "expected a closing parenthesis", ""),
            ("a INT DEFAULT CASE WHEN TRUE THEN 1", "expected END|closing", ""),
            ("a INT DEFAULT", "expected a literal or an expression as the default", ")"),
            ("a INT DEFAULT uuid() UNIQUE", "expected a value of type INT", "uuid"),
            ("a STRING DEFAULT uuid() UNIQUE", "a table checks no UNIQUE columns", "UNIQUE"),
            ("a STRING DEFAULT uuid() uuid()", "expected", "uuid()"),
            ("a ARRAY<INT> DEFAULT [1]", "takes no default", "[1]"),
            ("a ROW<b INT> DEFAULT now()", "takes no default", "now"),
        ],
    )
    def test_refused(self, sql: SqlSession, column: str, reason: str, at: str) -> None:
        close = "" if at == "" else ")"
        sql.fails(f"CREATE TABLE t ({column}{close}", reason, at)

    def test_options_are_checked_alike(self, sql: SqlSession) -> None:
        sql.fails(
            f"CREATE TABLE t (a INT) WITH ('{OPTION.format('a')}' = 'getenv(1)')", "does not call", kind=InvalidError
        )
        sql.fails(f"CREATE TABLE t (a INT) WITH ('{OPTION.format('b')}' = '1')", "no column 'b'", kind=InvalidError)
        sql.rows("CREATE TABLE t (a INT)")
        sql.fails(
            f"ALTER TABLE t SET ('{OPTION.format('a')}' = 'uuid()')", "expected a value of type INT", kind=InvalidError
        )
        sql.rows(
            f"ALTER TABLE t SET ('{OPTION.format('a')}' = '1 + random()::INT * 0')", "INSERT INTO t DEFAULT VALUES"
        )
        assert sql.column("SELECT a FROM t") == [1]
        sql.fails("ALTER TABLE t ALTER COLUMN a SET DEFAULT uuid()", "expected a value of type INT", "uuid")

    def test_sequences_are_told_of_uuids(self, sql: SqlSession) -> None:
        sql.fails("CREATE SEQUENCE s", r"DEFAULT uuid\(\)", "SEQUENCE")


@pytest.mark.parametrize("zone", ["SELECT current_timestamp::TIMESTAMP", "SELECT localtimestamp"])
def test_the_session_sees_the_same_time(zone: str) -> None:
    """Without a clock of a test a default is the time that a query is told, whatever the machine's zone is."""
    sql = SqlSession()
    sql.rows("CREATE DATABASE d", "CREATE TABLE d.t (id INT, made TIMESTAMP DEFAULT current_timestamp)")
    before = sql.column(zone)[0]
    sql.rows("INSERT INTO d.t (id) VALUES (1)")
    after = sql.column(zone)[0]
    milli = dt.timedelta(milliseconds=1)
    assert before - milli <= sql.column("SELECT made FROM d.t")[0] <= after


HOSTILE = [
    "getenv('HOME')",
    "read_text('/etc/passwd')",
    "(SELECT 1)",
    "uuid()), evil STRING DEFAULT (uuid()",
    "1); COPY (SELECT 1) TO '/tmp/x'; SELECT (1",
    "sum(1)",
    "id",
    "'x' ||",
    "CAST('x' AS INT)",
    "(" * 1500 + "1" + ")" * 1500,
]


@pytest.mark.parametrize("text", HOSTILE)
def test_what_a_stranger_wrote(sql: SqlSession, text: str) -> None:
    """Reads go on, writes that need the default are refused, and no statement is made of it."""
    sql.rows("CREATE TABLE t (id INT, u STRING, n INT)", "INSERT INTO t VALUES (1, 'a', 1)")
    path = "d.db/t/schema/schema-0"
    schema = json.loads(sql.store.get(path))
    schema["options"][OPTION.format("u")] = text
    sql.store.put(path, json.dumps(schema).encode())
    assert sql.rows("SELECT * FROM t") == [(1, "a", 1)]
    for statement in (
        "INSERT INTO t (id) VALUES (2)",
        "INSERT INTO t VALUES (2, DEFAULT, 1)",
        "INSERT INTO t DEFAULT VALUES",
        "UPDATE t SET u = DEFAULT",
    ):
        sql.fails(statement, "default of column 'u'", kind=InvalidError)
    with pytest.raises(InvalidError, match="default of column 'u'"):
        sql.lake.table("d.t").write(pa.table({"id": pa.array([2], pa.int32())}))
    sql.rows("INSERT INTO t VALUES (2, 'b', 1)")
    assert len(sql.rows("SELECT * FROM t")) == 2
    created = sql.rows("SHOW CREATE TABLE t")[0][0]
    assert " DEFAULT " not in created.split("WITH")[0] or text == "CAST('x' AS INT)"
    assert sql.rows("DESCRIBE t")[1][4] == text
    assert len(sql.rows("SELECT column_name FROM information_schema.columns WHERE table_name = 't'")) == 3
    sql.rows("ALTER TABLE t ADD COLUMN more INT", "ALTER TABLE t ALTER COLUMN u DROP DEFAULT")
    sql.rows("INSERT INTO t (id) VALUES (3)")
