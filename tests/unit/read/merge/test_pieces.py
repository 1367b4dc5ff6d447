"""The pieces of a bucket: which runs are merged, which files are read raw, and which columns decide."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from lakelet.lsm.merge_spec import MergeSpec
from lakelet.lsm.source.memory_run import MemoryRun
from lakelet.predicate.row_filter import row_filter
from lakelet.read.merge import pieces
from lakelet.read.merge.key_value_files import KeyValueFiles
from lakelet.read.merge.overlaid_split import OverlaidSplit
from lakelet.read.merge.pieces import PieceCutter
from tests.unit.lsm.engine.column_fold import ColumnFold
from tests.unit.read.key_value_table import KeyValueTable, schema_of_columns

BUDGET = 1 << 20


def table() -> KeyValueTable:
    return KeyValueTable(schema_of_columns({"k": "INT NOT NULL", "v": "INT"}, ["k"]))


def cutter(made: KeyValueTable, spec: MergeSpec | None = None, *, versions: bool = False) -> PieceCutter:
    schema = made.schema
    everything = row_filter(None, schema.fields)
    files = KeyValueFiles(made.home, schema.trimmed_primary_keys, tuple(schema.fields), everything, made.schema_of)
    return PieceCutter(schema, spec or MergeSpec.of(schema), files, versions=versions)


def memory(made: KeyValueTable, *rows: tuple[int, int, int, int]) -> MemoryRun:
    names = ["_SEQUENCE_NUMBER", "_VALUE_KIND", "k", "v"]
    columns = [pa.array([row[at] for row in rows], pa.int8() if at == 1 else pa.int64()) for at in range(4)]
    return MemoryRun.of(pa.table(columns, names=names), made.schema)


def test_a_run_in_memory_lies_beside_the_files_that_it_overlaps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "_RAW_ROWS", 2)
    made = table()
    made.write([(0, 0, {"k": 1, "v": 0}), (1, 0, {"k": 3, "v": 0})])
    made.write([(2, 0, {"k": 7, "v": 0}), (3, 0, {"k": 9, "v": 0})])
    run = memory(made, (10, 0, 2, 0), (11, 0, 4, 0), (12, 0, 4, 0))
    merged, raw = cutter(made).pieces(OverlaidSplit(made.split(), (run,)), BUDGET)
    assert raw.split is not None
    assert [file.name for file in raw.split.files] == ["data-1.parquet"]
    assert merged.split is None
    assert merged.row_count == 5
    assert [source.data.row_count for source in merged.sources] == [2, 3]
    assert merged.runs[1] == (run,)


def test_a_run_in_memory_alone_is_merged_however_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "_RAW_ROWS", 1)
    made = table()
    run = memory(made, (10, 0, 2, 0), (11, 0, 2, 5))
    (piece,) = cutter(made).pieces(OverlaidSplit(None, (run,)), BUDGET)
    assert (piece.split, piece.runs, piece.kinds) == (None, ((run,),), False)


def test_retracts_in_memory_need_their_kinds() -> None:
    made = table()
    run = memory(made, (10, 3, 2, 0), (11, 0, 3, 5))
    (piece,) = cutter(made).pieces(OverlaidSplit(None, (run,)), BUDGET)
    assert piece.kinds


def test_folds_in_several_rounds_hand_kinds_on(monkeypatch: pytest.MonkeyPatch) -> None:
    made = table()
    for number in range(3):
        made.write([(number, 0, {"k": 1, "v": number})])
    folds = replace(MergeSpec.of(made.schema), engine=ColumnFold(("v",)))
    for spec, most, kinds in ((folds, 2, True), (folds, 3, False), (MergeSpec.of(made.schema), 2, False)):
        monkeypatch.setattr(pieces, "MOST_RUNS", most)
        (piece,) = cutter(made, spec).pieces(made.split(), BUDGET)
        assert piece.kinds == kinds
