"""The inner query of INSERT … ON CONFLICT: join the rows to insert with the existing rows of their keys.

    SELECT <choice>, …
    FROM (SELECT <columns of the target>, <the new row as a struct> AS excluded
          FROM target RIGHT JOIN <the first new row of each key> ON <same key>) AS t

An unqualified name is a column of the target, as in DuckDB; `excluded.a` is the value to be inserted. Of several new rows with
one key the first is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lakelet.sql.lexer.quotes import quoted
from lakelet.sql.statements.change.change_clauses import When
from lakelet.sql.statements.change.merge_query import Explain, MergeQuery
from lakelet.sql.statements.text.query_text import QueryText

EXCLUDED = "excluded"


@dataclass(frozen=True, slots=True)
class ConflictQuery(MergeQuery):
    """The query of a statement whose target has this primary key."""

    keys: Sequence[str]

    def _add_join(self, text: QueryText, kinds: set[When]) -> None:
        names, columns = self.names, self.columns
        places = [names.file, names.row, names.source]
        kept = [names.kept(place) for place, _ in columns]
        new = [f"{EXCLUDED}.{quoted(name)} AS {quoted(name)}" for _, name in columns]
        text.add(f"{', '.join((*places, *kept, *new))} FROM (")
        old = [f"{names.target}.{name}" for name in (names.file, names.row)]
        old += [f"{names.target}.{quoted(name)} AS {names.kept(place)}" for place, name in columns]
        old += [f"{names.target}.{quoted(name)} AS {quoted(name)}" for _, name in columns]
        packed = ", ".join(f"{quoted(name)} := {names.rows}.{quoted(name)}" for _, name in columns)
        same = " AND ".join(f"{names.target}.{quoted(key)} = {names.rows}.{quoted(key)}" for key in self.keys)
        text.add(f"SELECT {', '.join(old)}, TRUE AS {names.source}, struct_pack({packed}) AS {EXCLUDED} ")
        text.add(f"FROM {self.target} AS {names.target} RIGHT JOIN ({self._first_rows()}) AS {names.rows} ON {same}")
        text.add(f") AS {self._target}")

    def _first_rows(self) -> str:
        """The first new row of each key."""
        keys = ", ".join(quoted(key) for key in self.keys)
        first = f"row_number() OVER (PARTITION BY {keys} ORDER BY {self.names.number}) = 1"
        return f"SELECT * FROM {self.names.rows} QUALIFY {first}"

    def _explain(self, when: When) -> Explain | None:
        return None
