"""Statements that make no sense, or not the sense that was meant: real ones cut, mixed and stirred, and words at random."""

from __future__ import annotations

import random
from dataclasses import dataclass

from lakelet.errors import LakeletError
from lakelet.sql.lexer.words import words_of

# Statements of every kind, over tables `t` and `u` of the default database.
STATEMENTS = [
    "SELECT id, v, n FROM t WHERE n > 1 AND v LIKE 'a%' ORDER BY id LIMIT 3 OFFSET 1",
    "SELECT count(*) FROM t WHERE v = 'a' OR n BETWEEN 1.5 AND 3",
    "SELECT t.id, u.v FROM t LEFT JOIN u ON t.id = u.id AND u.n IN (1, 2, NULL) WHERE NOT t.n IS NULL",
    "WITH x AS (SELECT * FROM t WHERE day = DATE '2026-01-01') SELECT v, sum(n) AS s FROM x GROUP BY ALL HAVING count(*) > 0",
    "SELECT * FROM t FOR VERSION AS OF 1 AS a JOIN t TIMESTAMP AS OF '2030-01-01 00:00:00' b USING (id)",
    "SELECT id FROM t AT (VERSION => 1) UNION ALL SELECT id FROM u",
    "SELECT * FROM changes('t', 0, 1) WHERE _row_kind = '+I'",
    "SELECT snapshot_id, commit_kind FROM t$snapshots WHERE snapshot_id = 1",
    "SELECT * FROM t$files, sys.tables",
    "SELECT v, row_number() OVER (PARTITION BY n ORDER BY id) FROM t QUALIFY rank() OVER (ORDER BY id) = 1",
    "SELECT [1, 2, 3][1], {'a': 1}.a, CASE WHEN n > 1 THEN 'x' ELSE NULL END FROM t",
    "SELECT * FROM t WHERE id IN (SELECT id FROM u WHERE u.n = t.n) AND EXISTS (SELECT 1)",
    "PIVOT t ON v USING count(*)",
    "SUMMARIZE t",
    "EXPLAIN SELECT * FROM t WHERE id = 2",
    "CREATE TABLE c (id INT NOT NULL DEFAULT 1 COMMENT 'x', m MAP<STRING, ROW<a INT, b ARRAY<DECIMAL(10, 2)>>>, "
    "p STRING, PRIMARY KEY (id, p) NOT ENFORCED) PARTITIONED BY (p) WITH ('bucket' = '2')",
    "CREATE TABLE IF NOT EXISTS c AS SELECT * FROM t",
    "CREATE TABLE d LIKE t",
    "CREATE DATABASE other",
    "DROP TABLE IF EXISTS c",
    "DROP DATABASE IF EXISTS other CASCADE",
    "ALTER TABLE t ADD COLUMN extra ARRAY<INT> COMMENT 'more' AFTER id",
    "ALTER TABLE t ALTER COLUMN n TYPE DECIMAL(12, 2)",
    "ALTER TABLE t RENAME COLUMN v TO w",
    "ALTER TABLE u DROP COLUMN v",
    "ALTER TABLE t SET ('snapshot.num-retained.min' = '3')",
    "ALTER TABLE t RESET ('snapshot.num-retained.min')",
    "ALTER TABLE t RENAME TO renamed",
    "INSERT INTO t VALUES (7, 'x', 1.5, DATE '2026-02-01'), (8, NULL, DEFAULT, NULL)",
    "INSERT INTO t (id, v) SELECT id + 10, v FROM u",
    "INSERT OVERWRITE u PARTITION (v = 'a') SELECT 1, 2, 3",
    "UPDATE t SET v = upper(v), n = n + 1 WHERE id < 2",
    "DELETE FROM t WHERE id = 1 AND v IS NOT NULL",
    "INSERT INTO u AS x VALUES (1, 'a', DEFAULT), (9, 'b', 2), ON CONFLICT (id, v) DO UPDATE SET n = excluded.n WHERE x.n > 1 "
    "RETURNING *",
    "INSERT OR REPLACE INTO u BY NAME SELECT 1 AS id, 'a' AS v RETURNING u.id + 1 AS more",
    "UPDATE t SET (v, n) = (SELECT max(v), 1 FROM u), WHERE EXISTS (SELECT 1 FROM u WHERE u.id = t.id) RETURNING t, upper(v)",
    "MERGE INTO t USING u USING (id) WHEN MATCHED THEN UPDATE BY NAME WHEN NOT MATCHED THEN ERROR v "
    "WHEN NOT MATCHED BY SOURCE AND n > (SELECT 1) THEN DELETE RETURNING merge_action, * EXCLUDE (v)",
    "MERGE INTO t USING u ON t.id = u.id WHEN MATCHED AND u.n > 1 THEN UPDATE SET v = u.v "
    "WHEN NOT MATCHED THEN INSERT (id) VALUES (u.id)",
    "TRUNCATE TABLE u",
    "CREATE OR REPLACE TEMP TABLE tt (id INT PRIMARY KEY, v STRING DEFAULT 'a', n INT CHECK (n > 0))",
    "CREATE TEMP TABLE IF NOT EXISTS t (x, y) AS SELECT id, v FROM u WITH NO DATA",
    "CREATE OR REPLACE TEMP VIEW tv (a, b) AS SELECT t.id, tt.v FROM t JOIN temp.tt USING (id)",
    "WITH x AS (SELECT id, v FROM u) INSERT INTO tt BY NAME SELECT * FROM x ON CONFLICT DO UPDATE SET v = excluded.v RETURNING *",
    "UPDATE temp.tt SET v = tv.b FROM tv, u WHERE tv.a = temp.tt.id AND u.id = tt.id",
    "MERGE INTO tt USING t ON t.id = tt.id WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id, v) VALUES (t.id, t.v)",
    "SELECT * FROM tv, temp.main.tt, t WHERE tt.id = t.id",
    "DROP VIEW IF EXISTS temp.tv CASCADE",
    "SHOW TABLES IN `default` LIKE 't%'",
    "SHOW CREATE TABLE t",
    "SHOW PARTITIONS t",
    "SHOW TBLPROPERTIES t ('bucket')",
    "DESCRIBE EXTENDED t",
    "DESCRIBE SELECT 1 AS a",
    "USE `default`",
    "SET TimeZone = 'UTC'",
    "RESET TimeZone",
    "CALL sys.create_tag(`table` => 'default.t', tag => 'x', snapshot => 1)",
    "CALL sys.compact('default.t', compact_strategy => 'full')",
    "CALL sys.rollback('default.t', '1')",
    "CALL sys.expire_snapshots('default.t', retain_max => 5)",
    "CALL sys.create_branch('default.t', 'b')",
]
ODD = [
    *(
        "",
        "''",
        '""',
        "``",
        "'",
        '"',
        "`",
        "$$",
        "$1",
        "?",
        "$x",
        "/*",
        "*/",
        "--",
        ";",
        "\\",
        "\0",
        "\n",
        "\ufeff",
        "\u00a0",
    ),
    *(
        "é",
        "🦆",
        "\ud800",
        "'\ud800'",
        "x'0",
        "E'\\x",
        "E'\\U7FFFFFFF'",
        "U&'\\0041'",
        "0x",
        "1e",
        "1e999",
        "-1",
        "1..2",
        ".5.",
    ),
    *(
        "9" * 30,
        "9" * 400,
        "1_0",
        "'9999-99-99'",
        "DATE '0000-00-00'",
        "INTERVAL '1' DAY",
        "NULL",
        "DEFAULT",
        "*",
        "t.*",
        "t$",
    ),
    *(
        "t$branch_",
        "t$$files",
        "$files",
        "a.b.c.d",
        "::INT",
        "::NOTHING",
        "=>",
        ":=",
        "->",
        "||",
        "@",
        "#",
        "%",
        "^",
        "&",
        "~",
        "!",
    ),
    *(
        "(",
        ")",
        "()",
        "[",
        "]",
        "{",
        "}",
        "((",
        "))",
        "[]",
        "{}",
        "<",
        ">",
        "<>",
        "ARRAY<",
        "MAP<INT",
        "DECIMAL(99, 98)",
        "CHAR(0)",
    ),
    *(
        "FOR VERSION AS OF 1",
        "FOR TIMESTAMP AS OF 'x'",
        "AT (VERSION => 99)",
        "changes('t')",
        "changes('t', 99)",
        "sys.tables",
    ),
]

NUMBERS = ["0", "-1", "2", "3", "1.5", "1e999", "9" * 19, "9" * 40, "NULL", "'1'", "id", "(1 + 1)", "1::TINYINT", "$1"]
TEXTS = [
    "''",
    "'x'",
    "'a%'",
    "'nan'",
    "'2026-13-01'",
    "'default.u'",
    "'bucket'",
    "'1'",
    "1",
    "NULL",
    "'\0'",
    "DATE '2026-01-01'",
]
TEXTS += ["'" + "é" * 500 + "'", "X'00'", "now()", "[1]", "'t$branch_b'", "v", "{'a': 1}", "INTERVAL 1 DAY"]
NAMES = [
    "id",
    "v",
    "n",
    "day",
    "t",
    "u",
    "x",
    "nothing",
    "t$files",
    "t$audit_log",
    "`default`",
    "sys",
    '"a b"',
    "count",
    "extra",
    "w",
]
NAMES += [
    "t.id",
    "u.v",
    "default",
    "snapshot_id",
    "compact",
    "create_tag",
    "tag",
    "é",
    "_row_kind",
    "c",
    "renamed",
    "upper",
]


def vocabulary() -> list[str]:
    """The words of all statements."""
    return sorted({text[word.start : word.end] for text in STATEMENTS for word in words_of(text)})


@dataclass(slots=True)
class Soup:
    """Draws statements."""

    rng: random.Random

    def statement(self) -> str:
        """A statement that is probably wrong."""
        form = self.rng.randrange(10)
        if form == 0:
            words = vocabulary()
            return " ".join(self.rng.choice([*words, *ODD]) for _ in range(self.rng.randint(1, 12)))
        text = self.rng.choice(STATEMENTS)
        if form == 1:
            return text[: self.rng.randrange(len(text))]
        if form == 2:
            other = self.rng.choice(STATEMENTS)
            return text[: self.rng.randrange(len(text))] + " " + other[self.rng.randrange(len(other)) :]
        if form == 3:
            place = self.rng.randrange(len(text))
            return text[:place] + self.rng.choice(ODD) + text[place:]
        if form == 4:
            return self._nested(text)
        return self._stirred(text) if form == 5 else self._alike(text)

    def _alike(self, text: str) -> str:
        """Names for names, keywords for keywords, numbers for numbers: wrong by what it says, seldom by how it is written."""
        parts = [text[word.start : word.end] for word in words_of(text)]
        for place, word in enumerate(words_of(text)):
            if self.rng.random() > 0.15:
                continue
            if word.kind == "number":
                parts[place] = self.rng.choice(NUMBERS)
            elif word.kind == "string":
                parts[place] = self.rng.choice(TEXTS)
            elif word.kind == "word" and parts[place].islower():
                parts[place] = self.rng.choice(NAMES)
            elif word.kind == "word" and place and self.rng.random() < 0.3:
                parts[place] = self.rng.choice([one for one in vocabulary() if one.isupper()])
        return " ".join(parts)

    def _stirred(self, text: str) -> str:
        """Some words left out, doubled, swapped or replaced by others."""
        parts = [text[word.start : word.end] for word in words_of(text)]
        for _ in range(self.rng.randint(1, 3)):
            place = self.rng.randrange(len(parts))
            match self.rng.randrange(5):
                case 0 if len(parts) > 1:
                    del parts[place]
                case 1:
                    parts.insert(place, parts[self.rng.randrange(len(parts))])
                case 2:
                    other = self.rng.randrange(len(parts))
                    parts[place], parts[other] = parts[other], parts[place]
                case 3:
                    parts[place] = self.rng.choice(ODD)
                case _:
                    parts[place] = self.rng.choice(vocabulary())
        return " ".join(parts)

    def _nested(self, text: str) -> str:
        """Parentheses, and what else nests, many deep."""
        deep = self.rng.choice([3, 40, 400, 3000])
        inner = self.rng.choice(["1", "n", "n = 1", "NULL", "'x'", ""])
        opened, closed = self.rng.choice(
            [("(", ")"), ("NOT (", ")"), ("[", "]"), ("-(", ")"), ("CASE WHEN true THEN ", " END")]
        )
        value = opened * deep + inner + closed * self.rng.choice([deep, deep - 1])
        return self.rng.choice(
            [
                f"SELECT * FROM t WHERE {value}",
                f"SELECT count(*) FROM t WHERE n = {value}",
                f"SELECT {value}",
                f"INSERT INTO t (id) VALUES ({value})",
                f"UPDATE t SET n = {value}",
                f"DELETE FROM t WHERE {value}",
                f"SELECT * FROM t FOR VERSION AS OF {value}",
                f"CREATE TABLE e (a {'ARRAY<' * deep}INT{'>' * deep})",
                f"SELECT * FROM {'(SELECT * FROM ' * min(deep, 400)}t{')' * min(deep, 400)}",
                f"CALL sys.create_tag('t', {value})",
                text,
            ]
        )


def is_refusal(error: BaseException) -> bool:
    """Whether an error is one that a caller was meant to see."""
    return isinstance(error, LakeletError) and type(error).__name__ != "InternalError"
