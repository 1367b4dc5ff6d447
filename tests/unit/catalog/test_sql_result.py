import pyarrow as pa
import pytest

from lakelet import InvalidError, Lake
from lakelet.sql import SqlResult
from lakelet.storage.memory import MemoryStore


@pytest.fixture
def lake() -> Lake:
    return Lake(MemoryStore())


ROWS = "SELECT * FROM (VALUES (1, 'a'), (2, NULL)) v(id, v)"


def test_rows_come_in_every_form(lake: Lake) -> None:
    assert lake.sql(ROWS).rows() == [(1, "a"), (2, None)]
    assert list(lake.sql(ROWS)) == [(1, "a"), (2, None)]
    assert lake.sql(ROWS).to_arrow().to_pydict() == {"id": [1, 2], "v": ["a", None]}
    assert lake.sql(ROWS).to_pandas()["id"].tolist() == [1, 2]
    assert lake.sql(ROWS).to_polars()["v"].to_list() == ["a", None]
    assert lake.sql(ROWS).to_reader().read_all().num_rows == 2
    assert pa.table(lake.sql(ROWS)).num_rows == 2
    assert sum(batch.num_rows for batch in lake.sql(ROWS).to_batches()) == 2
    assert lake.sql(ROWS).columns == ("id", "v")
    assert "id int32" in repr(lake.sql(ROWS))


def test_rows_of_a_query_are_read_once(lake: Lake) -> None:
    result = lake.sql(ROWS)
    result.rows()
    with pytest.raises(InvalidError, match="have been read"):
        result.rows()


def test_a_result_without_rows_still_has_columns(lake: Lake) -> None:
    table = lake.sql("SELECT 1 AS a, 'x' AS b WHERE false").to_arrow()
    assert (table.num_rows, table.column_names) == (0, ["a", "b"])


def test_small_answers_are_read_as_often_as_wanted() -> None:
    done = SqlResult.done("made it")
    assert (done.rows(), done.rows(), done.message) == ([("made it",)], [("made it",)], "made it")
    changed = SqlResult.changed(3, 1)
    assert (changed.rows(), changed.message) == ([(3, 1)], "1 row changed")
    assert SqlResult.changed(None, 2000).message == "2,000 rows changed"
    assert SqlResult.of_rows({"a": pa.int64(), "b": pa.string()}, [(1, "x")]).rows() == [(1, "x")]
    assert SqlResult.of_rows({"a": pa.int64()}, []).rows() == []


def test_a_result_lets_go_when_it_was_read_or_closed() -> None:
    closed: list[int] = []
    table = pa.table({"a": [1]})

    def result() -> SqlResult:
        return SqlResult(table.schema, lambda: iter(table.to_batches()), close=lambda: closed.append(1))

    result().rows()
    assert len(closed) == 1
    with result():
        pass
    assert len(closed) == 2
    again = result()
    again.close()
    again.close()
    assert len(closed) == 3
    batches = result().to_batches()
    next(batches)
    batches.close()  # type: ignore[attr-defined]
    assert len(closed) == 4


def test_rows_stream(lake: Lake) -> None:
    result = lake.sql("SELECT * FROM range(10000000000) r(i)")
    first = next(iter(result.to_batches()))
    assert first.num_rows > 0
    result.close()
