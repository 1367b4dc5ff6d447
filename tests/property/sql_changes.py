"""Random INSERT, UPDATE, DELETE and MERGE, with names that are there and names that are not.

What Lakelet is meant to do otherwise than DuckDB (docs/sql/dml.md) is not made: changes of a primary key, values that lose
digits, several rows of FROM for one row, subqueries in DO UPDATE.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

COLUMNS = ("id", "p", "v", "s")
_NUMBERS = ("v", "p")


@dataclass(frozen=True)
class RandomChange:
    """A statement for us, what DuckDB has to run before it, and whether names in it are all there."""

    ours: str
    theirs: str
    before: str | None = None


class ChangeMaker:
    """Makes statements on a table `t` with this primary key. One in some has a name that does not belong where it stands."""

    def __init__(self, rng: random.Random, keys: Sequence[str]) -> None:
        self.rng = rng
        self.keys = list(keys)
        self.wrong = False

    def change(self) -> RandomChange:
        """A statement."""
        self.wrong = self.rng.random() < 0.35
        kinds = [
            self._insert,
            self._update,
            self._update_from,
            self._delete,
            self._delete_using,
            self._merge,
            self._merge,
        ]
        if self.keys:
            kinds += [self._conflict, self._conflict]
        return self.rng.choice(kinds)()

    # ------------------------------------------------------------------ parts

    def _rows(self, most: int = 5) -> list[tuple[object, ...]]:
        rng = self.rng
        rows = [
            (rng.randrange(8), rng.randrange(3), rng.choice([None, *range(-5, 6)]), rng.choice([None, "a", "b", "ax"]))
            for _ in range(rng.randint(1, most))
        ]
        keys = self.keys or ["id"]
        return list({tuple(row[COLUMNS.index(key)] for key in keys): row for row in rows}.values())

    def _values(self, rows: Sequence[tuple[object, ...]]) -> str:
        shown = [", ".join("NULL" if value is None else repr(value) for value in row) for row in rows]
        return f"VALUES {', '.join(f'({row})' for row in shown)}"

    def _column(self, sides: Sequence[str], kind: Sequence[str], absent: str | None = None) -> str:
        """A column of one of these sides, now and then without the side, or of one that is not there."""
        rng = self.rng
        if self.wrong and rng.random() < 0.4:
            return rng.choice(
                [f"{absent or 'w'}.{rng.choice(kind)}", "nope", f"{sides[0]}.nope", f"w.{kind[0]}", "__lakelet_row"]
            )
        name = rng.choice(kind)
        side = rng.choice(sides)
        return (
            name
            if len(sides) == 1 and rng.random() < 0.5
            else rng.choice([f"{side}.{name}", f"{side}.{name.upper()}", f'"{side}"."{name}"'])
        )

    def _number(self, sides: Sequence[str], absent: str | None = None, *, queries: bool = True) -> str:
        column = self._column(sides, _NUMBERS, absent)
        forms = [
            column,
            f"{column} + 1",
            f"COALESCE({column}, 0) * 2",
            "NULL",
            "7",
            f"CASE WHEN {column} > 1 THEN 0 ELSE {column} END",
        ]
        if queries:
            other = self._column([*sides, "o"], _NUMBERS, absent)
            forms += [
                f"(SELECT max(o.v) FROM t AS o WHERE o.v < {other})",
                "(SELECT count(*) FROM t AS o)",
                f"(SELECT {column})",
            ]
        return self.rng.choice(forms)

    def _text(self, sides: Sequence[str], absent: str | None = None) -> str:
        column = self._column(sides, ("s",), absent)
        return self.rng.choice(
            [column, f"{column} || 'x'", "NULL", "'k'", f"upper({column})", f"left(COALESCE({column}, 'q'), 3)"]
        )

    def _condition(self, sides: Sequence[str], absent: str | None = None, *, queries: bool = True) -> str:
        rng = self.rng
        number = self._number(sides, absent, queries=queries)
        column = self._column(sides, ("id", "p", "v"), absent)
        forms = [
            f"{column} > {rng.randrange(4)}",
            f"{number} IS NULL",
            f"{self._text(sides, absent)} = 'a'",
            "TRUE",
            f"{column} % 2 = 0",
        ]
        if queries:
            forms.append(
                f"EXISTS (SELECT 1 FROM t AS o WHERE o.id = {self._column([*sides, 'o'], ('id', 'v'), absent)} + 1)"
            )
        made = rng.choice(forms)
        return f"{made} AND {column} IS NOT NULL" if rng.random() < 0.2 else made

    def _assignments(self, sides: Sequence[str], absent: str | None = None, *, queries: bool = True) -> str:
        rng = self.rng
        names = rng.sample([name for name in ("p", "v", "s") if name not in self.keys], rng.randint(1, 2))
        values = [
            self._text(sides, absent)
            if name == "s"
            else self._number(sides, absent, queries=queries)
            if name == "v"
            else str(rng.randrange(3))
            for name in names
        ]
        if self.wrong and rng.random() < 0.15:
            names[0] = rng.choice(["nope", names[-1]])
        if len(names) > 1 and rng.random() < 0.3:
            return f"({', '.join(names)}) = ({', '.join(values)})"
        return ", ".join(f"{name} = {value}" for name, value in zip(names, values, strict=True)) + rng.choice(
            ["", "", ","]
        )

    def _returning(self, side: str) -> str:
        if self.rng.random() < 0.4:
            return ""
        items = [
            self.rng.choice(
                ["*", "id", f"{side}.v + 1 AS more", f"{side}.*", "upper(s)", self._column([side], COLUMNS)]
            )
        ]
        return f" RETURNING {', '.join([*items, 'id AS key'])}"

    # ------------------------------------------------------------------ statements

    def _insert(self) -> RandomChange:
        rng, rows = self.rng, self._rows()
        names = list(COLUMNS)
        before = None
        if self.keys:
            match = " AND ".join(f"t.{name} = q.{name}" for name in self.keys)
            before = f"DELETE FROM t USING ({self._values(rows)}) AS q(id, p, v, s) WHERE {match}"
        form = rng.randrange(4)
        if form == 0:
            text = f"INSERT INTO t {self._values(rows)}"
        elif form == 1:
            rng.shuffle(names)
            places = [COLUMNS.index(name) for name in names]
            listed = ["nope", *names[1:]] if self.wrong else names
            text = f"INSERT INTO t ({', '.join(listed)}) {self._values([tuple(row[place] for place in places) for row in rows])}"
        elif form == 2:
            named = "x AS id" if self.wrong else "id"
            text = f"INSERT INTO t BY NAME SELECT v, {named}, p FROM ({self._values(rows)}) AS q(id, p, v, s)"
        else:
            column = self._column(["q"], ("id",))
            text = f"WITH q(id, p, v, s) AS ({self._values(rows)}) INSERT INTO t SELECT {column}, p, v, s FROM q"
        text += self._returning("t")
        return RandomChange(text, text, before)

    def _update(self) -> RandomChange:
        side = self.rng.choice(["t", "x"])
        text = f"UPDATE t{'' if side == 't' else ' AS x'} SET {self._assignments([side])}"
        text += f" WHERE {self._condition([side])}" if self.rng.random() < 0.7 else ""
        return self._same(text + self._returning(side))

    def _source(self, rows: Sequence[tuple[object, ...]]) -> str:
        """Rows to join with the target: VALUES, or a query over them, which may name a column that only the target has."""
        values = f"({self._values(rows)}) AS q(id, p, v, s)"
        form = self.rng.randrange(3)
        if form == 0:
            return values
        if form == 1:
            return f"(SELECT * FROM {values}) AS q"
        own = "t.id" if self.wrong and self.rng.random() < 0.5 else "q.id"
        return f"(SELECT q.* FROM {values} WHERE {own} IS NOT NULL) AS q"

    def _update_from(self) -> RandomChange:
        rows = list({row[0]: row for row in self._rows(4)}.values())
        where = "t.id = q.id" + (f" AND {self._condition(['t', 'q'])}" if self.rng.random() < 0.4 else "")
        text = f"UPDATE t SET {self._assignments(['t', 'q'])} FROM {self._source(rows)} WHERE {where}"
        return self._same(text + self._returning("t"))

    def _delete(self) -> RandomChange:
        return self._same(f"DELETE FROM t WHERE {self._condition(['t'])}{self._returning('t')}")

    def _delete_using(self) -> RandomChange:
        condition = f"t.id = q.id AND {self._condition(['t', 'q'])}"
        text = f"DELETE FROM t USING {self._source(self._rows())} WHERE {condition}"
        return self._same(text + self._returning("t"))

    def _conflict(self) -> RandomChange:
        rng = self.rng
        rows = self._rows()
        rows += rows[:1] * rng.randrange(2)
        text = f"INSERT INTO t {self._values(rows)}"
        form = rng.randrange(4)
        if form == 0:
            text = text.replace("INSERT", f"INSERT OR {rng.choice(['REPLACE', 'IGNORE'])}", 1)
        elif form == 1:
            key = "v" if self.wrong else ", ".join(self.keys)
            text += f" ON CONFLICT{rng.choice(['', f' ({key})'])} DO NOTHING"
        else:
            sides = rng.choice([["t"], ["excluded", "t"]])
            text += f" ON CONFLICT DO UPDATE SET {self._assignments(sides, queries=False)}"
            text += f" WHERE {self._condition(sides, queries=False)}" if rng.random() < 0.4 else ""
        return self._same(text + self._returning("t"))

    def _merge(self) -> RandomChange:
        rng, rows = self.rng, self._rows()
        keys = self.keys or ["id"]
        text = f"MERGE INTO t USING ({self._values(rows)}) AS q(id, p, v, s) "
        if rng.random() < 0.3:
            text += f"USING ({', '.join(keys)})"
        else:
            text += "ON " + " AND ".join(f"t.{name} = q.{name}" for name in keys)
            text += f" AND {self._condition(['t', 'q'], queries=False)}" if rng.random() < 0.3 else ""
        closed: set[str] = set()
        for _ in range(rng.randint(1, 4)):
            when = rng.choice(["MATCHED", "NOT MATCHED", "NOT MATCHED BY SOURCE"])
            if when in closed:
                continue
            text += self._clause(when, closed)
        return self._same(text + self._returning("t"))

    def _clause(self, when: str, closed: set[str]) -> str:
        rng = self.rng
        sides, absent = {
            "MATCHED": (["t", "q"], None),
            "NOT MATCHED": (["q"], "t"),
            "NOT MATCHED BY SOURCE": (["t"], "q"),
        }[when]
        text = f" WHEN {when}"
        if rng.random() < 0.5:
            text += f" AND {self._condition(sides, absent)}"
        else:
            closed.add(when)
        if when == "NOT MATCHED":
            number = self._number(sides, absent)
            action = rng.choice(
                [
                    f"INSERT VALUES (q.id, q.p, {number}, {self._text(sides, absent)})",
                    f"INSERT (s, p, id) VALUES ({self._text(sides, absent)}, q.p, id)",
                    "INSERT *",
                    "INSERT BY NAME",
                    "DO NOTHING",
                ]
            )
        else:
            action = rng.choice([f"UPDATE SET {self._assignments(sides, absent)}".rstrip(","), "DELETE", "DO NOTHING"])
        return f"{text} THEN {action}"

    def _same(self, text: str) -> RandomChange:
        return RandomChange(text, text)
