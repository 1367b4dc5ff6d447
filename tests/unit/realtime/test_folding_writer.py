"""A writer of a table whose engine folds: every version of a key counts, in memory and after a crash."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lakelet import InvalidError
from tests.unit.realtime.written_table import WrittenTable, kill

COLUMNS = [("p", "STRING NOT NULL"), ("id", "BIGINT NOT NULL"), ("n", "INT"), ("t", "STRING")]
SUM = {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum", "bucket": "2"}
REMOVED = {"aggregation.remove-record-on-delete": "true"}


def written(folder: Path, options: dict[str, str]) -> WrittenTable:
    return WrittenTable(folder, columns=COLUMNS, key=("p", "id"), partitions=("p",), options=options)


def row(p: str, n: int | None, t: str | None = None) -> dict[str, Any]:
    return {"p": p, "id": 1, "n": n, "t": t}


def test_versions_in_memory_are_folded_with_files_of_their_partition(tmp_path: Path) -> None:
    table = written(tmp_path, SUM)
    table.table.write([row("a", 1), row("c", 7)])
    with table.writer() as writer:
        writer.put(row("a", 2))
        writer.put_many([row("b", 10), row("a", 3, "x")])
        assert writer.get({"p": "a", "id": 1}) == row("a", 6, "x")
        assert writer.get({"p": "b", "id": 1}) == row("b", 10)
        expected = [row("a", 6, "x"), row("b", 10), row("c", 7)]
        assert sorted(writer.scan().to_arrow().to_pylist(), key=str) == expected
        shown, replaced = writer.scan().overlay()
        assert sorted(shown.to_pylist(), key=str) == expected[:2]
        assert {one["p"] for one in replaced.to_pylist()} == {"a", "b"}
        assert not writer.put_if_absent(row("b", 1))
        assert writer.put_if_absent(row("d", 1))
    assert table.rows() == [("a", 1, 6, "x"), ("b", 1, 10, None), ("c", 1, 7, None), ("d", 1, 1, None)]


def test_a_log_keeps_every_version(tmp_path: Path) -> None:
    table = written(tmp_path, SUM)
    writer = table.writer()
    for number in range(4):
        writer.put(row("a", number))
    kill(writer)
    with table.writer() as writer:
        assert writer.get({"p": "a", "id": 1}) == row("a", 6)


def test_a_row_that_lacks_columns_updates_the_others(tmp_path: Path) -> None:
    table = written(tmp_path, {"merge-engine": "partial-update", "bucket": "1"})
    with table.writer() as writer:
        writer.put({"p": "a", "id": 1, "n": 1})
        writer.put({"p": "a", "id": 1, "t": "x"})
        assert writer.get({"p": "a", "id": 1}) == row("a", 1, "x")


def test_a_deleted_row_begins_anew(tmp_path: Path) -> None:
    table = written(tmp_path, {**SUM, "aggregation.remove-record-on-delete": "true"})
    table.table.write([row("a", 5, "old")])
    with table.writer() as writer:
        assert writer.delete({"p": "a", "id": 1})
        assert writer.get({"p": "a", "id": 1}) is None
        writer.put(row("a", 2))
        assert writer.get({"p": "a", "id": 1}) == row("a", 2)
    assert table.rows() == [("a", 1, 2, None)]


def test_a_delete_that_removes_nothing_is_refused(tmp_path: Path) -> None:
    needed = pytest.raises(InvalidError, match=r"'aggregation\.remove-record-on-delete'")
    with written(tmp_path, SUM).writer() as writer, needed:
        writer.delete({"p": "a", "id": 1})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({**SUM, "bucket": "-1"}, "without a fixed number of buckets"),
        ({**SUM, **REMOVED, "changelog-producer": "lookup"}, "whose deletes remove rows"),
        ({**SUM, **REMOVED, "deletion-vectors.enabled": "true"}, "whose deletes remove rows"),
        ({"merge-engine": "aggregation", "bucket": "1", "fields.b.aggregate-function": "rbm32"}, "'rbm32'"),
        (
            {"merge-engine": "aggregation", "bucket": "1", "fields.b.aggregate-function": "theta_sketch"},
            "'theta_sketch'",
        ),
    ],
)
def test_what_a_writer_cannot_fold_is_refused(tmp_path: Path, options: dict[str, str], message: str) -> None:
    table = WrittenTable(tmp_path, columns=[*COLUMNS, ("b", "BYTES")], key=("p", "id"), options=options)
    with pytest.raises(InvalidError, match=message):
        table.writer()
