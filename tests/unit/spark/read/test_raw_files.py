"""Which files Spark reads itself, and how the others are assigned to tasks."""

import pickle
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from lakelet import Lake, Table, connect
from lakelet.commit.metadata.schemas import SchemaVersions
from lakelet.lsm.engine.table_engine import ENGINES
from lakelet.model.schema import TableSchema, new_schema
from lakelet.model.split import Split
from lakelet.model.type_parser import parse_type
from lakelet.model.types import Field
from lakelet.spark.read.merge_scan import SplitTasks, balanced, packed, unpacked
from lakelet.spark.read.raw_files import Assigned, FileAssigner, spark_reads
from lakelet.spark.read.row_bitmaps import RowBitmaps
from lakelet.storage.memory import MemoryStore
from lakelet.table.read.table_scan import TableScan
from tests.unit.lsm.engine.column_fold import sums_by_name


def schema(*types: str, names: tuple[str, ...] = (), key: tuple[str, ...] = ()) -> TableSchema:
    chosen = names or tuple(f"c{index}" for index in range(len(types)))
    fields = [Field(-1, name, parse_type(text)) for name, text in zip(chosen, types, strict=True)]
    return new_schema(fields, partition_keys=(), primary_keys=key, options={}, comment=None, time_ms=0)


def reads(stored: str, wanted: str) -> bool:
    new = schema(wanted)
    fields = new.fields if stored == wanted else tuple(replace(field, id=0) for field in new.fields)
    return spark_reads(schema(stored), fields)


@pytest.mark.parametrize(
    "text",
    [
        "INT",
        "DECIMAL(38, 10)",
        "TIMESTAMP(6)",
        "TIMESTAMP(3) WITH LOCAL TIME ZONE",
        "ROW<a INT, b ARRAY<MAP<INT, DATE>>>",
    ],
)
def test_types_that_spark_reads(text: str) -> None:
    assert reads(text, text)


@pytest.mark.parametrize(
    "text",
    ["TIME(3)", "TIMESTAMP(9)", "MULTISET<INT>", "ARRAY<TIMESTAMP(7)>", "ROW<a INT, A INT>", "MAP<TIME(0), INT>"],
)
def test_types_that_it_does_not(text: str) -> None:
    assert not reads(text, text)


@pytest.mark.parametrize(
    ("stored", "wanted", "expected"),
    [
        ("INT", "BIGINT", True),
        ("INT", "DECIMAL(20, 4)", True),
        ("FLOAT", "DOUBLE", True),
        ("CHAR(3)", "STRING", True),
        ("TIMESTAMP(3)", "TIMESTAMP(6)", True),
        ("INT", "STRING", False),
        ("STRING", "INT", False),
        ("BIGINT", "INT", False),
        ("TIMESTAMP(6)", "TIMESTAMP(9)", False),
        ("ARRAY<INT>", "ARRAY<BIGINT>", False),
    ],
)
def test_changed_types(stored: str, wanted: str, expected: bool) -> None:
    assert reads(stored, wanted) is expected


def test_names_that_differ_only_in_case() -> None:
    stored = schema("INT", "INT", names=("a", "A"))
    assert not spark_reads(stored, stored.fields[:1])
    keyed = schema("INT", "INT", names=("a", "_key_A"), key=("a",))
    assert not spark_reads(keyed, keyed.fields)
    assert spark_reads(schema("INT", "INT", names=("a", "_key_A")), keyed.fields)


def _table(**options: str) -> Table:
    lake = Lake(MemoryStore())
    lake.create_database("d")
    table = lake.create_table("d.t", [("id", "BIGINT")], options=options)
    table.write(pa.table({"id": [1, 2]}))
    table.write(pa.table({"id": [3]}))
    return table


def _assigned(scan: TableScan, location: str | None) -> Assigned:
    assigner = FileAssigner(scan.schema.fields, SchemaVersions(scan.home), location, RowBitmaps.of(scan))
    return assigner.assign(scan.plan().splits)


def _native_files(table: Table, location: str | None) -> int:
    found = _assigned(table.scan(), location)
    return sum(len(files) for files in found.native.values())


def test_paths_that_spark_takes_as_they_are() -> None:
    assert _native_files(_table(), "file:///a b%41") == 2
    assert _native_files(_table(), None) == 0
    assert _native_files(_table(), "file:///a[b]") == 0
    assert _native_files(_table(**{"data-file.prefix": "_x-"}), "file:///a") == 0
    assert _native_files(_table(**{"file.format": "orc"}), "file:///a") == 0


def _split(size: int) -> Split:
    (split,) = _table().scan().plan().splits
    files = tuple(replace(file, size=size) for file in split.files[:1])
    return replace(split, files=files, paths=split.paths[:1], deletion_vectors=(None,))


def test_tasks_are_even() -> None:
    mega = 1 << 20
    parts = balanced([_split(size * mega) for size in (50, 10, 10, 10, 10, 10)], 2)
    assert [sum(split.size for split in part) for part in parts] == [50 * mega, 50 * mega]
    assert len(balanced([_split(64 * mega) for _ in range(10)], 2)) == 10
    assert len(balanced([_split(1)], 8)) == 1
    assert len(balanced([_split(1) for _ in range(100)], 4)) == 4


def test_what_travels_is_smaller_than_its_pickle() -> None:
    split = _split(1)
    assert unpacked(packed([split] * 3)) == [split] * 3
    assert len(packed([split] * 3)) < len(pickle.dumps([split] * 3))


def test_rows_of_a_fold_engine_are_merged_by_tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine does not travel with the splits: an executor derives it from the schema, as the driver does."""
    monkeypatch.setitem(ENGINES, "deduplicate", sums_by_name)
    lake = connect(str(tmp_path))
    lake.create_database("d")
    columns = [("id", "BIGINT NOT NULL"), ("sum_a", "BIGINT"), ("text", "STRING")]
    table = lake.create_table("d.t", columns, primary_key=["id"], options={"bucket": "1"})
    table.write(pa.table({"id": [1, 2], "sum_a": [5, 7], "text": ["x", "y"]}))
    table.write(pa.table({"id": [1], "sum_a": [10], "text": pa.array([None], pa.string())}))
    scan = table.scan(where="sum_a = 15")
    found = _assigned(scan, "file:///a")
    assert found.native == {}
    assert found.marked == []
    tasks = SplitTasks(packed(scan), (packed(found.ours),), tuple(scan.schema.fields))
    assert [row for batch in pickle.loads(pickle.dumps(tasks))(0) for row in batch.to_pylist()] == [
        {"id": 1, "sum_a": 15, "text": "x"}
    ]
