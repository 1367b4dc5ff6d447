"""ALTER TABLE in the words of several engines, COMMENT ON and RENAME TABLE."""

import pyarrow as pa
import pytest

from lakelet import AlreadyExistsError, InvalidError, NotFoundError
from lakelet.model.schema import TableSchema
from lakelet.sql.context import Context
from lakelet.sql.lexer.word_reader import WordReader
from lakelet.sql.lexer.words import words_of
from lakelet.sql.statement import Statement
from lakelet.sql.statements.alter import run_comment, run_rename
from lakelet.storage.memory import MemoryStore
from tests.unit.hooked_store import HookedStore
from tests.unit.sql_session import SqlSession


@pytest.fixture
def sql() -> SqlSession:
    made = SqlSession()
    made.rows(
        "CREATE DATABASE d",
        """CREATE TABLE d.t (id INT NOT NULL, n INT DEFAULT 7, s VARCHAR(5) NOT NULL COMMENT 'text', p INT,
           r ROW<a INT COMMENT 'in', b ROW<c INT>>, l ARRAY<ROW<x INT>>, m MAP<STRING, INT>)
           COMMENT 'a table' PARTITIONED BY (p) WITH ('bucket' = '2', 'bucket-key' = 'id')""",
    )
    return made


def schema(sql: SqlSession) -> TableSchema:
    return sql.lake.table("d.t").schema


def types(sql: SqlSession) -> dict[str, str]:
    return {field.name: str(field.type) for field in schema(sql).fields}


class TestAdd:
    @pytest.mark.parametrize(
        ("action", "names"),
        [
            ("ADD z INT", "id n s p r l m z"),
            ("ADD COLUMN z INT FIRST", "z id n s p r l m"),
            ("ADD z INT AFTER N", "id n z s p r l m"),
            ("ADD (y INT, z STRING FIRST)", "z id n s p r l m y"),
            ("ADD COLUMNS (y INT AFTER id, z STRING AFTER y)", "id y z n s p r l m"),
            ("ADD COLUMNS y INT, z STRING", "id n s p r l m y z"),
            ("add column if not exists Z int", "id n s p r l m Z"),
            ("ADD COLUMN IF NOT EXISTS N INT", "id n s p r l m"),
            ("ADD primary INT", "id n s p r l m primary"),
        ],
    )
    def test_at_a_place(self, sql: SqlSession, action: str, names: str) -> None:
        sql.rows(f"ALTER TABLE d.t {action}")
        assert " ".join(schema(sql).names) == names
        assert schema(sql).id <= 1

    def test_with_a_default_and_a_comment(self, sql: SqlSession) -> None:
        assert sql.done("ALTER TABLE d.t ADD COLUMN z DECIMAL(4, 1) DEFAULT 1.5 COMMENT 'new'") == (
            "altered table d.t, schema 1"
        )
        field = schema(sql).field("z")
        assert (str(field.type), field.default, field.description) == ("DECIMAL(4, 1)", "1.5", "new")

    def test_inside_other_columns(self, sql: SqlSession) -> None:
        sql.rows(
            "ALTER TABLE d.t ADD COLUMN r.z INT AFTER A",
            "ALTER TABLE d.t ADD COLUMNS (R.B.e STRING FIRST, l.element.y INT COMMENT 'deep')",
        )
        assert types(sql)["r"] == "ROW<`a` INT, `z` INT, `b` ROW<`e` STRING, `c` INT>>"
        assert types(sql)["l"] == "ARRAY<ROW<`x` INT, `y` INT>>"

    @pytest.mark.parametrize(
        ("action", "reason", "at"),
        [
            ("ADD COLUMN N INT", "column 'N' exists", "N INT"),
            ("ADD COLUMNS (z INT, Z INT)", "column 'Z' exists", "Z INT"),
            ("ADD COLUMN z INT NOT NULL", "must be nullable", "z INT"),
            ("ADD COLUMN z INT AFTER nn", "column 'nn' is not there", "nn"),
            ("ADD COLUMN z INT DEFAULT 'x'", "expected a value of type INT", "'x'"),
            ("ADD COLUMN z INT PRIMARY KEY", "expected the end of the statement", "PRIMARY"),
            ("ADD COLUMN r.A INT", "column 'r.A' exists", "A INT"),
            ("ADD COLUMN q.z INT", "column 'q' is not there", "q.z"),
            ("ADD COLUMN n.z INT", "'n' is no ROW", "z INT"),
            ("ADD COLUMN r.z INT DEFAULT 1", "only a column of its own can have a default", "z INT"),
            ("ADD COLUMN z", "expected a type", ""),
            ("ADD COLUMN _ROW_ID INT", "is reserved", "_ROW_ID"),
            ("ADD", "expected the name of a column", ""),
            ("ADD PARTITION (p = 1)", "as soon as it has rows", "ADD"),
            ("ADD PRIMARY KEY (id)", "the primary key it was made with", "ADD"),
        ],
    )
    def test_refused(self, sql: SqlSession, action: str, reason: str, at: str) -> None:
        sql.fails(f"ALTER TABLE d.t {action}", reason, at)


class TestDrop:
    @pytest.mark.parametrize(
        ("action", "names"),
        [
            ("DROP n", "id s p r l m"),
            ("DROP COLUMN N", "id s p r l m"),
            ("DROP (n, s)", "id p r l m"),
            ("DROP COLUMNS (n, s)", "id p r l m"),
            ("DROP COLUMNS n, s, m", "id p r l"),
            ("DROP COLUMN IF EXISTS z", "id n s p r l m"),
            ("DROP COLUMN IF EXISTS n", "id s p r l m"),
        ],
    )
    def test_columns(self, sql: SqlSession, action: str, names: str) -> None:
        sql.rows(f"ALTER TABLE d.t {action}")
        assert " ".join(schema(sql).names) == names

    def test_inside_other_columns(self, sql: SqlSession) -> None:
        sql.rows("ALTER TABLE d.t DROP COLUMN r.a")
        assert types(sql)["r"] == "ROW<`b` ROW<`c` INT>>"

    @pytest.mark.parametrize(
        ("action", "reason", "at"),
        [
            ("DROP COLUMN z", "column 'z' is not there", "z"),
            ("DROP COLUMN p", "belongs to the partition key", "p"),
            ("DROP COLUMN id", "belongs to the bucket key", "id"),
            ("DROP COLUMNS (n, z)", "column 'z' is not there", "z)"),
            ("DROP COLUMN r.b.c", "the only one", "c"),
            ("DROP PRIMARY KEY", "the primary key it was made with", "DROP"),
            ("DROP CONSTRAINT x", "checks nothing else", "DROP"),
        ],
    )
    def test_refused(self, sql: SqlSession, action: str, reason: str, at: str) -> None:
        sql.fails(f"ALTER TABLE d.t {action}", reason, at)


class TestRenameColumn:
    def test_both_spellings(self, sql: SqlSession) -> None:
        sql.rows(
            "ALTER TABLE d.t RENAME COLUMN N TO m2", "ALTER TABLE d.t RENAME s TO S", "ALTER TABLE d.t RENAME r.a TO z"
        )
        assert " ".join(schema(sql).names) == "id m2 S p r l m"
        assert types(sql)["r"].startswith("ROW<`z` INT")

    def test_a_column_called_to(self, sql: SqlSession) -> None:
        sql.rows("ALTER TABLE d.t ADD to INT", "ALTER TABLE d.t RENAME to TO upto")
        assert "upto" in schema(sql).names

    def test_refused(self, sql: SqlSession) -> None:
        sql.fails("ALTER TABLE d.t RENAME COLUMN nn TO z", "column 'nn' is not there", "nn")
        sql.fails("ALTER TABLE d.t RENAME COLUMN n TO S", "column 'S' exists", "S")
        sql.fails("ALTER TABLE d.t RENAME COLUMN p TO z", "belongs to the partition key", "p TO")
        sql.fails("ALTER TABLE d.t RENAME COLUMN n z", "expected TO, found z", "z")


class TestChange:
    @pytest.mark.parametrize(
        ("action", "column", "type_"),
        [
            ("ALTER COLUMN n TYPE BIGINT", "n", "BIGINT"),
            ("ALTER n SET DATA TYPE BIGINT", "n", "BIGINT"),
            ("ALTER COLUMN s TYPE STRING", "s", "STRING NOT NULL"),
            ("ALTER COLUMN s DROP NOT NULL", "s", "VARCHAR(5)"),
            ("MODIFY n BIGINT", "n", "BIGINT"),
            ("MODIFY COLUMN s STRING NOT NULL", "s", "STRING NOT NULL"),
            ("MODIFY s VARCHAR(5)", "s", "VARCHAR(5)"),
            ("MODIFY (n DOUBLE, s STRING)", "s", "STRING"),
            ("CHANGE COLUMN n n BIGINT", "n", "BIGINT"),
            ("CHANGE n k BIGINT COMMENT 'x' FIRST", "k", "BIGINT"),
            ("ALTER COLUMN r.b.c TYPE BIGINT", "r", "ROW<`a` INT, `b` ROW<`c` BIGINT>>"),
            (
                "ALTER COLUMN r TYPE STRUCT<a: BIGINT, z: INT, b: ROW<c INT>>",
                "r",
                "ROW<`a` BIGINT, `z` INT, `b` ROW<`c` INT>>",
            ),
            ("ALTER COLUMN m TYPE MAP<STRING, BIGINT>", "m", "MAP<STRING, BIGINT>"),
            ("ALTER COLUMN m.value TYPE BIGINT", "m", "MAP<STRING, BIGINT>"),
            ("MODIFY l.element ROW<x INT, y DATE>", "l", "ARRAY<ROW<`x` INT, `y` DATE>>"),
        ],
    )
    def test_types(self, sql: SqlSession, action: str, column: str, type_: str) -> None:
        sql.rows(f"ALTER TABLE d.t {action}")
        assert types(sql)[column] == type_
        assert schema(sql).id == 1

    def test_everything_else_stays(self, sql: SqlSession) -> None:
        before = schema(sql).field("s")
        sql.rows("ALTER TABLE d.t MODIFY s STRING NOT NULL")
        after = schema(sql).field("s")
        assert (after.id, after.description) == (before.id, "text")
        assert schema(sql).field("n").default == "7"

    def test_defaults_and_comments(self, sql: SqlSession) -> None:
        sql.rows("ALTER TABLE d.t ALTER COLUMN n SET DEFAULT -8", "ALTER TABLE d.t ALTER COLUMN r.a COMMENT 'deeper'")
        assert schema(sql).field("n").default == "-8"
        assert "COMMENT 'deeper'" in sql.column("SHOW CREATE TABLE d.t")[0]
        sql.rows("ALTER TABLE d.t ALTER n DROP DEFAULT", "ALTER TABLE d.t MODIFY COLUMN n COMMENT 'number'")
        assert (schema(sql).field("n").default, schema(sql).field("n").description) == (None, "number")

    def test_places(self, sql: SqlSession) -> None:
        sql.rows("ALTER TABLE d.t ALTER COLUMN n FIRST", "ALTER TABLE d.t MODIFY s VARCHAR(5) NOT NULL AFTER M")
        assert " ".join(schema(sql).names) == "n id p r l m s"
        sql.rows("ALTER TABLE d.t CHANGE COLUMN r.b FIRST")
        assert types(sql)["r"] == "ROW<`b` ROW<`c` INT>, `a` INT>"

    def test_several_columns_are_one_version(self, sql: SqlSession) -> None:
        sql.rows("ALTER TABLE d.t ALTER COLUMN n TYPE BIGINT COMMENT 'wide' FIRST, s TYPE STRING")
        assert schema(sql).id == 1
        assert (schema(sql).names[0], types(sql)["s"]) == ("n", "STRING NOT NULL")

    def test_a_change_that_changes_nothing(self, sql: SqlSession) -> None:
        assert sql.done("ALTER TABLE d.t MODIFY n INT") == "table d.t stays as it is"
        assert schema(sql).id == 0

    @pytest.mark.parametrize(
        ("action", "reason", "at"),
        [
            ("ALTER COLUMN n TYPE SMALLINT", "only a type that holds every INT value", "SMALLINT"),
            ("ALTER COLUMN n TYPE BIGINTT", "did you mean BIGINT", "BIGINTT"),
            ("ALTER COLUMN n TYPE BIGINT USING n + 1", "without an expression", "USING"),
            ("ALTER COLUMN n SET NOT NULL", "cannot become NOT NULL: rows may hold NULL", "SET"),
            ("MODIFY n INT NOT NULL", "cannot become NOT NULL", "n INT"),
            ("MODIFY (n BIGINT, z INT)", "column 'z' is not there", "z INT"),
            ("MODIFY (n BIGINT, s INT)", "cannot change from VARCHAR", "s INT"),
            ("ALTER COLUMN z TYPE INT", "column 'z' is not there", "z TYPE"),
            ("ALTER COLUMN r.q TYPE INT", "column 'q' is not there", "q TYPE"),
            ("ALTER COLUMN n SET DEFAULT 'x'", "expected a value of type INT", "'x'"),
            ("ALTER COLUMN n SET DEFAULT a + 1", "a default names no columns, found a", "a + 1"),
            ("ALTER COLUMN r.a SET DEFAULT 1", "only a column of its own", "1"),
            ("ALTER COLUMN n AFTER n", "cannot be moved after itself", "n"),
            ("ALTER COLUMN n AFTER nn", "column 'nn' is not there", "nn"),
            ("ALTER COLUMN n SET x", "expected DATA TYPE, NOT NULL or DEFAULT", "x"),
            ("ALTER COLUMN n DROP x", "expected NOT NULL or DEFAULT", "x"),
            ("ALTER COLUMN n", "expected TYPE, SET NOT NULL", ""),
            ("ALTER COLUMN n BIGINT", "expected TYPE, SET NOT NULL", "BIGINT"),
            ("ALTER COLUMN p TYPE BIGINT", "belongs to the partition key", "BIGINT"),
            ("ALTER COLUMN m.key TYPE BYTES", "the type of its keys must stay", "BYTES"),
            ("ALTER COLUMN m.value SET NOT NULL", "cannot become NOT NULL", "SET"),
            ("ALTER COLUMN l.x TYPE BIGINT", "column 'x' is not there; there are element", "x TYPE"),
            ("ALTER COLUMN n TYPE BIGINT junk", "expected the end of the statement", "junk"),
            ("CHANGE n a.b BIGINT", "has one part", "a.b"),
            ("FROBNICATE n", "expected ADD, DROP, RENAME", "FROBNICATE"),
        ],
    )
    def test_refused(self, sql: SqlSession, action: str, reason: str, at: str) -> None:
        sql.fails(f"ALTER TABLE d.t {action}", reason, at)

    def test_rows_are_read_after_changes_inside(self, sql: SqlSession) -> None:
        table = sql.lake.table("d.t")
        row = {"id": 1, "s": "x", "p": 1, "r": {"a": 1, "b": {"c": 2}}, "l": [{"x": 3}], "m": [("k", 4)]}
        table.write([row])
        sql.rows(
            "ALTER TABLE d.t ALTER COLUMN r TYPE ROW<a BIGINT, z STRING, b ROW<c DOUBLE, e INT>>",
            "ALTER TABLE d.t ALTER COLUMN l TYPE ARRAY<ROW<x BIGINT, y INT>>",
            "ALTER TABLE d.t ALTER COLUMN m TYPE MAP<STRING, DECIMAL(12, 1)>",
        )
        table.write([{"id": 2, "s": "y", "p": 1, "r": {"a": 2**40, "z": "z", "b": {"c": 0.5, "e": 1}}}])
        found = table.scan(["id", "r", "l", "m"]).to_arrow().sort_by("id").to_pylist()
        assert found[0]["r"] == {"a": 1, "z": None, "b": {"c": 2.0, "e": None}}
        assert (found[0]["l"], [(key, int(value)) for key, value in found[0]["m"]]) == (
            [{"x": 3, "y": None}],
            [("k", 4)],
        )
        assert found[1]["r"] == {"a": 2**40, "z": "z", "b": {"c": 0.5, "e": 1}}
        assert sql.rows("SELECT r.b.e, l[1].x FROM d.t ORDER BY id") == [(None, 3), (1, None)]


class TestOptions:
    def test_set_and_reset(self, sql: SqlSession) -> None:
        sql.rows("ALTER TABLE d.t SET ('file.format' = 'orc', 'write-only' = 'true')")
        sql.rows("ALTER TABLE d.t SET TBLPROPERTIES ('comment' = 'new', 'target-file-size' = '1 mb')")
        sql.rows("ALTER TABLE d.t SET OPTIONS (bucket = 3)")
        assert schema(sql).comment == "new"
        assert schema(sql).options == {
            "bucket": "3",
            "bucket-key": "id",
            "file.format": "orc",
            "write-only": "true",
            "target-file-size": "1 mb",
        }
        sql.rows("ALTER TABLE d.t RESET ('file.format', 'comment')")
        sql.rows("ALTER TABLE d.t UNSET TBLPROPERTIES IF EXISTS ('write-only', 'nonsense')")
        sql.rows("ALTER TABLE d.t UNSET TBLPROPERTIES ('target-file-size', 'num-levels')")
        assert schema(sql).options == {"bucket": "3", "bucket-key": "id"}
        assert schema(sql).comment is None

    @pytest.mark.parametrize(
        ("action", "reason", "at"),
        [
            ("SET ('bukket' = '3')", "did you mean 'bucket'", "'bukket'"),
            ("SET ('write-only' = 'true', 'bucket' = 'x')", "option 'bucket'", "'bucket'"),
            ("SET ('bucket' = NULL)", "cannot be NULL", "'bucket'"),
            ("SET ('primary-key' = 'id')", "cannot be changed afterwards", "("),
            ("SET ('path' = 'x')", "cannot be changed afterwards", "("),
            ("SET bucket = 3", "expected options in parentheses", "bucket"),
            ("SET LOCATION 'x'", "follows from its name", "SET"),
            ("RESET ('bukket')", "option 'bukket' is not set; did you mean bucket", "'bukket'"),
            ("RESET ('bucket-key')", "'bucket-key' must name", "'bucket-key'"),
            ("RESET", "expected the names of options", ""),
        ],
    )
    def test_refused(self, sql: SqlSession, action: str, reason: str, at: str) -> None:
        sql.fails(f"ALTER TABLE d.t {action}", reason, at)

    def test_what_is_fixed_once_there_are_rows(self, sql: SqlSession) -> None:
        sql.lake.table("d.t").write([{"id": 1, "s": "x", "p": 1}])
        sql.fails("ALTER TABLE d.t SET ('bucket-key' = 'n')", "cannot be changed on a live table")

    def test_comments_of_tables(self, sql: SqlSession) -> None:
        sql.rows("ALTER TABLE d.t COMMENT 'hello'")
        assert schema(sql).comment == "hello"


class TestRenameTable:
    def test_in_its_database_or_into_another(self, sql: SqlSession) -> None:
        sql.rows("CREATE DATABASE e")
        assert sql.done("ALTER TABLE d.t RENAME TO u") == "renamed table d.t to d.u"
        assert sql.done("ALTER TABLE D.U RENAME TO E.v") == "renamed table d.u to e.v"
        assert sql.done("ALTER TABLE e.v RENAME TO V") == "renamed table e.v to e.V"
        assert (sql.lake.tables("d"), sql.lake.tables("e")) == ([], ["V"])

    def test_refused(self, sql: SqlSession) -> None:
        sql.rows("CREATE TABLE d.u (a INT)")
        sql.fails("ALTER TABLE d.t RENAME TO u", r"table 'd\.u' exists", kind=AlreadyExistsError)
        sql.fails("ALTER TABLE d.t RENAME TO U", r"table 'd\.u' exists", kind=AlreadyExistsError)
        sql.fails("ALTER TABLE d.t$branch_x RENAME TO v", "CALL sys.rename_branch", "TO v")
        sql.fails("ALTER TABLE d.t RENAME TO dd.u", "database 'dd'", kind=NotFoundError)
        sql.fails("ALTER TABLE d.t RENAME TO `a/b`", "table name 'a/b'", "`a/b`")
        sql.fails("ALTER TABLE d.t RENAME TO x$files", "no name of a table", "x$files")
        sql.fails("ALTER TABLE d.z RENAME TO u", r"table 'd\.z' is not in", kind=NotFoundError)
        sql.fails("ALTER TABLE d.t RENAME PARTITION (p = 1) TO PARTITION (p = 2)", "those of its rows", "RENAME")
        assert sql.done("ALTER TABLE IF EXISTS d.z RENAME TO u") == "table d.z does not exist"

    def test_as_a_statement_of_its_own(self, sql: SqlSession) -> None:
        result = run_rename(Context(sql.lake), statement("RENAME TABLE d.t TO u"))
        assert result.message == "renamed table d.t to d.u"


class TestCommentOn:
    def test_tables_and_columns(self, sql: SqlSession) -> None:
        context = Context(sql.lake)
        run_comment(context, statement("COMMENT ON TABLE d.t IS 'one'"))
        run_comment(context, statement("COMMENT ON COLUMN d.t.n IS 'two'"))
        run_comment(context, statement("COMMENT ON COLUMN d.t.r.a IS NULL"))
        assert (schema(sql).comment, schema(sql).field("n").description) == ("one", "two")
        assert "COMMENT 'in'" not in sql.column("SHOW CREATE TABLE d.t")[0]
        context.database = "d"
        run_comment(context, statement("COMMENT ON COLUMN t.n IS NULL"))
        run_comment(context, statement("COMMENT ON TABLE t IS NULL"))
        assert (schema(sql).comment, schema(sql).field("n").description) == (None, None)

    def test_refused(self, sql: SqlSession) -> None:
        context = Context(sql.lake)
        for text, reason in (
            ("COMMENT ON COLUMN n IS 'x'", "expected table.column"),
            ("COMMENT ON COLUMN d.t.nn IS 'x'", "column 'nn' is not there"),
            ("COMMENT ON TABLE d.t IS 5", "expected a text in quotes"),
        ):
            with pytest.raises(InvalidError, match=reason):
                run_comment(context, statement(text))
        with pytest.raises(NotFoundError, match=r"database 'a' is not in"):
            run_comment(context, statement("COMMENT ON COLUMN a.b.c IS 'x'"))


def statement(text: str) -> Statement:
    return Statement(WordReader(text, words_of(text)))


class TestDropPartition:
    @pytest.fixture
    def parts(self, sql: SqlSession) -> SqlSession:
        sql.lake.table("d.t").write([{"id": number, "s": "x", "p": number % 4 or None} for number in range(8)])
        return sql

    def test_one_or_several_in_one_commit(self, parts: SqlSession) -> None:
        table = parts.lake.table("d.t")
        snapshots = len(table.snapshots())
        assert parts.done("ALTER TABLE d.t DROP PARTITION (p = 1), PARTITION (P = '2')") == (
            "dropped 2 partitions of table d.t"
        )
        assert len(table.snapshots()) == snapshots + 1
        assert parts.column("SHOW PARTITIONS d.t") == ["p=3", "p=__DEFAULT_PARTITION__"]
        parts.rows("ALTER TABLE d.t DROP PARTITION (p = '__DEFAULT_PARTITION__')")
        assert parts.column("SELECT DISTINCT p FROM d.t") == [3]
        assert table.scan(version=snapshots).count() == 8

    def test_those_that_are_not_there(self, parts: SqlSession) -> None:
        parts.fails(
            "ALTER TABLE d.t DROP PARTITION (p = 1), PARTITION (p = 9)", "no partition p = 9", kind=NotFoundError
        )
        assert parts.done("ALTER TABLE d.t DROP IF EXISTS PARTITION (p = 1), PARTITION (p = 9)") == (
            "dropped 1 partition of table d.t"
        )
        parts.fails("ALTER TABLE d.t DROP PARTITION (q = 1)", "'q' is no partition column", "q")
        parts.fails("ALTER TABLE d.t DROP PARTITION (p = 1) junk", "expected the end of the statement", "junk")


class TestTables:
    def test_a_branch_alone(self, sql: SqlSession) -> None:
        table = sql.lake.table("d.t")
        table.write([{"id": 1, "s": "x", "p": 1}])
        table.tags.create("now")
        table.branches.create("dev", tag="now")
        assert sql.done("ALTER TABLE d.t$branch_dev ADD COLUMN z INT") == "altered table d.t$branch_dev, schema 1"
        assert "z" in table.on_branch("dev").schema.names
        assert "z" not in schema(sql).names

    def test_missing_or_no_table_at_all(self, sql: SqlSession) -> None:
        sql.fails("ALTER TABLE d.tt ADD z INT", "did you mean t", kind=NotFoundError)
        assert sql.done("ALTER TABLE IF EXISTS d.tt ADD z INT") == "table d.tt does not exist"
        sql.fails("ALTER TABLE d.t$files ADD z INT", "names a system table", "d.t")
        sql.fails("ALTER DATABASE d SET ('a' = 'b')", "expected TABLE, found DATABASE", "DATABASE")
        sql.fails("ALTER TABLE", "expected the name of a table", "")

    def test_two_changes_at_once_both_stand(self) -> None:
        inner = MemoryStore()
        other = SqlSession(inner)
        other.rows("CREATE DATABASE d", "CREATE TABLE d.t (id INT)")
        store = HookedStore(inner)
        store.when = lambda call, path: call == "get" and path.endswith("/schema-0")
        store.after = lambda: other.rows("ALTER TABLE d.t ADD COLUMN theirs INT AFTER id")
        SqlSession(store).rows("ALTER TABLE d.t ADD COLUMN ours INT AFTER id")
        assert other.lake.table("d.t").schema.names == ("id", "ours", "theirs")

    def test_a_column_that_another_added_meanwhile(self) -> None:
        inner = MemoryStore()
        other = SqlSession(inner)
        other.rows("CREATE DATABASE d", "CREATE TABLE d.t (id INT)")
        store = HookedStore(inner)
        store.when = lambda call, path: call == "get" and path.endswith("/schema-0")
        store.after = lambda: other.rows("ALTER TABLE d.t ADD COLUMN z INT")
        with pytest.raises(InvalidError, match="column 'z' exists"):
            SqlSession(store).rows("ALTER TABLE d.t ADD COLUMNS (y INT, z INT)")
        assert other.lake.table("d.t").schema.names == ("id", "z")


def test_an_option_of_another_engine_is_shown_and_taken_away() -> None:
    sql = SqlSession()
    sql.rows("CREATE DATABASE d", "CREATE TABLE d.t (a INT)")
    path = "d.db/t/schema/schema-0"
    sql.store.put(
        path, sql.store.get(path).replace(b'"options": {}', b'"options": {"bucket-function.type": "mod", "of": "x"}')
    )
    sql.fails("SELECT * FROM d.t", "'bucket-function.type' = 'mod' is not supported", kind=InvalidError)
    assert sql.rows("SHOW TBLPROPERTIES d.t") == [("bucket-function.type", "mod"), ("of", "x")]
    assert "'of' = 'x'" in sql.column("SHOW CREATE TABLE d.t")[0]
    assert sql.column("DESCRIBE d.t") == ["a"]
    sql.rows("ALTER TABLE d.t RESET ('bucket-function.type', 'of')")
    assert sql.rows("SELECT * FROM d.t") == []


def test_keys_keep_their_nullability_when_redefined() -> None:
    sql = SqlSession()
    sql.rows(
        "CREATE DATABASE d", "CREATE TABLE d.t (k INT PRIMARY KEY, v INT)", "ALTER TABLE d.t MODIFY k INT COMMENT 'key'"
    )
    assert types(sql)["k"] == "INT NOT NULL"
    sql.fails("ALTER TABLE d.t MODIFY k BIGINT", "belongs to the primary key", "k BIGINT")
    sql.fails("ALTER TABLE d.t ALTER COLUMN k DROP NOT NULL", "belongs to the primary key", "DROP")
    sql.rows("ALTER TABLE d.t RENAME k TO key")
    assert sql.lake.table("d.t").schema.primary_keys == ("key",)
    sql.lake.table("d.t").write(pa.table({"key": [1], "v": [2]}))
    assert sql.rows("SELECT * FROM d.t") == [(1, 2)]
