import pytest

from lakelet.cli.output.text_table import drawn_table, shown_text


def drawn(columns: list[str], rows: list[list[str]], **how: object) -> str:
    return "\n".join(drawn_table(columns, rows, **how))  # type: ignore[arg-type]


def test_a_table_with_numbers_at_the_right() -> None:
    assert drawn(["id", "name"], [["1", "x"], ["100", "yz"]], numeric=[True, False]) == (
        "┌─────┬──────┐\n│  id │ name │\n├─────┼──────┤\n│   1 │ x    │\n│ 100 │ yz   │\n└─────┴──────┘"
    )


def test_wide_letters_take_two_places() -> None:
    assert drawn(["n"], [["日本"], ["abcd"]]).splitlines()[3:5] == ["│ 日本 │", "│ abcd │"]


def test_a_table_without_rows() -> None:
    assert drawn(["a"], []) == "┌───┐\n│ a │\n├───┤\n└───┘"


def test_lines_are_cut_to_the_terminal_and_the_widest_column_first() -> None:
    lines = drawn(["id", "text"], [["1", "x" * 100]], width=40).splitlines()
    assert {len(line) for line in lines} == {40}
    assert lines[3] == f"│ 1  │ {'x' * 30}… │"


@pytest.mark.parametrize("width", range(1, 60))
def test_any_width_ends(width: int) -> None:
    lines = drawn(["a", "b", "c"], [["x" * 50, "y" * 10, "z"]], width=width).splitlines()
    assert len({len(line) for line in lines}) == 1
    assert len(lines[0]) <= max(width, 3 * 6 + 10)


def test_rows_that_come_late_may_be_wider() -> None:
    rows = [["1"]] * 1_000 + [["12345"]]
    assert drawn(["n"], rows).splitlines()[-2] == "│ 12345 │"


def test_what_would_move_the_cursor_is_a_sign() -> None:
    assert shown_text("a\nb\tc\x1b[1m\x7f") == "a⏎b␉c␛[1m␡"
    assert drawn(["x\ny"], [["a\rb"]]).splitlines()[1:4] == ["│ x⏎y │", "├─────┤", "│ a␍b │"]


def test_texts_of_several_lines() -> None:
    assert drawn(["a", "b"], [["1", "x"], ["2", "y\nzz"], ["3", "x"], ["4", "x"]]).splitlines()[2:] == [
        "├───┼────┤",
        "│ 1 │ x  │",
        "├───┼────┤",
        "│ 2 │ y  │",
        "│   │ zz │",
        "├───┼────┤",
        "│ 3 │ x  │",
        "│ 4 │ x  │",
        "└───┴────┘",
    ]
