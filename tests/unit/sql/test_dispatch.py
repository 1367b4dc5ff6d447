import pytest

from lakelet import Lake
from lakelet.sql.dispatch import _STATEMENTS, keywords
from lakelet.sql.lexer.errors import SqlError
from lakelet.storage.memory import MemoryStore
from tests.unit.sql_session import SqlSession


@pytest.fixture
def lake() -> Lake:
    return Lake(MemoryStore())


@pytest.mark.parametrize("word", sorted(_STATEMENTS))
def test_every_statement_is_somebodys_to_run(lake: Lake, word: str) -> None:
    # The word alone is seldom a statement, but whoever runs it says so.
    try:
        lake.sql(word)
    except SqlError as error:
        assert "expected a statement" not in str(error)  # noqa: PT017


@pytest.mark.parametrize(
    "text", ["SELECT 1", "WITH x AS (SELECT 1) SELECT * FROM x", "VALUES (1)", "(SELECT 1)", "FROM (SELECT 1)"]
)
def test_queries_are_known_by_their_first_word(lake: Lake, text: str) -> None:
    assert lake.sql(text).rows() == [(1,)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELCT 1", "did you mean SELECT"),
        ("INSRT INTO t VALUES (1)", "did you mean INSERT"),
        ("1", "expected a statement"),
        ("'x'", "expected a statement"),
        ('"SELECT" 1', "expected a statement"),
    ],
)
def test_other_words_are_answered_with_what_is_alike(lake: Lake, text: str, message: str) -> None:
    with pytest.raises(SqlError, match=message) as caught:
        lake.sql(text)
    assert (caught.value.line, caught.value.column) == (1, 1)


def test_a_change_behind_common_tables_is_a_change(lake: Lake) -> None:
    lake.sql("CREATE TABLE t (a INT)")
    lake.sql("WITH x AS (SELECT 5 AS a) INSERT INTO t SELECT a FROM x")
    assert lake.sql("SELECT * FROM t").rows() == [(5,)]


def test_keywords_are_told_to_whoever_completes_them() -> None:
    assert {"SELECT", "CREATE", "MERGE", "CALL"} <= set(keywords())
    assert "(" not in keywords()


@pytest.mark.parametrize(
    ("text", "instead"),
    [
        ("BEGIN", "one INSERT or MERGE"),
        ("BEGIN TRANSACTION", "one INSERT or MERGE"),
        ("START TRANSACTION", "one INSERT or MERGE"),
        ("COMMIT", "committed when it has run"),
        ("END", "committed when it has run"),
        ("ROLLBACK", "CALL sys.rollback"),
        ("ABORT", "CALL sys.rollback"),
        ("SAVEPOINT a", "CALL sys.create_tag"),
        ("ATTACH 'x.duckdb'", "read_duckdb"),
        ("DETACH x", "DROP CATALOG"),
        ("INSTALL httpfs", "no extension of DuckDB is installed"),
        ("LOAD httpfs", "loaded by the query that needs it"),
        ("EXPORT DATABASE 'x'", "COPY … TO"),
        ("IMPORT DATABASE 'x'", "COPY … FROM"),
        ("VACUUM", "CALL sys.compact"),
        ("ANALYZE t", "CALL sys.analyze"),
        ("GRANT SELECT ON t TO u", "the store"),
        ("REPLACE INTO t VALUES (1)", "PRIMARY KEY"),
    ],
)
def test_statements_of_other_databases_say_what_to_do_instead(text: str, instead: str) -> None:
    with pytest.raises(SqlError, match=instead) as caught:
        SqlSession().rows(text)
    assert "did you mean" not in str(caught.value)
