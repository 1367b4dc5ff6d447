"""Which files are read by bitmaps, and who finds these: by cost."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from lakelet import Lake, Table
from lakelet.read.split_files import SplitFile
from lakelet.spark.read import marked_files
from lakelet.spark.read.marked_files import Chosen, MarkedFiles, choose, join_small
from lakelet.spark.read.row_bitmaps import RowBitmaps, count_bits, no_bits, words_of
from lakelet.storage.memory import MemoryStore


def _table(runs: int, shift: int = 1, rows: int = 100) -> Table:
    lake = Lake(MemoryStore())
    lake.create_database("d")
    options = {"bucket": "1", "write-only": "true"}
    table = lake.create_table("d.t", [("id", "BIGINT"), ("v", "BIGINT")], primary_key=["id"], options=options)
    for run in range(runs):
        first = run * shift
        table.write(pa.table({"id": range(first, first + rows), "v": [run * 10**run] * rows}))
    return table


def _chosen(table: Table, where: str | None = None) -> Chosen:
    scan = table.scan(where=where)
    return choose(RowBitmaps.of(scan), scan.plan().splits)


def test_bits_are_the_positions() -> None:
    words = words_of(np.array([0, 63, 64, 129]), 130)
    assert words.tolist() == [1 - 2**63, 1, 2]
    assert count_bits(words) == 4
    assert len(words_of(np.array([5]), 5)) == 1
    assert count_bits(words_of(np.array([5]), 5)) == 0


def test_few_keys_are_looked_through_here() -> None:
    table = _table(runs=2, shift=60)
    chosen = _chosen(table)
    ((older, newer),) = ([file for _, file in table.files()],)
    assert [file.data.name for file in chosen.whole] == [newer.name]
    (marked,) = chosen.marked
    assert (marked.files[0].data.name, marked.splits, chosen.ours) == (older.name, (), [])
    assert marked.words[older.size].tolist() == words_of(np.arange(60, 100), 100).tolist()


def test_a_file_without_a_visible_row_is_not_read() -> None:
    chosen = _chosen(_table(runs=2, shift=0))
    assert (len(chosen.whole), chosen.marked, chosen.ours) == (1, [], [])


def test_splits_of_mostly_superseded_rows_and_conditions_on_keys_are_merged() -> None:
    assert len(_chosen(_table(runs=4)).ours) == 1
    assert len(_chosen(_table(runs=2, shift=60), where="id > 3").ours) == 1
    assert _chosen(_table(runs=2, shift=60), where="v > 3").ours == []


def test_many_keys_are_looked_through_by_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(marked_files, "_DRIVER_BYTES", 1)
    chosen = _chosen(_table(runs=2, shift=60))
    (marked,) = chosen.marked
    assert (len(marked.files), marked.words, len(marked.splits)) == (2, {}, 1)
    assert marked.costs[0] > 1
    monkeypatch.setattr(marked_files, "_MOST_BITMAP_BYTES", 1)
    assert len(_chosen(_table(runs=2, shift=60)).ours) == 1


def test_a_split_is_looked_through_once() -> None:
    table = _table(runs=2, shift=60)
    assert RowBitmaps.of(table.scan()).cost(table.scan().plan().splits[0])
    _chosen(table)
    assert RowBitmaps.of(table.scan()).cost(table.scan().plan().splits[0]) == 0


def test_few_visible_files_go_with_marked_ones_of_their_schema(monkeypatch: pytest.MonkeyPatch) -> None:
    """A frame less, unless their bits could be taken for those of another file, or are found by tasks."""
    chosen = _chosen(_table(runs=2, shift=60))
    (marked,), whole = chosen.marked, chosen.whole[0]
    assert whole.data.size not in marked.words
    older = marked.files[0]

    def left(*files: SplitFile, schema_id: int = 0, layer: MarkedFiles = marked) -> tuple[bool, MarkedFiles]:
        native = {schema_id: list(files)}
        into = replace(layer, files=list(layer.files), words=dict(layer.words))
        join_small(native, [into])
        return bool(native), into

    kept, joined = left(whole)
    assert not kept
    assert [file.path for file in joined.files] == [older.path, whole.path]
    assert joined.words[whole.data.size].tolist() == no_bits(100).tolist()
    assert count_bits(joined.words[older.data.size]) == 40
    assert joined.words[whole.data.size].nbytes == 16
    same_size = replace(whole, data=replace(whole.data, size=older.data.size))
    other_schema = replace(whole, data=replace(whole.data, schema_id=1))
    by_tasks = replace(marked, splits=tuple(_table(runs=2, shift=60).scan().plan().splits))
    assert left(same_size)[0]
    assert left(whole, whole)[0]
    assert left(other_schema, schema_id=1)[0]
    assert left(whole, layer=by_tasks)[0]
    monkeypatch.setattr(marked_files, "_JOINED_ROWS", 99)
    assert left(whole)[0]
