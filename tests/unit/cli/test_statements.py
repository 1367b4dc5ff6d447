import pytest

from lakelet.cli import statements
from lakelet.errors import InvalidError
from lakelet.sql.lexer.errors import SqlError


def test_texts_are_cut_at_semicolons_that_are_none_of_a_literal() -> None:
    found = statements.cut("SELECT ';' ; -- a; b\n INSERT INTO t VALUES ($x, $y);;")
    assert [statement.text for statement in found] == ["SELECT ';'", "INSERT INTO t VALUES ($x, $y)"]
    assert [statement.parameters for statement in found] == [frozenset(), frozenset({"x", "y"})]


@pytest.mark.parametrize(
    ("typed", "ready", "waiting"),
    [
        ("SELECT 1", "", "SELECT 1"),
        ("SELECT 1;", "SELECT 1;", ""),
        ("SELECT 1; SEL", "SELECT 1;", " SEL"),
        ("SELECT ';", "", "SELECT ';"),
        ("SELECT 1; SELECT 'a;b", "SELECT 1;", " SELECT 'a;b"),
        ("/* a; ", "", "/* a; "),
        ("SELECT 1; /* a; ", "SELECT 1;", " /* a; "),
        ("SELECT 1 -- ;", "", "SELECT 1 -- ;"),
    ],
)
def test_what_can_run_while_it_is_typed(typed: str, ready: str, waiting: str) -> None:
    assert statements.complete_part(typed) == (ready, waiting)


def test_errors_have_their_place_in_the_whole_text() -> None:
    whole = "SELECT 1;\n\n  SELECT\n FORM t"
    statement = statements.cut(whole)[1]
    error = statements.placed_error(SqlError("wrong", statement.text, statement.text.index("FORM")), whole, statement)
    assert (error.line, error.column) == (4, 2)
    assert statements.pointer(error) == "   FORM t\n   ^"


def test_the_pointer_follows_tabulators() -> None:
    text = "\tSELEC 1"
    assert statements.pointer(SqlError("wrong", text, 1)) == "  \tSELEC 1\n  \t^"


def test_values_of_parameters() -> None:
    given = {"n": "7", "f": "1.5", "t": "true", "x": "null", "s": "abc", "q": '"007"', "o": "{}", "d": "2026-01-01"}
    assert statements.parameter_values(given) == {
        "n": 7,
        "f": 1.5,
        "t": True,
        "x": None,
        "s": "abc",
        "q": "007",
        "o": "{}",
        "d": "2026-01-01",
    }


def test_each_statement_gets_its_own_parameters() -> None:
    first, second, third = statements.cut("SELECT $a; SELECT $a + $b; SELECT 1")
    values = {"a": 1, "b": 2}
    assert statements.values_for(first, values) == {"a": 1}
    assert statements.values_for(second, values) == values
    assert statements.values_for(third, values) is None
    with pytest.raises(InvalidError, match=r"\$b has no value"):
        statements.values_for(second, {"a": 1})


def test_a_value_that_nobody_asks_for() -> None:
    with pytest.raises(InvalidError, match=r"parameter \$amout; did you mean amount"):
        statements.check_all_used(statements.cut("SELECT $amount"), {"amout": 1})
