"""Reads of tables in an object store, through Lakelet's reader."""

import uuid
from pathlib import Path

import pyarrow as pa
import pytest

import lakelet
from lakelet import NotFoundError
from tests.iceberg.delete_commits import commit_deletes, data_paths, equality_deletes, position_deletes
from tests.iceberg.viewed import readers_of
from tests.services.server import S3Service


def test_a_table_on_s3(tmp_path: Path, s3_seaweedfs: S3Service) -> None:
    properties = {
        "type": "sql",
        "uri": f"sqlite:///{tmp_path}/catalog.db",
        "warehouse": s3_seaweedfs.url(f"ice/{uuid.uuid4().hex}"),
        "s3.endpoint": s3_seaweedfs.endpoint,
        "s3.access-key-id": s3_seaweedfs.access_key,
        "s3.secret-access-key": s3_seaweedfs.secret_key,
        "s3.region": s3_seaweedfs.region,
    }
    lake = lakelet.connect(tmp_path, {f"catalog.far.{key}": value for key, value in properties.items()})
    catalog = lake.catalogs.open("far")
    catalog.create_namespace("db")
    kinds = pa.schema([("id", pa.int64()), ("v", pa.string())])
    table = catalog.library.create_table("db.t", kinds, properties={"format-version": "2"})
    for start in (0, 10):
        rows = [{"id": number, "v": f"v{number}"} for number in range(start, start + 10)]
        table.append(pa.Table.from_pylist(rows, kinds))
    query = "SELECT id FROM far.db.t WHERE id > 2 AND v <> 'v15' ORDER BY id"
    assert [row[0] for row in lake.sql(query).rows()] == [*range(3, 15), *range(16, 20)]
    assert readers_of(lake, query) == (0, 2)
    assert readers_of(lake, "SELECT v FROM far.db.t WHERE id > 12") == (0, 1)
    first, second = data_paths(table)
    table = commit_deletes(table, position_deletes(table, {first: [4], second: [0, 1]}))
    table = commit_deletes(table, equality_deletes(table, pa.table({"id": pa.array([17], pa.int64())})))
    assert [row[0] for row in lake.sql(query).rows()] == [3, 5, 6, 7, 8, 9, 12, 13, 14, 16, 18, 19]
    table.io.delete(first)
    with pytest.raises(NotFoundError, match="is gone: its snapshot may have been expired"):
        lake.sql(query).rows()
