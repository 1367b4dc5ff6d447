"""Every example of the page about databases and tables runs."""

import re
from pathlib import Path

from lakelet.sql.lexer.words import statements_of
from tests.unit.sql_session import SqlSession

PAGE = Path(__file__).parents[3] / "docs" / "sql" / "ddl.md"


def test_the_examples_run_one_after_the_other() -> None:
    examples = re.findall(r"^```sql\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    assert len(examples) >= 8
    sql = SqlSession()
    count = 0
    for example in examples:
        for words in statements_of(example):
            text = example[words[0].start : words[-1].end]
            assert sql.rows(text) is not None, text
            count += 1
    assert count >= 60
    assert sql.lake.databases() == []
