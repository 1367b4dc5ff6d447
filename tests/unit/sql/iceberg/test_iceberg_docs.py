"""Every example of the page about Iceberg tables runs."""

import re
from pathlib import Path

from lakelet.sql.lexer.words import statements_of
from lakelet.storage.open import open_store
from tests.unit.sql_session import SqlSession

PAGE = Path(__file__).parents[4] / "docs" / "iceberg.md"


def test_the_examples_run_one_after_the_other(tmp_path: Path) -> None:
    text = PAGE.read_text(encoding="utf-8").replace("/tmp/lakelet-example", str(tmp_path / "example"))
    examples = re.findall(r"^```sql\n(.*?)^```", text, re.M | re.S)
    sql = SqlSession(open_store(str(tmp_path / "lake"), {}))
    count = 0
    for example in examples:
        for words in statements_of(example):
            statement = example[words[0].start : words[-1].end]
            assert sql.rows(statement) is not None, statement
            count += 1
    assert count >= 50
    assert sql.rows("SHOW DATABASES IN iceberg") == []
