"""Rows are written to the files of their partitions, however little memory there is, and pyiceberg reads them."""

from __future__ import annotations

import math
import os
import pickle
import tempfile
from collections import Counter
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.expressions import EqualTo, GreaterThanOrEqual, IsNaN, IsNull
from pyiceberg.schema import Schema
from pyiceberg.table.sorting import NullOrder, SortDirection, SortField, SortOrder
from pyiceberg.transforms import (
    BucketTransform,
    DayTransform,
    IdentityTransform,
    TruncateTransform,
    VoidTransform,
)
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

from lakelet.errors import InvalidError, LakeletError
from lakelet.iceberg.write.row_fit import RowFit
from lakelet.iceberg.write.table_writer import TableWriter
from lakelet.iceberg.write.write_plan import write_plan
from tests.unit.iceberg.ice_tables import JOB, committed, data_files, ice_table, spec_of, written

_NUMBERS = Schema(NestedField(1, "id", LongType()), NestedField(2, "s", StringType()))
_EVERYTHING = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(2, "a b.c", StringType()),
    NestedField(3, "Größe", DoubleType()),
    NestedField(4, "f", FloatType()),
    NestedField(5, "d9", DecimalType(9, 2)),
    NestedField(6, "d18", DecimalType(18, 4)),
    NestedField(7, "d38", DecimalType(38, 10)),
    NestedField(8, "day", DateType()),
    NestedField(9, "t", TimeType()),
    NestedField(10, "ts", TimestampType()),
    NestedField(11, "tz", TimestamptzType()),
    NestedField(12, "u", UUIDType()),
    NestedField(13, "fx", FixedType(3)),
    NestedField(14, "bin", BinaryType()),
    NestedField(15, "ok", BooleanType()),
    NestedField(16, "i", IntegerType()),
    NestedField(
        17,
        "st",
        StructType(
            NestedField(18, "x y", IntegerType(), required=True),
            NestedField(19, "deep", StructType(NestedField(20, "z", StringType()))),
        ),
    ),
    NestedField(21, "l", ListType(22, StructType(NestedField(23, "v", FloatType())), element_required=False)),
    NestedField(24, "m", MapType(25, StringType(), 26, DecimalType(5, 1), value_required=False)),
)


def _row(number: int) -> dict[str, Any]:
    """A row; every seventh has NULL wherever it may."""
    if number % 7 == 0:
        return {"id": number}
    return {
        "id": number,
        "a b.c": ["x", "null", "", "日本語 🦆", "a/b=c"][number % 5],
        "Größe": [1.5, -0.0, math.inf, -2.25][number % 4],
        "f": [0.25, -7.0][number % 2],
        "d9": Decimal(number - 50).scaleb(-2),
        "d18": Decimal(-number * 10**9).scaleb(-4),
        "d38": Decimal(f"{number * 10**25 - 5}e-10"),
        "day": date(1969, 12, 1 + number % 31),
        "t": time(number % 24, 59, 59, 999_999),
        "ts": datetime(1969, 12, 31, number % 24, 0, 0, 1),
        "tz": datetime(2024, 2, 29, number % 24, tzinfo=UTC),
        "u": UUID(int=number % 256 << 120 | number),
        "fx": bytes([number % 256, 0, 255]),
        "bin": bytes(range(number % 9)),
        "ok": number % 3 == 0,
        "i": -number,
        "st": {"x y": number, "deep": None if number % 2 else {"z": str(number)}},
        "l": [] if number % 5 == 0 else [{"v": float(at)} if at else None for at in range(number % 4)],
        "m": {"k": Decimal(number).scaleb(-1), "n": None},
    }


def _batch(rows: list[dict[str, Any]]) -> pa.RecordBatch:
    schema = pa.schema(
        [
            ("id", pa.int64()),
            ("a b.c", pa.string()),
            ("Größe", pa.float64()),
            ("f", pa.float32()),
            ("d9", pa.decimal128(9, 2)),
            ("d18", pa.decimal128(18, 4)),
            ("d38", pa.decimal128(38, 10)),
            ("day", pa.date32()),
            ("t", pa.time64("us")),
            ("ts", pa.timestamp("us")),
            ("tz", pa.timestamp("us", "UTC")),
            ("u", pa.binary(16)),
            ("fx", pa.binary(3)),
            ("bin", pa.binary()),
            ("ok", pa.bool_()),
            ("i", pa.int32()),
            ("st", pa.struct([("x y", pa.int32()), ("deep", pa.struct([("z", pa.string())]))])),
            ("l", pa.list_(pa.struct([("v", pa.float32())]))),
            ("m", pa.map_(pa.string(), pa.decimal128(5, 1))),
        ]
    )
    plain = [{**row, "u": row["u"].bytes} if row.get("u") else row for row in rows]
    return pa.RecordBatch.from_pylist(plain, schema=schema)


def _sorted(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """In order, with maps as such; pyiceberg reads a list of structs that is NULL as an empty one."""
    made = [{**row, "m": dict(row["m"]) if row["m"] else None, "l": row["l"] or []} for row in rows]
    return sorted(made, key=lambda row: row["id"])


@pytest.mark.sampled
@pytest.mark.parametrize("memory", [256 << 20, 20_000])
@pytest.mark.parametrize(
    "fields",
    [
        (),
        ((2, IdentityTransform(), "p"),),
        ((2, TruncateTransform(1), "p q/r"), (1, BucketTransform(3), "b"), (1, TruncateTransform(50), "id_50")),
        ((10, DayTransform(), "d"), (20, IdentityTransform(), "deep")),
        ((12, IdentityTransform(), "u"),),
        ((5, IdentityTransform(), "n"), (14, TruncateTransform(2), "bin_2"), (15, IdentityTransform(), "ok")),
        ((9, IdentityTransform(), "time"), (11, IdentityTransform(), "tz"), (8, IdentityTransform(), "date")),
        ((13, IdentityTransform(), "fx"), (7, BucketTransform(4), "big"), (1, VoidTransform(), "v")),
    ],
)
def test_everything_is_read_again(tmp_path: Path, fields: tuple[Any, ...], memory: int) -> None:
    rows = [_row(number) for number in range(300)]
    table = ice_table(tmp_path, _EVERYTHING, spec_of(*fields))
    after = committed(table, [_batch(rows[:100]), _batch(rows[100:])], memory=memory, most_open=2)
    found = after.library.scan().to_arrow()
    expected = [{name: row.get(name) for name in found.column_names} for row in rows]
    assert _sorted(found.to_pylist()) == _sorted(expected)
    partitions = [
        tuple(task.file.partition[at] for at in range(len(fields))) for task in after.library.scan().plan_files()
    ]
    assert len(partitions) == len(set(partitions)) > 0, "one file for each partition"
    for number in (7, 8, 155):
        assert after.library.scan(EqualTo("id", number)).to_arrow()["id"].to_pylist() == [number]


def test_null_below_structs_and_lists(tmp_path: Path) -> None:
    rows = [_row(number) for number in range(12)]
    [data] = written(ice_table(tmp_path, _EVERYTHING), [_batch(rows)])
    found = pq.read_table(data.file_path.removeprefix("file://"))
    assert found["l"].to_pylist() == [row.get("l") for row in rows]
    expected = [row.get("st") and {"x_x20y": row["st"]["x y"], "deep": row["st"]["deep"]} for row in rows]
    assert found["st"].to_pylist() == expected


def test_partition_by_a_required_member_of_an_optional_struct(tmp_path: Path) -> None:
    table = ice_table(tmp_path, _EVERYTHING, spec_of((18, TruncateTransform(5), "nested")))
    data = written(table, [_batch([_row(number) for number in range(9)])])
    assert {file.partition_values: file.row_count for file in data} == {(None,): 2, (0,): 4, (5,): 3}


def test_files_know_fields_by_id(tmp_path: Path) -> None:
    data = written(ice_table(tmp_path, _EVERYTHING), [_batch([_row(1)])])
    schema = pq.read_schema(data[0].file_path.removeprefix("file://"))
    assert schema.names[:3] == ["id", "a_x20b_x2Ec", "Größe"]
    assert schema.field("id").metadata[b"PARQUET:field_id"] == b"1"
    inner = schema.field("l").type.value_field
    assert (inner.metadata[b"PARQUET:field_id"], inner.type.field(0).metadata[b"PARQUET:field_id"]) == (b"23", b"24")
    physical = {
        leaf.path: leaf.physical_type for leaf in map(pq.read_metadata(data[0].file_path[7:]).schema.column, range(8))
    }
    assert (physical["d9"], physical["d18"], physical["d38"]) == ("INT32", "INT64", "FIXED_LEN_BYTE_ARRAY")


def test_null_is_not_the_text_null(tmp_path: Path) -> None:
    table = ice_table(tmp_path, _NUMBERS, spec_of((2, IdentityTransform(), "s")))
    after = committed(table, [pa.record_batch({"id": [1, 2, 3], "s": ["null", None, "null"]})])
    assert sorted(file[:11] for file in data_files(tmp_path / "db" / "t")) == ["data/s=null"] * 2
    assert after.library.scan(IsNull("s")).to_arrow()["id"].to_pylist() == [2]
    assert sorted(after.library.scan(EqualTo("s", "null")).to_arrow()["id"].to_pylist()) == [1, 3]


@pytest.mark.parametrize("kind", [FloatType(), DoubleType()])
def test_special_numbers_as_partitions(tmp_path: Path, kind: FloatType | DoubleType) -> None:
    schema = Schema(NestedField(1, "id", LongType()), NestedField(2, "x", kind))
    table = ice_table(tmp_path, schema, spec_of((2, IdentityTransform(), "x")))
    other_nan = np.array([0x7FF8000000000123], np.uint64).view(np.float64)[0]
    values = np.array([math.nan, 0.0, -0.0, 1.5, other_nan, -math.inf], np.float64)
    narrow = values.astype(np.float32 if isinstance(kind, FloatType) else np.float64)
    after = committed(table, [pa.record_batch({"id": range(6), "x": pa.array(narrow)})])
    parts = [task.file.partition[0] for task in after.library.scan().plan_files()]
    assert Counter(map(str, parts)) == {"nan": 1, "0.0": 1, "-0.0": 1, "1.5": 1, "-inf": 1}
    assert sorted(after.library.scan(IsNaN("x")).to_arrow()["id"].to_pylist()) == [0, 4]
    assert sorted(after.library.scan(EqualTo("x", 0.0)).to_arrow()["id"].to_pylist()) == [1, 2]
    assert {1, 2, 3} <= set(after.library.scan(GreaterThanOrEqual("x", 0.0)).to_arrow()["id"].to_pylist())


def test_names_and_folders(tmp_path: Path) -> None:
    table = ice_table(tmp_path, _NUMBERS, spec_of((2, IdentityTransform(), "s t"), (1, BucketTransform(1), "b")))
    [data] = written(table, [pa.record_batch({"id": [1], "s": ["a/b c%"]})])
    assert data.file_path == f"file://{tmp_path}/db/t/data/s+t=a%2Fb+c%25/b=0/{JOB}-7-00000.parquet"
    assert data.file_size == os.path.getsize(data.file_path.removeprefix("file://"))
    assert (data.partition_values, data.row_count, data.spec_id, data.file_content) == (("a/b c%", 0), 1, 0, "DATA")
    assert pickle.loads(pickle.dumps(data)) == data


def test_object_store_layout(tmp_path: Path) -> None:
    properties = {"write.object-storage.enabled": "true", "write.object-storage.partitioned-paths": "false"}
    table = ice_table(tmp_path, _NUMBERS, spec_of((2, IdentityTransform(), "s")), properties=properties)
    [data] = written(table, [pa.record_batch({"id": [1], "s": ["a"]})])
    assert "s=a" not in data.file_path
    assert f"-{JOB}-7-" in data.file_path


def test_rolls_at_the_target_size(tmp_path: Path) -> None:
    target = 200_000
    table = ice_table(tmp_path, _NUMBERS, properties={"write.target-file-size-bytes": str(target)})
    random = np.random.default_rng(3)
    texts = [random.bytes(30).hex() for _ in range(30_000)]
    batch = pa.record_batch({"id": range(30_000), "s": texts})
    data = written(table, [batch.slice(start, 5_000) for start in range(0, 30_000, 5_000)])
    assert sum(file.row_count for file in data) == 30_000
    assert len(data) > 3
    assert all(0.7 * target < file.file_size < 1.4 * target for file in data[:-1])


def test_row_groups(tmp_path: Path) -> None:
    table = ice_table(tmp_path, _NUMBERS, properties={"write.parquet.row-group-limit": "100"})
    [data] = written(table, [pa.record_batch({"id": range(1_000), "s": ["x"] * 1_000})])
    metadata = pq.read_metadata(data.file_path.removeprefix("file://"))
    assert [metadata.row_group(at).num_rows for at in range(metadata.num_row_groups)] == [100] * 10
    assert len(data.split_offsets) == 10


def test_many_partitions_in_little_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spill = tmp_path / "spill"
    spill.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(spill))
    table = ice_table(tmp_path, _NUMBERS, spec_of((1, TruncateTransform(100), "p")))
    order = np.random.default_rng(1).permutation(20_000)
    batch = pa.record_batch({"id": order, "s": [f"text {number}" for number in order]})
    writer = TableWriter(write_plan(table, JOB), "7", memory=100_000, most_open=3)
    for start in range(0, 20_000, 1_000):
        writer.write(batch.slice(start, 1_000))
    assert list(spill.rglob("*.arrow")), "rows went to local disk"
    assert not data_files(tmp_path)
    data = writer.close()
    assert not list(spill.rglob("*.arrow"))
    assert [file.row_count for file in data] == [100] * 200
    assert {file.partition_values for file in data} == {(number,) for number in range(0, 20_000, 100)}


def test_large_partitions_are_written_as_they_come(tmp_path: Path) -> None:
    """A partition with enough rows gets a file before the end; of those only `most_open` are open."""
    table = ice_table(tmp_path, _NUMBERS, spec_of((1, TruncateTransform(100_000), "p")))
    writer = TableWriter(write_plan(table, JOB), "7", memory=400_000, most_open=2)
    for turn in range(20):
        ids = np.arange(4_000) % 4 * 100_000 + turn
        writer.write(pa.record_batch({"id": ids, "s": ["some text"] * 4_000}))
    assert len(data_files(tmp_path)) == 2
    data = writer.close()
    assert sorted(file.row_count for file in data) == [20_000] * 4
    rows = [pq.read_table(file.file_path.removeprefix("file://")) for file in data]
    assert all(np.all(np.diff(part["id"].to_numpy()) >= 0) for part in rows), "rows of a partition stay in their order"


def _moved(array: pa.Array) -> pa.Array:
    if array.type.num_fields:
        return array
    buffers = [None if part is None else pa.py_buffer(b"x" + part.to_pybytes()).slice(1) for part in array.buffers()]
    return pa.Array.from_buffers(array.type, len(array), buffers)


def test_buffers_that_are_not_aligned(tmp_path: Path) -> None:
    """Spark hands such batches out."""
    plain = _batch([_row(number) for number in range(50)])
    moved = pa.RecordBatch.from_arrays([_moved(column) for column in plain.columns], names=plain.schema.names)
    fields = ((2, TruncateTransform(2), "s_2"), (10, DayTransform(), "ts_day"), (7, BucketTransform(2), "d_b"))
    table = ice_table(tmp_path, _EVERYTHING, spec_of(*fields))
    after = committed(table, [moved])
    found = after.library.scan(selected_fields=("id", "a b.c", "d38", "ts")).to_arrow().sort_by("id")
    assert found.to_pylist() == plain.select(["id", "a b.c", "d38", "ts"]).to_pylist()


def test_sort_order(tmp_path: Path) -> None:
    schema = Schema(
        NestedField(1, "a", DoubleType()), NestedField(2, "b", StringType()), NestedField(3, "n", LongType())
    )
    order = SortOrder(
        SortField(1, IdentityTransform(), SortDirection.DESC, NullOrder.NULLS_LAST),
        SortField(2, TruncateTransform(1), SortDirection.ASC, NullOrder.NULLS_FIRST),
        SortField(3, IdentityTransform(), SortDirection.ASC, NullOrder.NULLS_FIRST),
    )
    table = ice_table(tmp_path, schema, order=order)
    given = [
        (None, "x", 1),
        (math.nan, None, 9),
        (0.0, "b2", 3),
        (-0.0, "a", 4),
        (0.0, "b1", 5),
        (0.0, None, 6),
        (math.inf, "q", 7),
        (-1.0, "q", 8),
        (0.0, "b3", None),
    ]
    columns = [list(column) for column in zip(*given, strict=True)]
    [data] = written(table, [pa.record_batch(columns, names=["a", "b", "n"])])
    found = pq.read_table(data.file_path.removeprefix("file://"))["n"].to_pylist()
    assert found == [9, 7, 6, None, 3, 5, 4, 8, 1]
    assert data.sort_order_id == 1


def test_sorted_files_in_little_memory(tmp_path: Path) -> None:
    order = SortOrder(SortField(1, IdentityTransform(), SortDirection.ASC, NullOrder.NULLS_FIRST))
    spec = spec_of((1, BucketTransform(3), "b"))
    table = ice_table(tmp_path, _NUMBERS, spec, order=order)
    ids = np.random.default_rng(5).permutation(9_000)
    batch = pa.record_batch({"id": ids, "s": ["some text"] * 9_000})
    data = written(table, [batch.slice(start, 500) for start in range(0, 9_000, 500)], memory=60_000)
    parts = [pq.read_table(file.file_path.removeprefix("file://"))["id"].to_numpy() for file in data]
    assert len(parts) > 3, "more than memory holds is sorted in several files"
    assert all(np.all(np.diff(part) > 0) for part in parts)
    assert sorted(np.concatenate(parts)) == list(range(9_000))


def test_nothing_and_empty_batches(tmp_path: Path) -> None:
    table = ice_table(tmp_path, _NUMBERS)
    assert written(table, []) == []
    empty = pa.RecordBatch.from_pylist([], schema=pa.schema([("id", pa.int64())]))
    assert written(table, [empty]) == []
    with pytest.raises(InvalidError, match="'wrong' is not in the table"):
        written(table, [pa.RecordBatch.from_pylist([], schema=pa.schema([("wrong", pa.int64())]))])
    assert data_files(tmp_path) == []


@pytest.mark.parametrize("memory", [400_000, 256 << 20])
def test_abort_leaves_no_file(tmp_path: Path, memory: int) -> None:
    table = ice_table(tmp_path, _NUMBERS, spec_of((1, TruncateTransform(100_000), "p")))
    writer = TableWriter(write_plan(table, JOB), "7", memory=memory, most_open=2)
    for turn in range(10):
        ids = np.arange(4_000) % 4 * 100_000 + turn
        writer.write(pa.record_batch({"id": ids, "s": ["some text"] * 4_000}))
    writer.write(pa.record_batch({"id": [-(2**63)], "s": ["x"]}))
    with pytest.raises(InvalidError, match="truncate"):
        writer.close()
    writer.abort()
    assert data_files(tmp_path) == []


@pytest.mark.parametrize("encoding", ["dictionary", "runs"])
def test_encoded_rows_are_taken_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, encoding: str) -> None:
    table = ice_table(tmp_path, _NUMBERS)
    rows, text = 20_000, "x" * 100
    values: pa.Array = pa.RunEndEncodedArray.from_arrays(pa.array([rows], pa.int32()), [text])
    if encoding == "dictionary":
        values = pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int8()), [text])
    writer = TableWriter(write_plan(table, JOB), "7", memory=400_000)
    sizes: list[int] = []
    fit = RowFit.fit

    def measured(self: RowFit, batch: pa.RecordBatch) -> pa.RecordBatch:
        found = fit(self, batch)
        sizes.append(found.nbytes)
        return found

    monkeypatch.setattr(RowFit, "fit", measured)
    writer.write(pa.record_batch({"id": range(rows), "s": values}))
    assert sum(data.row_count for data in writer.close()) == rows
    assert max(sizes) < 200_000


def test_failing_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = ice_table(tmp_path, _NUMBERS, spec_of((1, IdentityTransform(), "p")))
    plan = write_plan(table, JOB)
    writer = TableWriter(plan, "7", threads=1)
    real, calls = plan.io.new_output, []

    def new_output(path: str) -> Any:
        calls.append(path)
        if len(calls) == 3:
            raise OSError("disk full")
        return real(path)

    monkeypatch.setattr(plan.io, "new_output", new_output)
    writer.write(pa.record_batch({"id": range(8), "s": ["x"] * 8}))
    with pytest.raises(LakeletError, match="disk full"):
        writer.close()
    assert data_files(tmp_path), "some were written"
    writer.abort()
    assert data_files(tmp_path) == []


def test_dropped_column_of_a_void_field(tmp_path: Path) -> None:
    table = ice_table(tmp_path, _NUMBERS, spec_of((2, IdentityTransform(), "s")), properties={"format-version": "1"})
    with table.library.update_spec() as spec:
        spec.remove_field("s")
    with table.library.update_schema() as schema:
        schema.delete_column("s")
    after = committed(table.reloaded(), [pa.record_batch({"id": [1, 2]})])
    assert after.library.scan().to_arrow()["id"].to_pylist() == [1, 2]
    assert [task.file.partition[0] for task in after.library.scan().plan_files()] == [None]
