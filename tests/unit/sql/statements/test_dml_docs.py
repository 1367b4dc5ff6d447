"""The examples of docs/sql/dml.md do what the page says."""

import re
from pathlib import Path

import pytest

from lakelet import LakeletError
from tests.unit.sql_session import SqlSession

PAGE = Path(__file__).parents[4] / "docs" / "sql" / "dml.md"
EXAMPLE = re.compile(r"(?P<statement>.*?;)\n(?:-- => (?P<result>[^\n]*)\n)?", re.DOTALL)


def examples() -> list[tuple[str, str | None]]:
    blocks = re.findall(r"```sql\n(.*?)```", PAGE.read_text(), re.DOTALL)
    return [(found["statement"], found["result"]) for block in blocks for found in EXAMPLE.finditer(block)]


def test_the_examples_do_what_the_page_says() -> None:
    sql = SqlSession()
    found = examples()
    assert sum(result is not None for _, result in found) > 15
    for statement, result in found:
        if result is not None and result.startswith("refused: "):
            with pytest.raises(LakeletError, match=re.escape(result.removeprefix("refused: "))):
                sql.rows(statement)
            continue
        rows = sql.rows(statement)
        if result is not None:
            count = len(rows) if "RETURNING" in statement else rows[0][1]
            assert f"{count} row{'' if count == 1 else 's'}" == result, statement
