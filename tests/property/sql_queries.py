"""Random queries over random tables: a text for the lake and one for DuckDB, which differ in how versions are named."""

from __future__ import annotations

import datetime as dt
import random
from dataclasses import dataclass, field
from decimal import Decimal

from tests.property.sql_tables import TEXTS, Source

# Literals of each DuckDB type, and values for parameters in their place.
_NUMBERS = ["-1", "0", "1", "2", "3", "1.5", "2.0", "1e0", "'2'", "3000000000", "-0.5"]
_FLOATS = ["0", "-0.0", "1.5", "0.1", "'nan'", "'inf'", "CAST('nan' AS DOUBLE)", "2", "-1.5e0", "0.25"]
_MOMENTS = ["'2024-01-01 12:00:00'", "'2024-01-01'", "'2024-01-01 12:00:00.000001'", "'2023-06-01 00:00:00'"]
LITERALS = {
    "INTEGER": _NUMBERS,
    "BIGINT": _NUMBERS,
    "DOUBLE": _FLOATS,
    "FLOAT": _FLOATS,
    "VARCHAR": ["'" + text.replace("'", "''") + "'" for text in TEXTS],
    "DECIMAL": ["0", "1", "1.01", "1.005", "-1.0100", "2.5", "'1.01'", "1e0", "99999999.99", "100000000"],
    "DATE": ["DATE '2024-01-01'", "'2024-01-01'", "'2023-12-31'::DATE", "TIMESTAMP '2024-01-01 12:00:00'"],
    "TIMESTAMP": [*_MOMENTS, "TIMESTAMP '2024-01-01 12:00:00'", "DATE '2024-01-01'", "'2024-01-02'::DATE"],
    "TIMESTAMPTZ": [*_MOMENTS, "TIMESTAMPTZ '2024-01-01 12:00:00+00'", "'2024-01-01 13:00:00+01:00'"],
    "BOOLEAN": ["true", "false", "'true'"],
}
VALUES: dict[str, list[object]] = {
    "INTEGER": [0, 1, 2, -1, 1.5, Decimal("2.0"), True, 2**40, "3"],
    "BIGINT": [0, 1, 2, -1, 1.5, Decimal("2.0"), 2**70, "3"],
    "DOUBLE": [0.0, 1.5, float("nan"), float("inf"), 2, Decimal("0.1")],
    "FLOAT": [0.0, 1.5, float("nan"), 2, Decimal("0.25")],
    "VARCHAR": list(TEXTS),
    "DECIMAL": [Decimal("1.01"), Decimal("1.005"), 1, 2.5, "1.01"],
    "DATE": [dt.date(2024, 1, 1), "2024-01-01", dt.datetime(2024, 1, 1, 12)],
    "TIMESTAMP": [dt.datetime(2024, 1, 1, 12), dt.date(2024, 1, 1), "2024-01-01 12:00:00"],
    "TIMESTAMPTZ": [dt.datetime(2024, 1, 1, 12, tzinfo=dt.UTC), dt.datetime(2024, 1, 1, 12), "2024-01-01"],
    "BOOLEAN": [True, False],
}
# Shapes of queries, and how often they come. Several uses of tables are where pruning goes wrong.
_FORMS = {"rows": 2, "count": 2, "limit": 1, "group": 1, "join": 4, "nested": 3, "union": 2, "window": 1}
_SIGNS = ["=", "<>", "<", "<=", ">", ">=", "=", "=="]


@dataclass(frozen=True, slots=True)
class Column:
    """A column in reach: as it is written, and its type."""

    text: str
    kind: str


@dataclass(frozen=True, slots=True)
class RandomQuery:
    """A query in both spellings. `ordered` where the rows come in a known order, `part_of` where they are any rows of another
    query, of which there must be as many as DuckDB gives."""

    ours: str
    theirs: str
    params: dict[str, object]
    ordered: bool = False
    part_of: str | None = None


@dataclass(slots=True)
class QueryMaker:
    """Draws queries."""

    rng: random.Random
    sources: list[Source]
    params: dict[str, object] = field(default_factory=dict)
    _used: list[Source] = field(default_factory=list)
    _aliases: int = 0

    def query(self) -> RandomQuery:
        """A query of any shape."""
        self.params, self._used, self._aliases = {}, [], 0
        form = self.rng.choices(list(_FORMS), weights=list(_FORMS.values()))[0]
        ordered, part = False, None
        match form:
            case "count":
                text = self._count()
            case "limit":
                text, part = self._limit()
            case "group":
                text = self._group()
            case "join":
                text = self._join()
            case "nested":
                text = self._nested()
            case "union":
                text = self._union()
            case "window":
                text = self._window()
            case _:
                text, ordered = self._rows()
        return RandomQuery(
            self._spelled(text, ours=True),
            self._spelled(text, ours=False),
            {name: value for name, value in self.params.items() if f"${name}" in text},
            ordered,
            self._spelled(part, ours=False) if part else None,
        )

    # ------------------------------------------------------------------ shapes

    def _rows(self) -> tuple[str, bool]:
        source, columns = self._source()
        distinct = self.rng.choice(["", "", "", "DISTINCT "])
        chosen = self.rng.sample(columns, self.rng.randint(1, len(columns)))
        listed = self.rng.choice(["*", ", ".join(one.text for one in chosen)])
        text = f"SELECT {distinct}{listed} FROM {source}{self._where(columns)}"
        if self.rng.random() < 0.4:
            limit = self.rng.choice(["", " LIMIT 3", " LIMIT 5 OFFSET 2", " LIMIT 0", " LIMIT 50%", " OFFSET 1"])
            return f"{text} ORDER BY ALL{self.rng.choice(['', ' DESC'])}{limit}", True
        return text, False

    def _count(self) -> str:
        source, columns = self._source()
        counted = self.rng.choice(["count(*)", "count(*)", "count(*) AS c", "count()", "count(*) FILTER (id > 2)"])
        if columns and self.rng.random() < 0.3:
            one = self.rng.choice(columns).text
            counted = self.rng.choice([f"count({one})", f"count(DISTINCT {one})", f"min({one}), max({one})"])
        return f"SELECT {counted} FROM {source}{self._where(columns, sure=0.8)}"

    def _limit(self) -> tuple[str, str]:
        """Any rows, as many as asked for."""
        source, columns = self._source()
        chosen = self.rng.choice(["*", *(one.text for one in columns)])
        where = self._where(columns, sure=0.2)
        limit = self.rng.choice(
            ["LIMIT 1", "LIMIT 4", "LIMIT 0", "LIMIT 3 OFFSET 2", "LIMIT 100", "OFFSET 3", "LIMIT 20%"]
        )
        whole = f"SELECT {chosen} FROM {source}{where}"
        return f"{whole} {limit}", whole

    def _group(self) -> str:
        source, columns = self._source()
        keys = [one.text for one in self.rng.sample(columns, self.rng.randint(0, 2))]
        numbers = [one.text for one in columns if one.kind in ("INTEGER", "BIGINT")] or ["1"]
        number = self.rng.choice(numbers)
        aggregates = self.rng.sample(
            [
                "count(*) AS c",
                f"sum({number})",
                f"avg({number})",
                f"min({number})",
                f"max({number})",
                f"list({number} ORDER BY {number})",
                f"count(DISTINCT {number})",
                f"bool_and({number} > 0)",
            ],
            2,
        )
        text = f"SELECT {', '.join([*keys, *aggregates])} FROM {source}{self._where(columns)}"
        if keys:
            text += self.rng.choice(
                [
                    " GROUP BY ALL",
                    f" GROUP BY {', '.join(keys)}",
                    f" GROUP BY ROLLUP ({keys[0]}" + "".join(f", {key}" for key in keys[1:]) + ")",
                ]
            )
        return text + (self.rng.choice(["", " HAVING count(*) > 1"]) if keys else "")

    def _join(self) -> str:
        left, left_columns = self._source(alias=True)
        right, right_columns = self._source(alias=True)
        a, b = left_columns[0].text.rpartition(".")[0], right_columns[0].text.rpartition(".")[0]
        kind = self.rng.choice(["JOIN", "INNER JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "SEMI JOIN", "ANTI JOIN"])
        every = [*left_columns, *right_columns]
        if kind in ("SEMI JOIN", "ANTI JOIN"):
            return f"SELECT {a}.* FROM {left} {kind} {right} ON {a}.id = {b}.id{self._where(left_columns)}"
        chosen = ", ".join(one.text for one in self.rng.sample(every, 3))
        if self.rng.random() < 0.2:
            return f"SELECT id, {chosen} FROM {left} {kind} {right} USING (id){self._where(every)}"
        if self.rng.random() < 0.15:
            return f"SELECT {chosen} FROM {left}, {right} WHERE {a}.id = {b}.id AND {self._condition(every, 2)}"
        on = f"{a}.id = {b}.id"
        if self.rng.random() < 0.5:
            on += f" AND {self._condition(every, 1)}"
        third = ""
        if self.rng.random() < 0.25:
            more, more_columns = self._source(alias=True)
            c = more_columns[0].text.rpartition(".")[0]
            third = f" {self.rng.choice(['JOIN', 'LEFT JOIN', 'RIGHT JOIN'])} {more} ON {b}.id = {c}.id"
            every = [*every, *more_columns]
        return f"SELECT {chosen} FROM {left} {kind} {right} ON {on}{third}{self._where(every)}"

    def _nested(self) -> str:
        outer, columns = self._source(alias=True)
        inner, inner_columns = self._source(alias=True)
        a, b = columns[0].text.rpartition(".")[0], inner_columns[0].text.rpartition(".")[0]
        condition = self._condition(inner_columns, 2)
        chosen = ", ".join(one.text for one in self.rng.sample(columns, 2))
        match self.rng.choice(
            ["in", "not in", "exists", "not exists", "scalar", "from", "with", "shadow", "again", "rec"]
        ):
            case "in":
                return f"SELECT {chosen} FROM {outer} WHERE {a}.id IN (SELECT {b}.id FROM {inner} WHERE {condition})"
            case "not in":
                return f"SELECT {chosen} FROM {outer} WHERE {a}.id NOT IN (SELECT id FROM {inner} WHERE {condition})"
            case "exists":
                both = self._condition([*columns, *inner_columns], 2)
                return f"SELECT {chosen} FROM {outer} WHERE EXISTS (SELECT 1 FROM {inner} WHERE {b}.id = {a}.id AND {both})"
            case "not exists":
                both = self._condition([*columns, *inner_columns], 1)
                return f"SELECT {chosen} FROM {outer} WHERE NOT EXISTS (FROM {inner} WHERE {b}.id = {a}.id AND {both})"
            case "scalar":
                return f"SELECT {chosen}, (SELECT count(*) FROM {inner} WHERE {b}.id >= {a}.id AND {condition}) AS c FROM {outer}"
            case "from":
                return f"SELECT count(*), max(id) FROM (SELECT id FROM {inner} WHERE {condition}) AS q WHERE q.id > 1"
            case "with":
                return (
                    f"WITH q AS (SELECT {b}.* FROM {inner} WHERE {condition}), r AS (FROM q)"
                    f" SELECT {chosen} FROM {outer} JOIN r ON r.id = {a}.id"
                )
            case "shadow":
                # A common table named like a table of the lake: inside of it the name is still the table's.
                return f"WITH t AS (SELECT {b}.* FROM {inner} WHERE {condition}) SELECT count(*), max(id) FROM t WHERE id < 8"
            case "again":
                return f"SELECT * FROM (WITH u AS (SELECT 1 AS id) SELECT * FROM u) JOIN {inner} USING (id) WHERE {condition}"
            case _:
                return (
                    f"WITH RECURSIVE up AS (SELECT min({b}.id) AS id FROM {inner} WHERE {condition} UNION ALL"
                    f" SELECT up.id + 1 FROM up JOIN {outer} ON {a}.id = up.id) SELECT id, count(*) FROM up GROUP BY id"
                )

    def _union(self) -> str:
        parts = []
        for _ in range(self.rng.randint(2, 3)):
            source, columns = self._source()
            parts.append(f"SELECT id, p FROM {source}{self._where(columns, sure=0.7)}")
        word = self.rng.choice(["UNION ALL", "UNION", "EXCEPT", "INTERSECT", "EXCEPT ALL", "UNION ALL BY NAME"])
        return f" {word} ".join(parts)

    def _window(self) -> str:
        source, columns = self._source()
        one, other = (self.rng.choice(columns).text for _ in range(2))
        call = self.rng.choice(["rank()", "dense_rank()", "count(*)", "sum(id)", "min(id)"])
        over = f"{call} OVER (PARTITION BY {one} ORDER BY {other})"
        qualify = self.rng.choice(["", "", " QUALIFY rank() OVER (PARTITION BY p ORDER BY id) <= 2"])
        return f"SELECT id, {one}, {other}, {over} AS w FROM {source}{self._where(columns)}{qualify}"

    # ------------------------------------------------------------------ parts

    def _source(self, *, alias: bool = False) -> tuple[str, list[Column]]:
        source = self.rng.choice(self.sources)
        self._used.append(source)
        name = f"«{len(self._used) - 1}»"
        called = ""
        if alias or self.rng.random() < 0.4 or source.snapshot:
            self._aliases += 1
            called = self.rng.choice(["a", "B", "t", "u", '"q"']) + "" if self._aliases == 1 else f"a{self._aliases}"
            name += f"{self.rng.choice([' ', ' AS '])}{called}"
        qualified = alias or (called and self.rng.random() < 0.5)
        return name, [
            Column(f"{called}.{self._cased(one)}" if qualified else self._cased(one), kind)
            for one, kind in source.columns.items()
        ]

    def _cased(self, name: str) -> str:
        return self.rng.choice([name, name, name, name.upper(), f'"{name}"'])

    def _where(self, columns: list[Column], sure: float = 0.7) -> str:
        return (
            f" WHERE {self._condition(columns, self.rng.choice([0, 1, 1, 2, 3]))}" if self.rng.random() < sure else ""
        )

    def _condition(self, columns: list[Column], depth: int) -> str:
        form = self.rng.random()
        if depth > 0 and form < 0.45:
            word = self.rng.choice(["AND", "AND", "OR"])
            left, right = (self._condition(columns, depth - 1) for _ in range(2))
            return f"({left} {word} {right})"
        if depth > 0 and form < 0.55:
            return f"NOT {self._condition(columns, depth - 1)}" if form < 0.5 else f"(NOT {self._leaf(columns)})"
        return self._leaf(columns)

    def _leaf(self, columns: list[Column]) -> str:
        column = self.rng.choice([one for one in columns if not one.kind.endswith("[]")])
        kind = column.kind.partition("(")[0]
        name, word = column.text, self.rng.choice(["", "NOT "])
        sign = self.rng.choice(_SIGNS)
        match self.rng.choice(
            ["compare", "compare", "compare", "flip", "in", "between", "null", "distinct", "text", "opaque", "columns"]
        ):
            case "compare":
                return f"{name} {sign} {self._literal(kind)}"
            case "flip":
                return f"{self._literal(kind)} {sign} {name}"
            case "in":
                # Texts and others in one list are unified by rules of their own; one kind at a time.
                found = [self.rng.choice(LITERALS[kind]) for _ in range(self.rng.randint(1, 4))]
                texts = [text for text in found if text.startswith("'") and "::" not in text]
                others = [text for text in found if text not in texts]
                null = self.rng.choice(["", "", "", ", NULL"])
                return f"{name} {word}IN ({', '.join(texts or others)}{null})"
            case "between":
                return f"{name} {word}BETWEEN {self._literal(kind)} AND {self._literal(kind)}"
            case "null":
                return f"{name} IS {word}NULL"
            case "distinct":
                return f"{name} IS {word}DISTINCT FROM {self.rng.choice([self._literal(kind), 'NULL'])}"
            case "text" if kind == "VARCHAR":
                like = self.rng.choice(["LIKE", "LIKE", "ILIKE", "SIMILAR TO"])
                pattern = self.rng.choice(["a%", "%b%", "a_", "", "%", "é%", "ab", "%\\%%"])
                return f"{name} {word}{like} '{pattern}'"
            case "columns":
                alike = [one.text for one in columns if one.kind == column.kind]
                return f"{name} {sign} {self.rng.choice(alike)}"
            case _:
                return self.rng.choice(
                    [
                        f"CASE WHEN {name} IS NULL THEN {name} IS NOT NULL ELSE {name} {sign} {self._literal(kind)} END",
                        f"coalesce({name} {sign} {self._literal(kind)}, {word}true)",
                        f"hash({name}) % 2 = 0",
                        f"length(CAST({name} AS VARCHAR)) > 1",
                        "true",
                        "NULL",
                        f"(id, p) {sign} (2, 'y')" if not name.count(".") else f"{name} {sign} {name}",
                    ]
                )

    def _literal(self, kind: str) -> str:
        if self.rng.random() < 0.15:
            name = f"v{len(self.params)}"
            self.params[name] = self.rng.choice(VALUES[kind])
            return f"${name}"
        return self.rng.choice(LITERALS[kind])

    def _spelled(self, text: str, *, ours: bool) -> str:
        for number, source in enumerate(self._used):
            text = text.replace(f"«{number}»", source.ours if ours else source.theirs)
        return text
