"""CALL: arguments by place and by name, their values, and what is said of wrong ones."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

from lakelet.catalog.lake import Lake
from lakelet.errors import InvalidError, LakeletError, NotFoundError
from lakelet.sql.context import Context
from lakelet.sql.lexer.errors import SqlError
from lakelet.sql.lexer.word_reader import WordReader
from lakelet.sql.lexer.words import words_of
from lakelet.sql.procedures import call as call_module
from lakelet.sql.procedures.call import find_procedure, run_call, signature
from lakelet.sql.procedures.procedure import TABLE_ARGUMENT, Argument, Call, Column, Done, Procedure
from lakelet.sql.procedures.registry import PROCEDURES
from lakelet.sql.procedures.values import (
    AGE,
    FLAG,
    LENGTH,
    MOMENT,
    NAMES,
    NUMBER,
    OPTIONS,
    PARTITION,
    PARTITIONS,
    PATTERN,
    TEXT,
    VERSION,
)
from lakelet.sql.statement import Params, Statement
from lakelet.storage.memory import MemoryStore

ARGUMENTS = (
    Argument("text", TEXT, "Text.", required=True, aliases=("other_text",)),
    Argument("number", NUMBER, "A number."),
    Argument("flag", FLAG, "A flag."),
    Argument("moment", MOMENT, "A moment."),
    Argument("length", LENGTH, "A length."),
    Argument("age", AGE, "An age."),
    Argument("version", VERSION, "A version."),
    Argument("names", NAMES, "Names."),
    Argument("pattern", PATTERN, "A pattern."),
    Argument("options", OPTIONS, "Options."),
    Argument("partitions", PARTITIONS, "Partitions."),
    Argument("partition", PARTITION, "A partition."),
)
RETURNS = (Column("said", pa.string()), Column("count", pa.int64()))


class Called:
    """A procedure `sys.try_it` that keeps what it is given."""

    def __init__(self) -> None:
        self.context = Context(Lake(MemoryStore()))
        self.values: dict[str, Any] = {}
        self.procedure = Procedure("try_it", "Tries.", ARGUMENTS, RETURNS, self.run, aliases=("try_that",))

    def run(self, call: Call) -> Done:
        self.values = dict(call.values)
        return Done("tried it", [("a", 1), ("b", None)])

    def __call__(self, text: str, params: Params = None) -> dict[str, Any]:
        call(self.context, f"CALL sys.try_it({text})", params)
        return self.values


def call(context: Context, text: str, params: Params = None) -> list[tuple[Any, ...]]:
    return run_call(context, Statement(WordReader(text, words_of(text)), params)).rows()


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch) -> Called:
    made = Called()
    known = {**call_module._BY_NAME, "try_it": made.procedure, "try_that": made.procedure}
    monkeypatch.setattr(call_module, "_BY_NAME", known)
    return made


def test_what_comes_back(called: Called) -> None:
    text = "call `Sys`.\"try_that\"('x')"
    result = run_call(called.context, Statement(WordReader(text, words_of(text))))
    assert (result.columns, result.message) == (("said", "count"), "tried it")
    assert result.rows() == [("a", 1), ("b", None)]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("'x'", {"text": "x"}),
        ("'x', 1, TRUE", {"text": "x", "number": 1, "flag": True}),
        ("text => 'x', flag => false", {"text": "x", "flag": False}),
        ("`text` => 'x', NUMBER => -1", {"text": "x", "number": -1}),
        ("other_text := 'it''s'", {"text": "it's"}),
        ("'x', flag => true, number => 1_000", {"text": "x", "flag": True, "number": 1000}),
        ("'x', NULL, null", {"text": "x"}),
        ("'x', version => ''", {"text": "x"}),
        ("''", {"text": ""}),
        ("'x', 2 * (3 + 4)", {"text": "x", "number": 14}),
        ("'x', (SELECT max(n) FROM range(4) AS r(n)) -- three\n", {"text": "x", "number": 3}),
        ("concat('a', 'b'), cast('7' AS BIGINT)", {"text": "ab", "number": 7}),
    ],
)
def test_arguments(called: Called, text: str, values: dict[str, Any]) -> None:
    assert called(text) == values


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("moment => 1730292023000", 1730292023000),
        ("moment => '2026-01-01'", 1767225600000),
        ("moment => TIMESTAMP '2026-01-01 00:00:01'", 1767225601000),
        ("moment => DATE '2026-01-01'", 1767225600000),
        ("moment => '2026-01-01T01:00:00+01:00'", 1767225600000),
        ("length => '1 d'", timedelta(days=1)),
        ("length => INTERVAL 90 MINUTE", timedelta(minutes=90)),
        ("age => '1 d'", "1 d"),
        ("age => INTERVAL '36' HOUR", timedelta(hours=36)),
        ("age => DATE '2026-01-01'", datetime(2026, 1, 1, tzinfo=UTC)),
        ("age => TIMESTAMPTZ '2026-01-02 00:00:00+00' - INTERVAL 1 DAY", datetime(2026, 1, 1, tzinfo=UTC)),
        ("moment => TIMESTAMPTZ '2026-01-01 01:00:00+01'", 1767225600000),
        ("version => 3", 3),
        ("version => 'eod'", "eod"),
        ("names => 'a, b'", ("a", "b")),
        ("names => ['a', 'b']", ("a", "b")),
        ("options => 'a.b=1, c = x=y'", {"a.b": "1", "c": "x=y"}),
        ("options => 'fields=a,b,c=1'", {"fields": "a,b", "c": "1"}),
        ("options => MAP {'a': '1', 'b': '2'}", {"a": "1", "b": "2"}),
        ("options => MAP {'a': 1}", {"a": "1"}),
        ("partitions => 'a=1,b=2;a=3'", ({"a": "1", "b": "2"}, {"a": "3"})),
        ("partitions => 'a=__DEFAULT_PARTITION__,b=\"x\"'", ({"a": None, "b": "x"},)),
        ("partition => 'a=1=2,b='", {"a": "1=2", "b": ""}),
    ],
)
def test_kinds(called: Called, text: str, value: object) -> None:
    name = text.split(" ", 1)[0]
    assert called(f"'x', {text}")[name] == value


def test_patterns(called: Called) -> None:
    assert called("'x', pattern => 'a|b.*'")["pattern"].fullmatch("bcd")


@pytest.mark.parametrize(
    ("text", "params", "values"),
    [
        ("$t, $n", {"t": "x", "n": 5, "unused": 1}, {"text": "x", "number": 5}),
        ("?, number => ?", ["x", 5], {"text": "x", "number": 5}),
        ("$2, $1", [5, "x"], {"text": "x", "number": 5}),
        ("upper($t), $n + $n", {"t": "x", "n": 5}, {"text": "X", "number": 10}),
        ("concat(?, ?), ?", ["a", "b", 5], {"text": "ab", "number": 5}),
        ("$t, moment => $m", {"t": "x", "m": date(1970, 1, 2)}, {"text": "x", "moment": 86_400_000}),
        ("$t, length => $l", {"t": "x", "l": timedelta(hours=1)}, {"text": "x", "length": timedelta(hours=1)}),
        ("$t, number => $n", {"t": "x", "n": None}, {"text": "x"}),
    ],
)
def test_parameters(called: Called, text: str, params: Params, values: dict[str, Any]) -> None:
    assert called(text, params) == values


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("", 17, "'text' is missing; sys.try_it(text, [number], "),
        ("number => 1", 28, "'text' is missing"),
        ("NULL", 17, "'text' cannot be NULL"),
        ("5", 17, "text: expected text in quotes, found 5"),
        ("TRUE", 17, "text: expected text in quotes, found True"),
        ("'x', '1'", 22, "number: expected a whole number, found '1'"),
        ("'x', 1.5", 22, "number: expected a whole number"),
        ("'x', -.5", 22, "number: expected a whole number"),
        ("'x', -'5'", 22, ""),
        ("'x', TRUE", 22, "number: expected a whole number, found True"),
        ("'x', flag => 1", 30, "flag: expected TRUE or FALSE, found 1"),
        ("'x', moment => 'soon'", 32, "moment: timestamp 'soon': expected ISO 8601"),
        ("'x', moment => 1.5", 32, "moment: expected a timestamp"),
        ("'x', length => 'long'", 32, "length: expected a length of time such as '1 d', found 'long'"),
        ("'x', length => INTERVAL 1 MONTH", 32, "length: expected a length of time in days or less"),
        ("'x', length => 5", 32, "length: expected a length of time"),
        ("'x', age => 5", 29, "age: expected an age such as '1 d'"),
        ("'x', version => TRUE", 33, "version: expected the id of a snapshot or the name of a tag"),
        ("'x', names => 'a,,b'", 31, "names: expected names separated by commas"),
        ("'x', pattern => '('", 33, "pattern: '(' is no regular expression"),
        ("'x', options => 'a'", 33, "options: expected options such as"),
        ("'x', partitions => 'a'", 36, "partitions: expected partitions such as"),
        ("'x', nubmer => 1", 22, "try_it has no argument 'nubmer'; did you mean number?"),
        ("'x', text => 'y'", 22, "'text' is given twice"),
        ("text => 'x', other_text => 'y'", 30, "'text' is given twice"),
        ("text => 'x', 1", 30, "expected an argument with its name"),
        ("'x', ?", 22, "no value for the parameter ?"),
        ("'x', $n", 22, "no value for the parameter $n"),
        ("'x', no_function(1)", 22, "no_function"),
        ("'x', 1 +", 22, ""),
        ("'x',", 21, "expected an expression, found )"),
        ("'x' 'y'", 17, ""),
        ("'x' AS y", 17, ""),
        ("'x' FROM t", 17, ""),
        (", 'x'", 17, "expected an expression"),
    ],
)
def test_wrong_arguments(called: Called, text: str, column: int, message: str) -> None:
    with pytest.raises(SqlError) as caught:
        called(text)
    assert (caught.value.line, caught.value.column) == (1, column), caught.value
    assert message in caught.value.reason
    assert called.values == {}


def test_too_many_arguments(called: Called) -> None:
    given = ", ".join(["'x'", *["NULL"] * 12])
    with pytest.raises(SqlError, match="expected at most 12 arguments") as caught:
        called(given)
    assert caught.value.column == 17 + len(given) - 4


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("CALL", "expected the name of a procedure"),
        ("CALL sys", "procedures are in sys"),
        ("CALL try_it('x')", r"expected CALL sys\.try_it"),
        ("CALL other.try_it('x')", "procedures are in sys"),
        ("CALL enable_logging('x')", r"expected CALL sys\.…\("),
        ("CALL sys.try_it", r"expected \(, found the end"),
        ("CALL sys.try_it('x'", "expected a comma or a closing parenthesis, found the end"),
        ("CALL sys.try_it('x') now", "expected the end of the statement, found now"),
        ("CALL sys.'x'()", "expected the name"),
    ],
)
def test_wrong_statements(called: Called, text: str, message: str) -> None:
    with pytest.raises(SqlError, match=message):
        call(called.context, text)
    assert called.values == {}


def test_unknown_procedures() -> None:
    with pytest.raises(
        NotFoundError, match=r"line 2, column 2: there is no procedure sys\.compat; did you mean compact"
    ):
        call(Context(Lake(MemoryStore())), "CALL\n sys.compat('t')")


def test_declarations_are_sound() -> None:
    names = [name for one in PROCEDURES.values() for name in (one.name, *one.aliases)]
    assert len(names) == len(set(names)) == len([name for name in names if name == name.lower()])
    assert all(find_procedure(name.upper()) is not None for name in names)
    for procedure in PROCEDURES.values():
        spelled = [name.lower() for one in procedure.arguments for name in (one.name, *one.aliases)]
        assert len(spelled) == len(set(spelled)), procedure.name
        assert procedure.meaning.endswith(".")
        assert procedure.returns
        assert all(one.meaning.endswith(".") for one in procedure.arguments), procedure.name
    assert signature(PROCEDURES["rescale"]).startswith("sys.rescale(table, [bucket_num]")


ODD = [
    "''",
    "'x'",
    "'d.t'",
    "'d.t$files'",
    "'a=b'",
    "'*'",
    "-1",
    "0",
    "7",
    "99999999999999999999999",
    "TRUE",
    "NULL",
    "1.5",
    "'('",
]


@pytest.mark.parametrize("procedure", PROCEDURES.values(), ids=lambda procedure: procedure.name)
def test_odd_values_are_refused_or_done(procedure: Procedure) -> None:
    """Whatever is given, an error is one of Lakelet's, and rows stay."""
    for argument in procedure.arguments:
        lake = Lake(MemoryStore())
        lake.create_database("d")
        columns = [("id", "INT"), ("p", "STRING")]
        lake.create_table("d.t", columns, partitioned_by=["p"]).write([{"id": 1, "p": "a"}])
        context = Context(lake)
        given = {
            one.name: "'d.t'" if one.kind is TABLE_ARGUMENT.kind else "'x'"
            for one in procedure.arguments
            if one.required
        }
        for odd in ODD:
            arguments = ", ".join(f"{name} => {value}" for name, value in {**given, argument.name: odd}.items())
            try:
                call(context, f"CALL sys.{procedure.name}({arguments})")
            except LakeletError:
                continue
        assert lake.table("d.t").scan().count() == 1


def test_a_system_table_is_no_table() -> None:
    lake = Lake(MemoryStore())
    lake.create_database("d")
    lake.create_table("d.t", [("id", "INT")])
    with pytest.raises(InvalidError, match="expected a table, found a system table"):
        call(Context(lake), "CALL sys.compact('d.t$files')")
    with pytest.raises(NotFoundError, match=r"'d\.u' .*; there are t"):
        call(Context(lake), "CALL sys.compact('d.u')")
