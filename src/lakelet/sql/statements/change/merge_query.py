"""The inner query of MERGE: one join, nested in a subquery for each kind of unmatched rows.

    SELECT <choice of WHEN NOT MATCHED BY SOURCE>, …        sees the target alone
    FROM (SELECT <choice of WHEN NOT MATCHED>, …            sees the source alone
          FROM (SELECT <choice of WHEN MATCHED>, …          sees both
                FROM target AS t FULL JOIN source AS s ON …) AS s) AS t

A name in a clause must belong to a side that has a row there: were all clauses on the level of the join, a name of the absent
side would silently be NULL. A choice is a struct: the number of the first clause whose condition holds, and its column values;
each condition and expression is in it once, and evaluated only for rows that reach it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lakelet.catalog.names import matching
from lakelet.sql.lexer.quotes import literal, quoted
from lakelet.sql.statements.change.change_clauses import Action, Change, Clause, When
from lakelet.sql.statements.change.change_values import Given
from lakelet.sql.statements.text.internal_names import InternalNames
from lakelet.sql.statements.text.query_text import QueryText, Span

# DuckDB's alias of a subquery without one.
UNNAMED = "unnamed_subquery"
_JOINS = {(False, False): "JOIN", (True, False): "RIGHT JOIN", (False, True): "LEFT JOIN", (True, True): "FULL JOIN"}


@dataclass(frozen=True, slots=True)
class MergeQuery:
    """The query of a statement. `target` is the relation of the target's rows, `columns` are its columns with their indexes in
    the schema, `written` are the expressions that each clause needs from the query."""

    change: Change
    names: InternalNames
    target: str
    columns: Sequence[tuple[int, str]]
    written: Sequence[Sequence[Given]]
    source_columns: Sequence[str]

    def add_to(self, text: QueryText) -> QueryText:
        """Adds the query to a text."""
        names, kinds = self.names, {clause.when for clause in self.change.clauses}
        places = [names.file, names.row, names.source]
        kept = [names.kept(place) for place, _ in self.columns]
        text.add("SELECT ")
        self._add_choice(text, When.NOT_MATCHED_BY_SOURCE, f"{names.source} IS NULL")
        chosen = self._chosen(kinds, When.MATCHED, When.NOT_MATCHED)
        shown = [f"{names.kept(place)} AS {quoted(name)}" for place, name in self.columns]
        # The target's columns are named in a subquery of their own: items of one SELECT are in scope of each other.
        text.add(f"{', '.join((*chosen, *places, *kept))} FROM (SELECT *, {', '.join(shown)} FROM (SELECT ")
        self._add_choice(text, When.NOT_MATCHED, f"{names.row} IS NULL")
        text.add(f"{', '.join((*self._chosen(kinds, When.MATCHED), *places, *kept))} FROM (SELECT ")
        self._add_choice(text, When.MATCHED, f"{names.row} IS NOT NULL AND {names.source}")
        self._add_join(text, kinds)
        return text.add(f") AS {self._source})) AS {self._target}")

    @property
    def _target(self) -> str:
        return quoted(self.change.target.alias)

    @property
    def _source(self) -> str:
        return quoted(self.change.source_alias or UNNAMED)

    def _chosen(self, kinds: set[When], *wanted: When) -> list[str]:
        return [self.names.chosen(when.name) for when in wanted if when in kinds]

    def _add_join(self, text: QueryText, kinds: set[When]) -> None:
        change, names = self.change, self.names
        assert change.source is not None
        target = [f"{self._target}.{quoted(name)} AS {names.kept(place)}" for place, name in self.columns]
        text.add(f"{self._target}.{names.file}, {self._target}.{names.row}, {self._source}.{names.source}, ")
        text.add(f"{', '.join(target)}, {self._source}.* EXCLUDE ({names.source})")
        join = _JOINS[When.NOT_MATCHED in kinds, When.NOT_MATCHED_BY_SOURCE in kinds]
        text.add(f" FROM {self.target} AS {self._target} {join} (SELECT *, TRUE AS {names.source} FROM ")
        text.add_span(change.source).add(f"\n) AS {self._source} ")
        if change.using is not None:
            text.add("USING ").add_span(change.using)
        elif change.on is not None:
            text.add("ON (").add_span(change.on).add("\n)")

    # ------------------------------------------------------------------ choices

    def _add_choice(self, text: QueryText, when: When, holds: str) -> None:
        """Adds the struct of the first clause of a kind whose condition holds, with its values."""
        chosen = [(number, one) for number, one in enumerate(self.change.clauses) if one.when is when]
        if not chosen:
            return
        fields = [one.name for number, _ in chosen for one in self.written[number]]
        text.add(f"CASE WHEN {holds} THEN CASE")
        for number, clause in chosen:
            text.add(" WHEN ")
            if clause.condition is None:
                text.add("TRUE")
            else:
                text.add("(").add_span(clause.condition, self._explain(when)).add("\n)")
            text.add(" THEN ")
            self._add_values(text, number, clause, fields)
        # A branch that no row takes, which gives the struct its full type.
        nothing = ", ".join(f"{name}: NULL" for name in fields)
        text.add(f" WHEN FALSE THEN {{{self.names.clause}: 0{', ' * bool(fields)}{nothing}}}")
        text.add(f" END END AS {self.names.chosen(when.name)}, ")

    def _add_values(self, text: QueryText, number: int, clause: Clause, fields: Sequence[str]) -> None:
        if clause.action is Action.NOTHING:
            text.add("NULL")
            return
        text.add(f"{{{self.names.clause}: ")
        if clause.action is Action.ERROR:
            self._add_error(text, clause)
        else:
            text.add(str(number))
        written = {one.name: one for one in self.written[number]}
        for name in fields:
            text.add(f", {name}: ")
            if name not in written:
                text.add("NULL")
            elif isinstance(written[name].written, str):
                text.add(f"{self._source}.{quoted(str(written[name].written))}")
            else:
                add_written(text, written[name], self.names, self._explain(clause.when))
        text.add("}")

    def _add_error(self, text: QueryText, clause: Clause) -> None:
        said = f"MERGE: a row falls under WHEN {clause.when.value} THEN ERROR"
        if clause.message is None:
            text.add(f"CAST(error({literal(said)}) AS INTEGER)")
            return
        text.add(f"CAST(error({literal(said + ': ')} || COALESCE(CAST((")
        text.add_span(clause.message, self._explain(clause.when)).add("\n) AS VARCHAR), 'NULL')) AS INTEGER)")

    def _explain(self, when: When) -> Explain | None:
        """The explanation of errors in a clause, which detects names of the side that has no row there."""
        absent = {
            When.MATCHED: ("", None, ()),
            When.NOT_MATCHED: ("target", self.change.target.alias, tuple(name for _, name in self.columns)),
            When.NOT_MATCHED_BY_SOURCE: ("source", self.change.source_alias, tuple(self.source_columns)),
        }[when]
        return Explain(when, *absent)


@dataclass(frozen=True, slots=True)
class Explain:
    """Explains an error about a name in a clause where one side has no row."""

    when: When
    side: str
    alias: str | None
    columns: tuple[str, ...]

    def _in_clause(self, reason: str) -> str:
        return f"{reason.rstrip('!.')}; in WHEN {self.when.value}"

    def __call__(self, reason: str, name: tuple[str, ...]) -> str:
        if not name or "not found" not in reason.lower():
            return self._in_clause(reason)
        is_qualified = len(name) > 1 and self.alias is not None and name[0].lower() == self.alias.lower()
        if not is_qualified and (self.side == "" or matching(name[0], self.columns) is None):
            return self._in_clause(reason)
        other = "source" if self.side == "target" else "target"
        return (
            f"column {'.'.join(name)} belongs to the {self.side}, which has no row in WHEN {self.when.value}: only columns of "
            f"the {other} can be named there"
        )


def add_written(text: QueryText, one: Given, names: InternalNames, explain: Explain | None = None) -> None:
    """Adds an expression of the statement; a subquery assigned to several columns as a struct of its one row."""
    assert isinstance(one.written, Span)
    if not one.parts:
        text.add("(").add_span(one.written, explain).add("\n)")
        return
    text.add(f"(SELECT {names.value_row} FROM ").add_span(one.written, explain).add(f" AS {names.value_row})")
