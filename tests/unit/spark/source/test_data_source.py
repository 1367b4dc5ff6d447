"""What the source "lakelet" says to options, columns and tables, without Spark: as its own processes would call it."""

from __future__ import annotations

import pickle
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import types as T

import lakelet
from lakelet.errors import InvalidError, LakeletError, NotFoundError
from lakelet.spark.source.data_source import LakeletDataSource
from lakelet.spark.source.writer import TaskFiles
from lakelet.table import Table

ROWS = T.StructType([T.StructField("id", T.LongType()), T.StructField("DT", T.StringType())])


@pytest.fixture
def orders(tmp_path: Path) -> Table:
    lake = lakelet.connect(str(tmp_path))
    lake.create_database("shop")
    table = lake.create_table("shop.orders", [("id", "BIGINT"), ("dt", "STRING")], partitioned_by=["dt"])
    table.write([{"id": i, "dt": "ab"[i % 2]} for i in range(4)])
    return table


def source(folder: Path, **options: str) -> LakeletDataSource:
    return LakeletDataSource({"Warehouse": str(folder), "table": "shop.orders", **options})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"Warehouse": " "}, "needs the option 'warehouse'.*CREATE TEMPORARY VIEW"),
        ({"table": ""}, "needs the option 'table'"),
        ({"table": "shop.nope"}, "'shop.nope' is not in"),
        ({"table": "orders"}, "expected database.table"),
        ({"path": "shop.other"}, "reads one table; found shop.orders and shop.other"),
        ({"versoin": "1"}, "versoin"),
        ({"version": "7"}, "snapshots 1 to 1 exist"),
        ({"version": "1", "tag": "x"}, "both version and tag"),
        ({"timestamp": "soon"}, "expected ISO 8601"),
        ({"columns": "id,"}, "names separated by commas"),
        ({"columns": "nope"}, "nope"),
        ({"where": "nope = 1"}, "nope"),
        ({"branch": "nope"}, "branch 'nope' is not in shop.orders"),
        ({"partitionOverwriteMode": "static"}, "is for writes"),
    ],
)
def test_wrong_options_of_a_read(orders: Table, tmp_path: Path, options: dict[str, str], message: str) -> None:
    with pytest.raises((InvalidError, NotFoundError), match=message):
        source(tmp_path, **options).schema()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"version": "1"}, "'version' is for reads"),
        ({"commit-user": "job"}, "both a user and an identifier"),
        ({"commit-user": "job", "commit-identifier": "x"}, "expected a whole number"),
        ({"partitionOverwriteMode": "x"}, "expected static or dynamic"),
    ],
)
def test_wrong_options_of_a_write(orders: Table, tmp_path: Path, options: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidError, match=message):
        source(tmp_path, **options).writer(ROWS, overwrite=True)


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        (T.StructType([T.StructField("other", T.LongType())]), "'other', which is not in the table"),
        (T.StructType([T.StructField("id", T.StringType())]), "column 'id' is BIGINT; the data has string"),
        (T.StructType([T.StructField(name, T.LongType()) for name in ("id", "ID")]), "'id' 2 times"),
    ],
)
def test_columns_that_do_not_fit(orders: Table, tmp_path: Path, schema: T.StructType, message: str) -> None:
    with pytest.raises(InvalidError, match=message):
        source(tmp_path).writer(schema, overwrite=False)


@pytest.mark.parametrize("bucket", [2, -1])
def test_tables_with_routing_are_refused(tmp_path: Path, bucket: int) -> None:
    lake = lakelet.connect(str(tmp_path))
    lake.create_database("shop")
    lake.create_table("shop.orders", [("id", "BIGINT NOT NULL")], primary_key=["id"], options={"bucket": bucket})
    with pytest.raises(InvalidError, match=r"must be routed.*lakelet\.spark\.write\("):
        source(tmp_path).writer(T.StructType([T.StructField("id", T.LongType())]), overwrite=False)


def test_options_show_no_secrets(orders: Table, tmp_path: Path) -> None:
    from lakelet.spark.source.options import SourceOptions

    given = {"warehouse": str(tmp_path), "table": "shop.orders", "s3.secret-key": "do-not-show"}
    options = SourceOptions.of(given)
    assert options.others == {"s3.secret-key": "do-not-show"}
    assert "do-not-show" not in repr(options)


def test_a_write_task_by_task(orders: Table, tmp_path: Path) -> None:
    """A task that was started twice leaves a file that nobody lists; the commit removes it."""
    writer = pickle.loads(pickle.dumps(source(tmp_path).writer(ROWS, overwrite=False)))
    batch = pa.RecordBatch.from_pydict({"id": [7], "DT": ["a"]})
    first, _, second = (writer.write(iter([batch])) for _ in range(3))
    assert len(data_files(orders)) == 2 + 3
    writer.commit([first, second])
    assert orders.scan(where="id = 7").count() == 2
    assert data_files(orders) == {path for path, _ in orders.files()}


def test_a_job_that_failed_leaves_nothing(orders: Table, tmp_path: Path) -> None:
    writer = source(tmp_path).writer(ROWS, overwrite=False)
    done = writer.write(iter([pa.RecordBatch.from_pydict({"id": [7], "DT": ["a"]})]))
    writer.abort([done, None])
    assert data_files(orders) == {path for path, _ in orders.files()}


def test_rows_that_do_not_fit_are_an_error_of_the_commit(orders: Table, tmp_path: Path) -> None:
    writer = source(tmp_path).writer(ROWS, overwrite=False)
    good = writer.write(iter([pa.RecordBatch.from_pydict({"id": [7], "DT": ["a"]})]))
    bad = writer.write(iter([pa.RecordBatch.from_pydict({"id": [7], "DT": [b"\xff"]})]))
    assert isinstance(bad, TaskFiles)
    assert isinstance(pickle.loads(pickle.dumps(bad)).error, LakeletError)
    with pytest.raises(InvalidError, match="column 'dt'"):
        writer.commit([good, bad])
    writer.abort([good, bad])
    assert len(orders.snapshots()) == 1
    assert data_files(orders) == {path for path, _ in orders.files()}


def data_files(table: Table) -> set[str]:
    home = table.home
    return {info.path for info in home.store.list(home.paths.root) if "/bucket-" in info.path}
