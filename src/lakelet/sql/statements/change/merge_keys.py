"""Detect whether MERGE may insert a row whose key exists: it may unless its condition is exactly the equality of the keys.

    ON t.id = s.id                WHEN NOT MATCHED THEN INSERT (id, …) VALUES (s.id, …)     a new key does not exist
    ON t.id = s.id AND s.n > 1    WHEN NOT MATCHED THEN INSERT …                            it may, in a row that did not match

A row that did not match would be replaced by the new one; where that is possible, keys are looked up. Pure: decided by the words
alone, conservatively for conditions of any other form.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lakelet.sql.lexer.words import Word
from lakelet.sql.statements.change.change_clauses import Action, Change
from lakelet.sql.statements.change.change_values import Given, Value
from lakelet.sql.statements.text.query_text import Span


def may_insert_known_keys(
    change: Change, keys: Sequence[str], values: Sequence[Mapping[str, Value]], words: Sequence[Word]
) -> bool:
    """Whether a row to insert may have the key of a row that did not match."""
    if change.name != "MERGE" or not change.inserts or not keys:
        return False
    pairs = _pairs(change, words)
    if pairs is None or {name.lower() for name in keys} != set(pairs):
        return True
    inserts = (found for clause, found in zip(change.clauses, values, strict=True) if clause.action is Action.INSERT)
    return any(not _is_column(found[key], pairs[key.lower()], change, words) for found in inserts for key in keys)


def _pairs(change: Change, words: Sequence[Word]) -> dict[str, str] | None:
    """The target columns that the condition equates with source columns, in lower case; None for any other condition."""
    if change.using is not None:
        names = [word.text.lower() for word in words[change.using.first : change.using.behind] if word.is_name]
        return dict(zip(names, names, strict=True))
    assert change.on is not None
    terms: list[list[Word]] = [[]]
    for word in words[change.on.first : change.on.behind]:
        if word.keyword == "AND":
            terms.append([])
        else:
            terms[-1].append(word)
    found: dict[str, str] = {}
    for term in terms:
        if [word.keyword for word in term[1::2]] != [".", "=", "."] or not all(word.is_name for word in term[::2]):
            return None
        left, column, right, other = (word.text.lower() for word in term[::2])
        sides = {left: column, right: other}
        target, source = change.target.alias.lower(), (change.source_alias or "").lower()
        if set(sides) != {target, source}:
            return None
        found[sides[target]] = sides[source]
    return found


def _is_column(value: Value, column: str, change: Change, words: Sequence[Word]) -> bool:
    """Whether a value is this column of the source."""
    if not isinstance(value, Given):
        return False
    if not isinstance(value.written, Span):
        return value.written.lower() == column
    parts = [word.text.lower() for word in words[value.written.first : value.written.behind]]
    return parts in ([column], [(change.source_alias or "").lower(), ".", column])
