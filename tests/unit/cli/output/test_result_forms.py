import io
import json
from collections.abc import Iterator

import pyarrow as pa
import pytest

from lakelet.catalog.sql_result import SqlResult
from lakelet.cli.output.result_forms import DEFAULT_ROWS, write_result

ROWS = pa.table({"id": [1, 2], "text": ["a|b", None], "list": [[1], []]})


def written(result: SqlResult, form: str, limit: int | None = None) -> str:
    out = io.StringIO()
    write_result(result, form, out, limit)
    return out.getvalue()


@pytest.mark.parametrize(
    ("form", "text"),
    [
        (
            "table",
            "┌────┬──────┬──────┐\n│ id │ text │ list │\n├────┼──────┼──────┤\n"
            "│  1 │ a|b  │ [1]  │\n│  2 │ NULL │ []   │\n└────┴──────┴──────┘\n2 rows\n",
        ),
        (
            "vertical",
            "─[ row 1 ]─────\nid   │ 1\ntext │ a|b\nlist │ [1]\n─[ row 2 ]─────\nid   │ 2\ntext │ NULL\nlist │ []\n2 rows\n",
        ),
        ("csv", '"id","text","list"\n1,"a|b","[1]"\n2,,"[]"\n'),
        ("markdown", "| id | text | list |\n| ---: | --- | --- |\n| 1 | a\\|b | [1] |\n| 2 | NULL | [] |\n"),
        (
            "json",
            '[\n{"id": 1, "text": "a|b", "list": [1]},\n{"id": 2, "text": null, "list": []}\n]\n',
        ),
        ("ndjson", '{"id": 1, "text": "a|b", "list": [1]}\n{"id": 2, "text": null, "list": []}\n'),
        ("object", '{"rows": [{"id": 1, "text": "a|b", "list": [1]}, {"id": 2, "text": null, "list": []}]}\n'),
    ],
)
def test_every_form(form: str, text: str) -> None:
    assert written(SqlResult.of_table(ROWS), form) == text


def test_texts_of_several_lines() -> None:
    result = SqlResult.of_table(pa.table({"id": ["x"], "text": ["a\nb"]}))
    assert written(result, "vertical") == "─[ row 1 ]─────\nid   │ x\ntext │ a\n     │ b\n1 row\n"
    assert written(result, "markdown").endswith("| x | a<br>b |\n")
    assert written(result, "ndjson") == '{"id": "x", "text": "a\\nb"}\n'
    assert written(result, "csv").endswith('"x","a\nb"\n')


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("table", "┌────┐\n│ id │\n├────┤\n└────┘\n0 rows\n"),
        ("vertical", "0 rows\n"),
        ("csv", '"id"\n'),
        ("markdown", "| id |\n| ---: |\n"),
        ("json", "[\n\n]\n"),
        ("ndjson", ""),
        ("object", '{"rows": []}\n'),
    ],
)
def test_every_form_without_rows(form: str, text: str) -> None:
    assert written(SqlResult.of_table(pa.table({"id": pa.array([], pa.int64())})), form) == text


def test_what_was_done_is_a_line_for_people_and_rows_for_programs() -> None:
    assert written(SqlResult.done("created table t"), "table") == "created table t\n"
    assert json.loads(written(SqlResult.changed(3, 2), "object")) == {
        "message": "2 rows changed",
        "rows": [{"snapshot_id": 3, "rows": 2}],
    }
    assert written(SqlResult.changed(3, 2), "csv") == '"snapshot_id","rows"\n3,2\n'


def many(rows: int) -> SqlResult:
    return SqlResult.of_table(pa.table({"n": range(rows)}))


def test_a_table_shows_the_first_rows_and_says_how_many_there_are() -> None:
    shown = written(many(250), "table")
    assert shown.count("│ ") == DEFAULT_ROWS + 1
    assert shown.endswith("100 of 250 rows; limit 0 shows all\n")
    assert written(many(250), "table", 3).endswith("3 of 250 rows; limit 0 shows all\n")
    assert written(many(250), "table", 0).endswith("│ 249 │\n└─────┘\n250 rows\n")


@pytest.mark.parametrize("form", ["csv", "json", "ndjson", "markdown", "object"])
def test_programs_get_all_rows_unless_they_say_otherwise(form: str) -> None:
    assert "249" in written(many(250), form)
    some = written(many(250), form, 3)
    assert "2" in some
    assert "3" not in some


class Watched:
    """Batches that count how many of them were taken."""

    def __init__(self, batches: int) -> None:
        self.taken = 0
        self._batches = batches
        self.closed = False

    def result(self) -> SqlResult:
        return SqlResult(pa.schema([("n", pa.int64())]), self._read, close=self._close)

    def _read(self) -> Iterator[pa.RecordBatch]:
        for number in range(self._batches):
            self.taken += 1
            yield pa.record_batch({"n": pa.array([number])})

    def _close(self) -> None:
        self.closed = True


def test_what_is_not_written_is_not_read() -> None:
    watched = Watched(1000)
    written(watched.result(), "csv", 5)
    assert watched.taken == 5
    assert watched.closed


def test_a_failed_write_closes_the_result() -> None:
    class Full(io.StringIO):
        def write(self, text: str) -> int:
            raise OSError("no space")

    watched = Watched(3)
    with pytest.raises(OSError, match="no space"):
        write_result(watched.result(), "ndjson", Full(), None)
    assert watched.closed
