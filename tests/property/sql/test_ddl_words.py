"""Statements with words left out, doubled, swapped or put in: they run or are refused, and nothing is half made."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from lakelet import Lake, LakeletError
from lakelet.errors import InternalError
from lakelet.sql.lexer.words import words_of
from lakelet.sql.session import Session
from lakelet.storage.memory import MemoryStore
from tests.tiers.examples import examples

SCRIPT = [
    "CREATE DATABASE shop",
    "CREATE TABLE shop.t (id INT, dt DATE, s VARCHAR(5) DEFAULT 'x' COMMENT 'c', r ROW<a INT, b ARRAY<INT>>) "
    "PARTITIONED BY (dt) WITH ('write-only' = 'true')",
    "CREATE TABLE shop.k (id INT, v MAP<STRING, INT>, PRIMARY KEY (id)) WITH ('bucket' = '1')",
]
STATEMENTS = [
    "CREATE TABLE IF NOT EXISTS shop.u (id INT PRIMARY KEY, d DECIMAL(5, 2) NOT NULL DEFAULT -1.5) COMMENT 'x' WITH (bucket = 1)",
    "CREATE TABLE shop.u (a INT [], b STRUCT (x VARCHAR), PRIMARY KEY (a) NOT ENFORCED) PARTITIONED BY (p STRING)",
    "CREATE TABLE shop.u LIKE shop.t (EXCLUDING OPTIONS)",
    "CREATE TABLE shop.u PARTITIONED BY (b) AS SELECT 1 AS a, 2 AS b",
    "CREATE DATABASE IF NOT EXISTS other",
    "DROP TABLE IF EXISTS shop.t PURGE",
    "DROP DATABASE shop CASCADE",
    "TRUNCATE TABLE shop.t PARTITION (dt = '2026-01-01')",
    "ALTER TABLE shop.t ADD COLUMNS (y INT FIRST, r.z STRING COMMENT 'x' AFTER a)",
    "ALTER TABLE shop.t ALTER COLUMN s TYPE STRING COMMENT 'y' FIRST, r.a TYPE BIGINT",
    "ALTER TABLE shop.t MODIFY (s STRING NOT NULL, id BIGINT AFTER s)",
    "ALTER TABLE shop.t CHANGE COLUMN s t STRING DEFAULT NULL",
    "ALTER TABLE shop.t RENAME COLUMN id TO number",
    "ALTER TABLE shop.t RENAME TO shop.u",
    "ALTER TABLE shop.t DROP COLUMNS (s, r.b)",
    "ALTER TABLE shop.t DROP IF EXISTS PARTITION (dt = DATE '2026-01-01'), PARTITION (dt = NULL)",
    "ALTER TABLE shop.t SET TBLPROPERTIES ('file.format' = 'orc', 'comment' = 'x')",
    "ALTER TABLE shop.t UNSET TBLPROPERTIES IF EXISTS ('write-only')",
    "ALTER TABLE shop.k ALTER COLUMN v.value TYPE BIGINT",
    "SHOW TABLES IN shop NOT LIKE 't%'",
    "SHOW CREATE TABLE shop.t",
    "SHOW PARTITIONS shop.t PARTITION (dt = '2026-01-01')",
    "SHOW TBLPROPERTIES shop.t ('write-only')",
    "SHOW COLUMNS FROM t IN shop LIKE 'x'",
    "DESCRIBE EXTENDED shop.t r.b.element",
    "DESCRIBE SELECT id FROM shop.t",
]
EXTRA = sorted(
    {word.text if word.kind != "string" else f"'{word.text}'" for text in STATEMENTS for word in words_of(text)}
    | {
        "(",
        ")",
        ",",
        ".",
        "<",
        ">",
        "[",
        "]",
        "'",
        '"',
        "`a``b`",
        "$1",
        "?",
        "-",
        "1e400",
        "99999999999999999999",
        "x'0g'",
        "é",
    }
)


@st.composite
def mangled(draw: st.DrawFn) -> str:
    text = draw(st.sampled_from(STATEMENTS))
    words = [text[word.start : word.end] for word in words_of(text)]
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.integers(0, max(len(words) - 1, 0)))
        match draw(st.sampled_from(["drop", "double", "swap", "insert", "replace"])):
            case "drop" if words:
                del words[place]
            case "double" if words:
                words.insert(place, words[place])
            case "swap" if words:
                other = draw(st.integers(0, len(words) - 1))
                words[place], words[other] = words[other], words[place]
            case "replace" if words:
                words[place] = draw(st.sampled_from(EXTRA))
            case _:
                words.insert(place, draw(st.sampled_from(EXTRA)))
    return " ".join(words)


def contents(store: MemoryStore) -> dict[str, bytes]:
    return {info.path: store.get(info.path) for info in store.list("")}


@settings(max_examples=examples(400), deadline=None)
@given(mangled())
def test_a_mangled_statement_runs_or_is_refused(text: str) -> None:
    store = MemoryStore()
    session = Session(Lake(store))
    for statement in SCRIPT:
        session.run(statement)
    before = contents(store)
    refused = None
    try:
        session.run(text).rows()
    except LakeletError as error:
        refused = error
    session.close()
    assert not isinstance(refused, InternalError)
    assert refused is None or contents(store) == before, refused
    for database in session.context.lake.databases():
        for table in session.context.lake.tables(database):
            assert session.context.lake.table(f"{database}.{table}").scan().count() >= 0
