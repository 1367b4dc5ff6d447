"""The target name of a statement, found among its tokens."""

import pytest

from lakelet.sql.lexer.word_reader import WordReader
from lakelet.sql.lexer.words import words_of
from lakelet.sql.temporary.target import target_of


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("INSERT INTO t VALUES (1)", ("t",)),
        ("INSERT OR REPLACE INTO temp.t SELECT 1", ("temp", "t")),
        ("INSERT OVERWRITE TABLE t SELECT 1", ("t",)),
        ("WITH a AS (SELECT 1), b AS (SELECT 2) INSERT INTO t FROM a", ("t",)),
        ("WITH a AS (SELECT 1) UPDATE temp.main.t SET x = 1", ("temp", "main", "t")),
        ("UPDATE t SET x = 1", ("t",)),
        ("DELETE FROM t", ("t",)),
        ("MERGE INTO t USING s ON true WHEN MATCHED THEN DELETE", ("t",)),
        ("TRUNCATE t", ("t",)),
        ("TRUNCATE TABLE t", ("t",)),
        ("ALTER TABLE IF EXISTS t ADD COLUMN x INT", ("t",)),
        ("DROP TABLE IF EXISTS t CASCADE", ("t",)),
        ("DROP VIEW t", ("t",)),
        ("COPY t (a) FROM 'x'", ("t",)),
        ("COMMENT ON TABLE t IS 'x'", ("t",)),
        ("COMMENT ON COLUMN t.a IS 'x'", ("t",)),
        ("COMMENT ON COLUMN temp.t.a IS 'x'", ("temp", "t")),
        ('UPDATE "update" SET x = 1', ("update",)),
        ("UPDATE table.t SET x = 1", ("table", "t")),
    ],
)
def test_found(text: str, parts: tuple[str, ...]) -> None:
    found = target_of(WordReader(text, words_of(text)))
    assert found is not None
    assert found.parts == parts


@pytest.mark.parametrize(
    "text", ["SELECT 1", "WITH a AS (SELECT 1) SELECT * FROM a", "SHOW TABLES", "COPY (FROM t) TO 'x'"]
)
def test_none(text: str) -> None:
    assert target_of(WordReader(text, words_of(text))) is None


def test_every_full_mention_is_the_table_itself() -> None:
    text = "UPDATE temp.t SET a = temp.t.b + x.temp.t + temp.main.T.c FROM temp.tt"
    words = words_of(text)
    found = target_of(WordReader(text, words))
    assert found is not None
    mentions = [text[start:end] for start, end, _ in found.edits(words, "t")]
    assert mentions == ["temp.t", "temp.t", "temp.main.T"]
