"""Table functions in a query's text: refuse the unsafe ones, and expand those whose arguments name tables.

    FROM query('SELECT * FROM orders')             ->   FROM (SELECT * FROM orders) AS query
    FROM query_table(['jan', 'feb'], true)         ->   FROM (FROM "jan" UNION ALL BY NAME FROM "feb") AS query_table

DuckDB parses these texts when it binds the query; tables of the lake have to be registered before, so the texts are inlined.
Functions that read files stay as they are. Refused are those that write files, change the engine that queries share, or take
addresses in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from lakelet.errors import InvalidError
from lakelet.sql.lexer.errors import SqlError
from lakelet.sql.lexer.quotes import quoted
from lakelet.sql.lexer.word_reader import WordReader
from lakelet.sql.lexer.words import Word, statements_of, words_of
from lakelet.sql.query.time_travel import alias_follows

REFUSED_FUNCTIONS = frozenset(
    (
        # They write files, or enable something that does.
        *(
            "enable_logging",
            "disable_logging",
            "truncate_duckdb_logs",
            "write_log",
            "enable_profiling",
            "disable_profiling",
        ),
        *("checkpoint", "force_checkpoint"),
        *("create_external_resource", "destroy_external_resource", "register_external_resource"),
        *("deregister_external_resource", "register_external_resource_type"),
        # They take memory addresses, and crash the process if an address is wrong.
        *("arrow_scan", "arrow_scan_dumb", "pandas_scan", "python_arrow_scan", "python_map_function", "seq_scan"),
        # A serialized query, which cannot be checked.
        "json_execute_serialized_sql",
    )
)
_BEFORE = ("FROM", "JOIN", ",", "LATERAL")
_MOST_DEPTH = 16
_QUERIES = ("SELECT", "WITH", "FROM", "VALUES", "TABLE", "(")


def check_functions(text: str, words: Sequence[Word]) -> None:
    """SqlError at a call of a refused function."""
    for place, word in enumerate(words[:-1]):
        if word.is_name and word.text.lower() in REFUSED_FUNCTIONS and words[place + 1].keyword == "(":
            raise SqlError(f"function {word.text.lower()} cannot be called here", text, word.start)


def expanded(text: str, value_of: Callable[[str], object]) -> str:
    """The text with calls of query() and query_table() inlined; `value_of` evaluates an argument."""
    for _ in range(_MOST_DEPTH):
        if "query" not in text.lower():
            return text
        words = words_of(text)
        call = next(_calls(words), None)
        if call is None:
            return text
        reader = WordReader(text, words)
        reader.place = call + 1
        arguments = reader.listed(lambda: reader.expression(","))  # noqa: B023 - it is called at once.
        values = [value_of(argument) for argument in arguments]
        called = words[call].text
        inner = _queried(values) if called.lower() == "query" else _united(values)
        alias = "" if alias_follows(reader) else f" AS {quoted(called)}"
        text = f"{text[: words[call].start]}({inner}\n){alias}{text[words[reader.place - 1].end :]}"
    raise InvalidError(f"query() is nested more than {_MOST_DEPTH} times")


def _calls(words: Sequence[Word]) -> Iterator[int]:
    for place, word in enumerate(words[:-2]):
        named = word.is_name and word.text.lower() in ("query", "query_table") and words[place + 1].keyword == "("
        # A CTE or an alias with column names looks the same, but begins with a name.
        if named and place and words[place - 1].keyword in _BEFORE and not words[place + 2].is_name:
            yield place


def _queried(values: Sequence[object]) -> str:
    text = values[0] if len(values) == 1 else None
    if not isinstance(text, str):
        raise InvalidError("query(): expected one text")
    statements = statements_of(text)
    if len(statements) != 1 or statements[0][0].keyword not in _QUERIES:
        raise InvalidError(f"query(): expected one query, found {text!r}")
    return text[statements[0][0].start : statements[0][-1].end]


def _united(values: Sequence[object]) -> str:
    names = [values[0]] if values and isinstance(values[0], str) else values[0] if values else None
    if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
        raise InvalidError("query_table(): expected the name of a table or a list of names")
    by_name = " BY NAME" if len(values) > 1 and values[1] else ""
    return f" UNION ALL{by_name} ".join(f"FROM {_table(name)}" for name in names)


def _table(name: str) -> str:
    words = words_of(name)
    is_dotted = all(word.is_name if place % 2 == 0 else word.keyword == "." for place, word in enumerate(words))
    if not is_dotted or not words:
        return quoted(name)
    return ".".join(quoted(word.text) for word in words if word.is_name)
