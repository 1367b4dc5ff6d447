"""Find the target table of a statement in its words.

    INSERT INTO t …   UPDATE t …   DELETE FROM t …   MERGE INTO t …   ALTER TABLE [IF EXISTS] t …   COPY t FROM …

Only statements that DuckDB supports for its own tables are considered, and they are not parsed: DuckDB does that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lakelet.sql.lexer.word_reader import WordReader
from lakelet.sql.lexer.words import Word
from lakelet.sql.temporary.objects import TEMPORARY, table_sql

Edit = tuple[int, int, str]
# Keywords that may come between the first one and the name.
_BEFORE_NAMES = {
    "INSERT": ("OR", "REPLACE", "IGNORE", "INTO", "OVERWRITE", "TABLE"),
    "UPDATE": (),
    "DELETE": ("FROM",),
    "MERGE": ("INTO",),
    "TRUNCATE": ("TABLE",),
    "RENAME": ("TABLE",),
    "ALTER": ("TABLE", "VIEW", "IF", "EXISTS"),
    "DROP": ("TABLE", "VIEW", "IF", "EXISTS"),
    "COPY": (),
    "COMMENT": ("ON", "TABLE", "VIEW", "COLUMN"),
}


@dataclass(frozen=True, slots=True)
class Target:
    """The word range of the target's name in a statement. `words` are the keywords before it."""

    parts: tuple[str, ...]
    first: int
    behind: int
    words: tuple[str, ...]

    def edits(self, words: Sequence[Word], name: str) -> list[Edit]:
        """Edits that replace this name, and every qualified mention of a temporary table, by the table in DuckDB."""
        found = [(words[self.first].start, words[self.behind - 1].end, table_sql(name))]
        place = self.behind
        while place < len(words):
            length = _mention(words, place, name)
            if length:
                found.append((words[place].start, words[place + length - 1].end, table_sql(name)))
            place += length or 1
        return found


def target_of(reader: WordReader) -> Target | None:
    """The target of a statement, None if it has none that DuckDB could change."""
    words = reader.words
    place = _keyword_place(words)
    if place is None:
        return None
    said = [words[place].keyword]
    between = _BEFORE_NAMES[said[0]]
    place += 1
    while place < len(words) and words[place].keyword in between and not _is_name_here(words, place):
        said.append(words[place].keyword)
        place += 1
    first, parts = place, []
    while place < len(words) and words[place].is_name:
        parts.append(words[place].text)
        place += 1
        if place + 1 < len(words) and words[place].keyword == "." and words[place + 1].is_name:
            place += 1
        else:
            break
    if said[-1] == "COLUMN" and len(parts) > 1:
        return Target(tuple(parts[:-1]), first, place - 2, tuple(said))
    return Target(tuple(parts), first, place, tuple(said)) if parts else None


def _keyword_place(words: Sequence[Word]) -> int | None:
    """The index of the statement's keyword: at the beginning, or after common table expressions."""
    if words[0].keyword != "WITH":
        return 0 if words[0].keyword in _BEFORE_NAMES else None
    depth = 0
    for place, word in enumerate(words):
        depth += (word.keyword == "(") - (word.keyword == ")")
        if depth == 0 and place and words[place - 1].keyword == ")" and word.keyword in _BEFORE_NAMES:
            return place
    return None


def _is_name_here(words: Sequence[Word], place: int) -> bool:
    """Whether a word that may precede the name is the name itself, as in `UPDATE t` of a table named like a keyword."""
    return place + 1 < len(words) and words[place + 1].keyword == "."


def _mention(words: Sequence[Word], place: int, name: str) -> int:
    """The number of words from here that form `temp.name` or `temp.main.name`."""
    if not words[place].is_name or words[place].text.lower() != TEMPORARY or words[place - 1].keyword == ".":
        return 0
    texts = [word.text.lower() if word.is_name else word.keyword for word in words[place : place + 5]]
    for between in ([], ["main", "."]):
        if texts[: 3 + len(between)] == [TEMPORARY, ".", *between, name.lower()]:
            return 3 + len(between)
    return 0
