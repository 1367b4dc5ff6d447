"""Parse and run `CALL sys.name(…)`.

    CALL sys.create_tag('shop.orders', 'eod', 3)
    CALL sys.create_tag(`table` => 'shop.orders', tag => 'eod', snapshot => 3)
    CALL sys.expire_snapshots(table => $table, older_than => now() - INTERVAL 1 DAY)

Arguments are positional, named, or first positional and then named. Values are literals, parameters of the statement, or any
other expression that DuckDB can evaluate. NULL, and an empty text for an optional argument, mean that it is omitted. Every error
has its position in the statement.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

import pyarrow as pa

from lakelet.catalog.names import SYSTEM_DATABASE
from lakelet.catalog.sql_result import SqlResult
from lakelet.errors import InvalidError, LakeletError, NotFoundError
from lakelet.sql.context import Context
from lakelet.sql.lexer.errors import SqlError, nearest
from lakelet.sql.lexer.word_reader import WordReader
from lakelet.sql.lexer.words import Word
from lakelet.sql.procedures.procedure import Argument, Call, Procedure
from lakelet.sql.procedures.registry import PROCEDURES
from lakelet.sql.statement import Params, Statement

_ARROWS = ("=>", ":=")
_PLAIN_NUMBER = re.compile(r"\d[\d_]*(\.\d*)?|\.\d+", re.ASCII)
_CONSTANTS: Mapping[str, object] = {"TRUE": True, "FALSE": False, "NULL": None}


@dataclass(frozen=True, slots=True)
class _Given:
    """A parsed argument: its name if it has one, the positions of the name and the value, and the value."""

    name: str | None
    start: int
    value_start: int
    value: object


def run_call(context: Context, statement: Statement) -> SqlResult:
    """Runs a procedure; returns its result rows."""
    reader = statement.reader
    reader.expect("CALL")
    procedure = _procedure(reader)
    given = _arguments(reader, _Values(context, statement.params))
    reader.finish()
    done = procedure.run(Call(context, _bound(reader, procedure, given)))
    columns = [
        pa.array([row[place] for row in done.rows], column.type) for place, column in enumerate(procedure.returns)
    ]
    return SqlResult.of_table(pa.table(columns, names=[column.name for column in procedure.returns]), done.message)


def find_procedure(name: str) -> Procedure | None:
    """The procedure of that name, ignoring case; None if there is none."""
    return _BY_NAME.get(name.lower())


_BY_NAME = {name: procedure for procedure in PROCEDURES.values() for name in (procedure.name, *procedure.aliases)}


def _procedure(reader: WordReader) -> Procedure:
    first = reader.peek()
    parts = reader.name_parts("the name of a procedure, such as sys.compact")
    if len(parts) < 2 or parts[-2].lower() != SYSTEM_DATABASE:
        known = parts[-1] if find_procedure(parts[-1]) is not None else "…"
        raise SqlError(
            f"{'.'.join(parts)!r}: procedures are in {SYSTEM_DATABASE}, expected CALL {SYSTEM_DATABASE}.{known}(…)",
            reader.text,
            first.start,
        )
    found = find_procedure(parts[-1])
    if found is None:
        shown = SqlError("", reader.text, first.start)
        raise NotFoundError(
            f"line {shown.line}, column {shown.column}: there is no procedure {SYSTEM_DATABASE}.{parts[-1]}"
            f"{nearest(parts[-1], _BY_NAME)}"
        )
    return found


def _arguments(reader: WordReader, values: _Values) -> list[_Given]:
    reader.expect("(")
    given: list[_Given] = []
    while not reader.accept(")"):
        if given and not reader.accept(","):
            raise reader.error("a comma or a closing parenthesis")
        first, name = reader.peek(), None
        if reader.peek().is_name and reader.peek(1).keyword in _ARROWS:
            name = reader.take().text
            reader.take()
        elif given and given[-1].name is not None:
            raise reader.error("an argument with its name, as those before have")
        given.append(_Given(name, first.start, reader.peek().start, values.read(reader)))
    return given


def _bound(reader: WordReader, procedure: Procedure, given: Sequence[_Given]) -> dict[str, object]:
    """Bind the given values to the arguments of a procedure and convert them; SqlError at one that does not fit."""
    found: dict[str, object] = {}
    seen: dict[str, _Given] = {}
    for place, one in enumerate(given):
        argument = _argument(reader, procedure, place, one)
        if argument.name in seen:
            raise SqlError(f"{argument.name!r} is given twice", reader.text, one.start)
        seen[argument.name] = one
        if one.value is None or (one.value == "" and not argument.required):
            continue
        try:
            found[argument.name] = argument.kind.convert(one.value)
        except InvalidError as error:
            raise SqlError(f"{argument.name}: {error}", reader.text, one.value_start) from error
    for argument in procedure.arguments:
        if argument.required and argument.name not in found:
            what = "cannot be NULL" if argument.name in seen else "is missing"
            at = seen[argument.name].value_start if argument.name in seen else reader.words[-1].start
            raise SqlError(f"{argument.name!r} {what}; {signature(procedure)}", reader.text, at)
    return found


def _argument(reader: WordReader, procedure: Procedure, place: int, given: _Given) -> Argument:
    if given.name is None:
        if place >= len(procedure.arguments):
            most = len(procedure.arguments)
            raise SqlError(f"expected at most {most} arguments; {signature(procedure)}", reader.text, given.start)
        return procedure.arguments[place]
    known = {name.lower(): one for one in procedure.arguments for name in (one.name, *one.aliases)}
    found = known.get(given.name.lower())
    if found is None:
        hint = nearest(given.name, [one.name for one in procedure.arguments])
        raise SqlError(f"{procedure.name} has no argument {given.name!r}{hint}", reader.text, given.start)
    return found


def signature(procedure: Procedure) -> str:
    """The signature of a procedure, with optional arguments in brackets."""
    shown = [one.name if one.required else f"[{one.name}]" for one in procedure.arguments]
    return f"{SYSTEM_DATABASE}.{procedure.name}({', '.join(shown)})"


class _Values:
    """Reads and evaluates argument values, with the parameters of the statement."""

    def __init__(self, context: Context, params: Params) -> None:
        self._context = context
        self._params = params
        self._marks = 0

    def read(self, reader: WordReader) -> object:
        """The value of the next argument, up to the comma or parenthesis after it."""
        first = reader.place
        reader.expression(",")
        words = reader.words[first : reader.place]
        sign = -1 if words[0].keyword == "-" and len(words) == 2 else 1
        if len(words) == 1 and words[0].kind == "string" and reader.text[words[0].start] not in "xX":
            return words[0].text
        if len(words) == 1 and words[0].keyword in _CONSTANTS:
            return _CONSTANTS[words[0].keyword]
        last = words[-1]
        if (len(words) == 1 or sign < 0) and last.kind == "number" and _PLAIN_NUMBER.fullmatch(last.text):
            number = last.text.replace("_", "")
            return sign * (int(number) if number.isdigit() else Decimal(number))
        if len(words) == 1 and words[0].kind == "parameter":
            return self._parameter(reader, words[0])
        return self._worked_out(reader, words)

    def _parameter(self, reader: WordReader, word: Word) -> object:
        key = word.text[1:]
        if word.text == "?":
            self._marks += 1
            key = str(self._marks)
        if isinstance(self._params, Mapping) and key in self._params:
            return self._params[key]
        listed = isinstance(self._params, Sequence) and not isinstance(self._params, str) and key.isdigit()
        if listed and 1 <= int(key) <= len(self._params or ()):
            assert isinstance(self._params, Sequence)
            return self._params[int(key) - 1]
        raise SqlError(f"there is no value for the parameter {word.text}", reader.text, word.start)

    def _worked_out(self, reader: WordReader, words: Sequence[Word]) -> object:
        """Evaluates an expression in DuckDB; its parameters are passed under generated names."""
        text, at = "", words[0].start
        params: dict[str, object] = {}
        for word in words:
            text += reader.text[at : word.start]
            at = word.end
            if word.kind == "parameter":
                name = f"p{len(params)}"
                params[name] = self._parameter(reader, word)
                text += f"${name}"
            else:
                text += reader.text[word.start : word.end]
        try:
            rows = self._context.query(f"SELECT ({text})", params or None).rows()
        except LakeletError as error:
            reason = error.reason if isinstance(error, SqlError) else str(error)
            raise SqlError(reason, reader.text, words[0].start) from error
        return rows[0][0]
