"""A bucket with Hadoop's S3 client on the class path: plain files are opened by Spark's own reader, the rest by ours."""

import json
import os
import uuid
from pathlib import Path
from typing import Any

import pytest

import lakelet
from tests.services.server import S3Service
from tests.spark.clusters import submit
from tests.spark.java import REPOSITORY
from tests.spark.programs import s3a_read

pytestmark = pytest.mark.spark
COLUMNS = [("id", "BIGINT NOT NULL"), ("v", "STRING")]


@pytest.fixture(scope="module")
def jars() -> list[Path]:
    """Hadoop's S3 client."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    found = sorted((cache / "lakelet" / "jars" / "s3a").glob("*.jar"))
    if not found:
        reason = "no jars of Hadoop's S3 client (make setup-conformance)"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    return found


def make_tables(warehouse: str, options: dict[str, str]) -> dict[str, list[list[object]]]:
    """Tables of each kind of file, and the rows that are in them."""
    lake = lakelet.connect(warehouse, options)
    lake.create_database("d")
    rows = [{"id": n, "v": f"v{n}"} for n in range(40)]
    lake.create_table("d.plain", COLUMNS).write(rows)
    upserted = lake.create_table("d.upserted", COLUMNS, primary_key=["id"], options={"bucket": 1, "write-only": "true"})
    upserted.write(rows)
    upserted.write([{"id": 1, "v": "new"}])
    lake.create_table("d.vectors", COLUMNS, options={"deletion-vectors.enabled": "true"}).write(rows)
    lake.sql("DELETE FROM d.vectors WHERE id < 5")
    lake.create_table("d.orc", COLUMNS, options={"file.format": "orc"}).write(rows)
    evolved = lake.create_table("d.evolved", [("id", "INT NOT NULL"), ("old", "STRING")])
    evolved.write([{"id": n, "old": f"v{n}"} for n in range(40)])
    lake.sql("ALTER TABLE d.evolved RENAME COLUMN old TO v")
    lake.sql("ALTER TABLE d.evolved ALTER COLUMN id TYPE BIGINT")
    expected = [[n, f"v{n}"] for n in range(40)]
    return {
        "d.plain": expected,
        "d.upserted": [[n, "new" if n == 1 else f"v{n}"] for n in range(40)],
        "d.vectors": expected[5:],
        "d.orc": expected,
        "d.evolved": expected,
        "filtered": [[n, None] for n in range(30, 40)],
    }


def test_plain_files_are_read_by_spark_itself(java: str, jars: list[Path], s3_minio: S3Service, tmp_path: Path) -> None:
    warehouse = f"s3://{s3_minio.bucket}/s3a-{uuid.uuid4().hex}"
    expected = make_tables(warehouse, s3_minio.options)
    config = {
        "spark.hadoop.fs.s3a.endpoint": s3_minio.options["s3.endpoint"],
        "spark.hadoop.fs.s3a.access.key": s3_minio.options["s3.access-key"],
        "spark.hadoop.fs.s3a.secret.key": s3_minio.options["s3.secret-key"],
        "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
        "spark.hadoop.fs.s3a.path.style.access": "true",
        "spark.hadoop.fs.s3a.connection.ssl.enabled": "false",
    }
    ended = submit(
        java,
        tmp_path,
        master="local[2]",
        program=Path(s3a_read.__file__),
        arguments=[warehouse, json.dumps(s3_minio.options)],
        config=config,
        flags=["--jars", ",".join(map(str, jars))],
        variables={"PYTHONPATH": str(REPOSITORY / "src")},
    )
    assert ended.returncode == 0, ended.stdout[-3000:] + ended.stderr[-3000:]
    report: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    assert {name: report[name]["rows"] for name in expected} == expected
    assert report["count"] == len(expected["d.plain"]) + 1
    for name in expected:
        assert ("s3a://" in report[name]["plan"]) == (name != "d.orc"), name
        assert ("MapInArrow" in report[name]["plan"]) == (name == "d.orc"), name
    assert "raise_error" in report["d.upserted"]["plan"]
    for name in expected:
        assert s3_minio.options["s3.secret-key"] not in report[name]["plan"]
