"""Names of Lakelet's own in the text of a query, none of which the query uses itself."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import count

from lakelet.sql.lexer.words import Word


def stand_in(stem: str, mark: str, words: Sequence[Word], taken: Collection[str] = ()) -> str:
    """The stem with a mark and the first number that makes a name which neither the query has nor is taken.

    A lake may have a table `t@1`, which is not the version of `t` that the name replaces.
    """
    used = {word.text.lower() for word in words if mark in word.text}
    used.update(name.lower() for name in taken)
    names = (f"{stem}{mark}{number}" for number in count(len(taken) + 1))
    return next(name for name in names if name.lower() not in used)
