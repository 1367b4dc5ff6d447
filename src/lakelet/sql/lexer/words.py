"""The lexer: split SQL text into words with their positions.

    SELECT `a b`, 'it''s' FROM t$files  ->  word SELECT, quoted "a b", symbol ",", string "it's", word FROM, word t$files

The first stage of every statement. Queries and expressions are parsed by DuckDB; the statements that Lakelet adds, and
the few edits of a query before DuckDB sees it, are parsed from these words. The lexical rules are those of DuckDB,
with one addition: names may be quoted in backticks, which DuckDB accepts as well. Every character beyond ASCII that is no
space may be in a name.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from typing import Literal

from lakelet.sql.lexer.errors import SqlError

Kind = Literal["word", "quoted", "string", "number", "parameter", "symbol", "end"]

_TOKEN = re.compile(
    r"""
      (?P<space>\s+|--[^\n]*)
    | (?P<comment>/\*)
    | (?P<escaped>[eE]'(?:[^'\\]|\\.|'')*')
    | (?P<bytes>[xX]'[^']*')
    | (?P<string>'(?:[^']|'')*')
    | (?P<quoted>"(?:[^"]|"")*"|`(?:[^`]|``)*`)
    | (?P<dollar>\$(?P<tag>[A-Za-z_]\w*)?\$(?:.*?)\$(?(tag)(?P=tag))\$)
    | (?P<parameter>\$\w+|\?)
    | (?P<number>(?:0[xX][0-9a-fA-F_]+|0[bB][01_]+|\d[\d_]*(?:\.(?!\.)[\d_]*)?(?:[eE][+-]?\d+)?|\.\d[\d_]*(?:[eE][+-]?\d+)?))
    | (?P<word>(?:[^\W\d]|[^\x00-\x7f])(?:[\w$]|[^\x00-\x7f\s])*)
    | (?P<symbol>=>|->>|->|::|:=|<=|>=|<>|!=|\|\||==|\*\*|//|[^\s])
    """,
    re.VERBOSE | re.DOTALL,
)
_COMMENT_PART = re.compile(r"/\*|\*/")
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{1,2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-7]{1,3}|.)", re.DOTALL)
_ESCAPED = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


@dataclass(frozen=True, slots=True)
class Word:
    """A token: a word, quoted name, literal or symbol, with its value and its position in the text (`end` is exclusive)."""

    text: str
    kind: Kind
    start: int
    end: int

    @property
    def keyword(self) -> str:
        """The keyword in upper case, or the symbol; empty for literals and quoted names."""
        return self.text.upper() if self.kind in ("word", "symbol") else ""

    @property
    def is_name(self) -> bool:
        """Whether it can be part of a name."""
        return self.kind in ("word", "quoted")


def words_of(text: str) -> list[Word]:
    """The words of a text, without comments; SqlError at an unterminated literal, name or comment."""
    found: list[Word] = []
    place = 0
    while place < len(text):
        match = _TOKEN.match(text, place)
        assert match is not None, text[place : place + 20]
        kind = match.lastgroup if match.lastgroup != "tag" else "dollar"
        start, place = place, match.end()
        if kind == "comment":
            place = _comment_end(text, start)
        elif kind != "space":
            found.append(_word(kind or "symbol", match.group(), text, start))
    return found


def statements_of(text: str) -> list[list[Word]]:
    """The words of each statement of a text, without the semicolons between them."""
    found: list[list[Word]] = [[]]
    for word in words_of(text):
        if word.keyword == ";":
            found.append([])
        else:
            found[-1].append(word)
    return [words for words in found if words]


def _comment_end(text: str, start: int) -> int:
    """The end of a comment, which may hold nested ones."""
    depth = 0
    for part in _COMMENT_PART.finditer(text, start):
        depth += 1 if part.group() == "/*" else -1
        if depth == 0:
            return part.end()
    raise SqlError("the comment that begins here has no end", text, start)


def _word(kind: str, source: str, text: str, start: int) -> Word:
    end = start + len(source)
    match kind:
        case "string":
            return Word(source[1:-1].replace("''", "'"), "string", start, end)
        case "escaped":
            return Word(_ESCAPE.sub(_unescaped, source[2:-1].replace("''", "'")), "string", start, end)
        case "bytes":
            return Word(source, "string", start, end)
        case "dollar":
            mark = source.index("$", 1) + 1
            return Word(source[mark:-mark], "string", start, end)
        case "quoted":
            quote = source[0]
            if len(source) == 2:
                raise SqlError("a name cannot be empty", text, start)
            return Word(source[1:-1].replace(quote * 2, quote), "quoted", start, end)
        case "parameter":
            return Word(source, "parameter", start, end)
        case "number":
            return Word(source, "number", start, end)
        case "word":
            return Word(source, "word", start, end)
    if source in ("'", '"', "`"):
        what = "the text" if source == "'" else "the name"
        raise SqlError(f"{what} that begins with {source} here has no end", text, start)
    return Word(source, "symbol", start, end)


def _unescaped(match: re.Match[str]) -> str:
    code = match.group(1)
    if code[0] in "xuU" and len(code) > 1:
        number = int(code[1:], 16)
        return chr(number) if number <= sys.maxunicode else code
    if code.isdigit():
        return chr(int(code, 8))
    return _ESCAPED.get(code, code)
