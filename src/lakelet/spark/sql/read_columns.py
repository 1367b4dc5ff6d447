"""Find the columns that a statement may read, from its tokens alone, for projection pushdown.

    SELECT sum(price * number) FROM shop.items WHERE day = 1     ->   names {price, number, day, …}, and no other column
    SELECT /*+ REPARTITION(3) */ * FROM shop.items               ->   None, for all columns

A column too many costs time, and one too few loses data silently. So names are left out only where every construct
that reads columns without naming them is known to be absent; whatever is in doubt reads all columns. Spark's reader
leaves out what a plan does not need anyway: this here is for the rows that we merge.
"""

from __future__ import annotations

from collections.abc import Sequence

from lakelet.sql.lexer.spark_references import compares, names_something
from lakelet.sql.lexer.spark_words import Word

# NATURAL joins, pivots and pipes read columns nobody names; IDENTIFIER names them in literals.
_UNNAMED = ("NATURAL", "PIVOT", "UNPIVOT", "TABLE", "IDENTIFIER", "|>", "|")
_SET_OPERATIONS = ("UNION", "EXCEPT", "MINUS", "INTERSECT")
# Functions with a FROM of their own.
_TAKING_FROM = ("EXTRACT", "TRIM", "SUBSTRING", "SUBSTR", "OVERLAY")
# Keywords allowed between a value and a parenthesis that are no alias of a table.
_BEFORE_PARENTHESIS = (
    *("AND", "OR", "IN", "LIKE", "ILIKE", "RLIKE", "REGEXP", "BETWEEN", "DIV", "WHEN", "THEN", "ELSE", "AS"),
    *("OVER", "FILTER", "GROUP", "SELECT", "FROM", "JOIN", "ON", "USING", "TABLESAMPLE", "REPEATABLE"),
    *("WHERE", "HAVING", "QUALIFY", "LIMIT", "OFFSET", "VALUES", "PARTITION", *_SET_OPERATIONS),
)


def read_columns(words: Sequence[Word]) -> frozenset[str] | None:
    """Every name in a statement in lower case, among them the columns it reads; None where it may read others as well."""
    if any(word.keyword in _UNNAMED for word in words) or _reads_without_select(words):
        return None
    for place, word in enumerate(words):
        if word.keyword == "*" and not (_multiplies(words, place) or _counts(words, place)):
            return None
        if word.keyword == "(" and _renames_columns(words, place):
            return None
    return frozenset(word.text.lower() for word in words if word.is_name)


def _reads_without_select(words: Sequence[Word]) -> bool:
    """Whether there may be a FROM without SELECT, which is a query of all columns."""
    if not any(word.keyword == "SELECT" for word in words):
        return True
    chosen = [False]
    for place, word in enumerate(words):
        keyword = "" if names_something(words, place) else word.keyword
        if keyword == "(":
            chosen.append(place > 0 and words[place - 1].keyword in _TAKING_FROM)
        elif keyword == ")" and len(chosen) > 1:
            chosen.pop()
        elif keyword in ("SELECT", *_SET_OPERATIONS):
            chosen[-1] = keyword == "SELECT"
        elif keyword == "FROM" and not chosen[-1] and not compares(words, place):
            return True
    return False


def _multiplies(words: Sequence[Word], place: int) -> bool:
    """Whether a star is between two values. After SELECT, a comma, a hint, or anything else, it means columns."""
    if not _ends_value(words, place - 1) or place + 1 >= len(words):
        return False
    after = words[place + 1]
    if after.kind == "word":
        return not after.in_grammar or after.keyword == "CASE"
    return after.kind != "symbol" or after.keyword in ("(", "-", "+", "~")


def _counts(words: Sequence[Word], place: int) -> bool:
    """Whether a star is that of count(*), which reads no column."""
    around = [word.keyword for word in words[max(0, place - 2) : place + 2]]
    return around == ["COUNT", "(", "*", ")"] and not names_something(words, place - 2)


def _renames_columns(words: Sequence[Word], place: int) -> bool:
    """Whether a parenthesis may list other names for a table's columns, `shop.orders AS o(a, b)`: they go by position."""
    if place < 2 or not words[place - 1].is_name:
        return False
    if words[place - 2].keyword == "AS":
        # CAST(x AS DECIMAL(10, 2)) has a number there.
        return place + 1 >= len(words) or words[place + 1].kind != "number"
    return _ends_value(words, place - 2) and words[place - 1].keyword not in _BEFORE_PARENTHESIS


def _ends_value(words: Sequence[Word], place: int) -> bool:
    """Whether a word is certainly the last of a value or of a table's name."""
    if place < 0:
        return False
    word = words[place]
    if word.kind == "word":
        return not word.in_grammar or word.keyword == "END" or names_something(words, place)
    return word.kind != "symbol" or word.keyword in (")", "]")
