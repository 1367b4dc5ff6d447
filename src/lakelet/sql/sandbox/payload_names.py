"""Resolve bare names of payload fields: `u.name` is `u.payload.name` where the table has no column of that name.

DuckDB binds the query first, so that a column or an alias of that name goes before a payload field. At the name that it does not
find, the tables of the innermost SELECT that have such a field are looked for, then those of the SELECT around it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from lakelet.errors import InvalidError
from lakelet.sql.engine.engine_errors import Placed
from lakelet.sql.lexer.errors import SqlError
from lakelet.sql.lexer.quotes import quoted
from lakelet.sql.lexer.words import Word
from lakelet.sql.query.parse_tree import Node, Reference
from lakelet.sql.sandbox.allow_list import nodes
from lakelet.sql.sandbox.hidden_columns import Edit
from lakelet.sql.sandbox.sandbox_table import PAYLOAD, SandboxTable

_MISSING_KEY = re.compile(r'Could not find key "(?P<key>[^"]*)" in struct')
_NO_STRUCT = re.compile(r"Cannot extract field '(?P<key>[^']*)' from")
# What DuckDB takes for functions of the session where there is no such column.
VALUE_WORDS = frozenset(("user", "session_user", "current_user", "current_role", "current_catalog", "current_schema"))
_SHOWN = 20


@dataclass(frozen=True, slots=True)
class _ColumnUse:
    """A reference to a column, with the SELECTs around it, innermost first."""

    node: Node
    selects: tuple[Node, ...]

    @property
    def names(self) -> list[str]:
        return [str(name) for name in self.node.get("column_names", ())]


@dataclass(frozen=True, slots=True)
class PayloadNames:
    """The names of one query: its tree, its table references and the table of each."""

    tree: Node
    uses: Sequence[Reference]
    tables: Mapping[int, SandboxTable]
    placed: Placed

    def edits_at(self, start: int, words: Sequence[Word]) -> list[Edit]:
        """The edits that make the name at a position, and its like in the same SELECT, that of a payload field; none where it is
        none. SqlError where it may be a field of several tables, or where no field has that name."""
        columns = list(_columns(self.tree, ()))
        wanted = next((one for one in columns if self._place(one) == start), None)
        if wanted is None or not wanted.names:
            return []
        found = self._resolved(wanted)
        if found is None:
            return []
        aliases = {str(node["alias"]).lower() for node in nodes(self.tree) if node.get("alias")}
        alike = [one for one in columns if _same(one, wanted, aliases)]
        return [edit for one in alike for edit in self._edit(one, found, words)]

    def value_words(self) -> set[str]:
        """The names without a table that DuckDB takes for functions, unless there is a column of that name."""
        return {one.names[0].lower() for one in _columns(self.tree, ()) if _is_value_word(one)}

    def value_edits(self, words: Sequence[Word]) -> list[Edit]:
        """The edits that make such names those of payload fields, where all columns that they could mean are known."""
        found: list[Edit] = []
        for one in _columns(self.tree, ()):
            if not _is_value_word(one) or not one.selects or not self._is_known(one.selects[0], one.names[0]):
                continue
            here = [use for use in self.uses if use.select is one.selects[0]]
            if any(one.names[0].lower() in (self._fields(use) or {}) for use in here):
                table = self._resolved(one)
                found += [] if table is None else self._edit(one, table, words)
        return found

    def _is_known(self, select: Node, name: str) -> bool:
        """Whether a SELECT reads tables alone, none of which has a column of that name."""
        sources = [node for node in nodes(select.get("from_table")) if "class" not in node and _is_source(node)]
        tables = [self.tables.get(id(node)) for node in sources]
        return bool(sources) and all(
            table is not None and name.lower() not in map(str.lower, table.scan.schema.names) for table in tables
        )

    def explained(self, error: InvalidError) -> InvalidError:
        """The error about a payload field that does not exist, which names those that do."""
        match = _MISSING_KEY.search(str(error)) or _NO_STRUCT.search(str(error))
        if match is None:
            return error
        key = match["key"].lower()
        for one in _columns(self.tree, ()):
            names = [name.lower() for name in one.names]
            if PAYLOAD not in names or key not in names[names.index(PAYLOAD) + 1 :]:
                continue
            alias = names[0] if names.index(PAYLOAD) == 1 else None
            for use in self._in_scope(one):
                if alias in (None, use.alias.lower()):
                    return self._unknown(match["key"], [use], one)
        return self._explained_subscript(match["key"]) or error

    def _explained_subscript(self, key: str) -> SqlError | None:
        """The error about a field that is named by a text, as in `payload['age']`."""
        for one in _columns(self.tree, ()):
            having = self._in_scope(one)
            if one.names[-1:] and one.names[-1].lower() == PAYLOAD and having:
                return self._unknown(key, having, one)
        return None

    def _resolved(self, column: _ColumnUse) -> Reference | None:
        """The table whose payload has the field that a name means; None where the name is none of ours."""
        names = column.names
        if PAYLOAD in [name.lower() for name in names]:
            return None
        for select in column.selects:
            here = [use for use in self.uses if use.select is select and self._fields(use) is not None]
            named = [use for use in here if len(names) > 1 and use.alias.lower() == names[0].lower()]
            key = names[1] if named else names[0]
            having = [use for use in named or here if key.lower() in (self._fields(use) or {})]
            if len(having) > 1:
                may_be = " or ".join(f"{use.alias}.{PAYLOAD}.{key}" for use in having)
                raise SqlError(f"{key!r} is ambiguous: it may be {may_be}", self.placed.text, self._place(column))
            if having:
                return having[0]
            if named or (here and select is column.selects[-1] and len(names) == 1):
                raise self._unknown(key, named or here, column)
        return None

    def _edit(self, column: _ColumnUse, table: Reference, words: Sequence[Word]) -> Iterable[Edit]:
        start = self._place(column)
        inside = [word for word in words if word.start >= start and word.is_name]
        if not inside:
            return
        if len(column.names) > 1 and column.names[0].lower() == table.alias.lower():
            yield inside[1].start, inside[1].start, f"{quoted(PAYLOAD)}."
        else:
            yield start, start, f"{quoted(table.alias)}.{quoted(PAYLOAD)}."

    def _unknown(self, key: str, uses: Sequence[Reference], column: _ColumnUse) -> SqlError:
        tables = ", ".join(dict.fromkeys(self.tables[id(use.node)].name for use in uses))
        known = list(dict.fromkeys(name for use in uses for name in (self._fields(use) or {}).values()))
        shown = ", ".join(repr(name) for name in sorted(known)[:_SHOWN])
        more = f" and {len(known) - _SHOWN} more" if len(known) > _SHOWN else ""
        has = f"its payload has {shown}{more}" if known else "its payload has no field yet"
        return SqlError(
            f"{tables} has no column and no payload field {key!r}; {has}", self.placed.text, self._place(column)
        )

    def _fields(self, use: Reference) -> dict[str, str] | None:
        fields = self.tables[id(use.node)].payload_fields() if id(use.node) in self.tables else None
        return None if fields is None else {field.name.lower(): field.name for field in fields}

    def _in_scope(self, column: _ColumnUse) -> list[Reference]:
        return [
            use
            for select in column.selects
            for use in self.uses
            if use.select is select and self._fields(use) is not None
        ]

    def _place(self, column: _ColumnUse) -> int:
        return self.placed.original(int(column.node.get("query_location", 0)))


def _is_value_word(column: _ColumnUse) -> bool:
    return len(column.names) == 1 and column.names[0].lower() in VALUE_WORDS


def _is_source(node: Node) -> bool:
    """Whether a node of FROM has rows of its own."""
    return node.get("type") in ("BASE_TABLE", "SUBQUERY", "TABLE_FUNCTION", "EXPRESSION_LIST", "PIVOT", "EMPTY")


def _same(one: _ColumnUse, other: _ColumnUse, aliases: set[str]) -> bool:
    """Whether two names mean the same: in another clause, a name without a table may be an alias."""
    if one is other:
        return True
    names = [name.lower() for name in one.names]
    if names != [name.lower() for name in other.names] or (len(names) == 1 and names[0] in aliases):
        return False
    return list(map(id, one.selects)) == list(map(id, other.selects))


def _columns(node: object, selects: tuple[Node, ...]) -> Iterable[_ColumnUse]:
    if isinstance(node, list):
        for child in node:
            yield from _columns(child, selects)
    elif isinstance(node, dict):
        if node.get("class") == "COLUMN_REF" and "query_location" in node:
            yield _ColumnUse(node, selects)
        inner = (node, *selects) if node.get("type") == "SELECT_NODE" else selects
        for key, child in node.items():
            if key != "literal":
                yield from _columns(child, inner)
