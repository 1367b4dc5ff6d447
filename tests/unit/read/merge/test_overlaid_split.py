"""Splits with in-memory runs beside their files."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from lakelet.format.manifest.manifest_columns import EMPTY_ROW
from lakelet.lsm.source.memory_run import MemoryRun
from lakelet.read.merge.overlaid_split import OverlaidSplit, overlaid
from tests.unit.read.key_value_table import KeyValueTable, schema_of_columns

SCHEMA = schema_of_columns({"k": "INT NOT NULL", "v": "INT"}, ["k"])
RUN = MemoryRun.of(
    pa.table({"_SEQUENCE_NUMBER": [9], "_VALUE_KIND": pa.array([0], pa.int8()), "k": [1], "v": [1]}), SCHEMA
)


def table() -> KeyValueTable:
    found = KeyValueTable(SCHEMA)
    found.write([(0, 0, {"k": 1, "v": 1})])
    found.write([(1, 0, {"k": 2, "v": 1})])
    return found


def test_splits_of_a_bucket_with_a_run_become_one() -> None:
    made = table()
    one, other = (made.split(files=[file], needs_merge=False) for file in made.files)
    elsewhere = replace(one, bucket=3)
    branch = replace(one, branch="b")
    found = overlaid([one, elsewhere, other, branch], {(EMPTY_ROW, 0): [RUN]})
    assert found[:2] == [elsewhere, branch]
    (joined,) = found[2:]
    assert isinstance(joined, OverlaidSplit)
    assert joined.needs_merge
    assert joined.split is not None
    assert [file.name for file in joined.split.files] == ["data-0.parquet", "data-1.parquet"]
    assert len(joined.split.paths) == len(joined.split.deletion_vectors) == 2
    assert joined.runs == (RUN,)


def test_a_run_needs_no_files() -> None:
    assert overlaid([], {(EMPTY_ROW, 1): [RUN], (EMPTY_ROW, 2): []}) == [OverlaidSplit(None, (RUN,))]
