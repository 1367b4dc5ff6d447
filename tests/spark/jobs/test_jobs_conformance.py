"""Other implementations read what was adopted in place: partition columns that no file has, INT96, decimals of any form."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lakelet import connect
from lakelet.spark.jobs.migrate import migrate
from tests.conformance.conftest import java_paimon, pypaimon  # noqa: F401 - fixtures
from tests.conformance.java.client import JavaPaimon
from tests.conformance.java.values import rows_of
from tests.conformance.pypaimon.client import PyPaimon

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.java, pytest.mark.pypaimon]

QUERY = """
SELECT id, CAST(id AS INT) AS i, CAST(id / 7 AS DECIMAL(20, 3)) AS big, CAST(id AS DECIMAL(8, 2)) AS small,
       timestamp_seconds(id - 1000000000) AS instant, CAST(timestamp_seconds(id) AS TIMESTAMP_NTZ) AS local,
       date_add(DATE'1960-01-01', CAST(id AS INT)) AS day, map('k', id) AS m, struct(id AS x, 'y' AS y) AS s,
       IF(id % 3 = 0, NULL, concat('text ', id)) AS text, IF(id % 2 = 0, 'a:b', NULL) AS part, DATE'2026-01-01' AS dt
FROM range(12)
"""


def test_java_and_pypaimon_read_an_adopted_folder(
    spark: "SparkSession",
    tmp_path: Path,
    java_paimon: JavaPaimon,  # noqa: F811
    pypaimon: PyPaimon,  # noqa: F811
) -> None:
    folder = tmp_path / "spark"
    frame = spark.sql(QUERY).coalesce(1).write.option("compression", "zstd")
    frame.partitionBy("dt", "part").parquet(str(folder))
    lake = connect(str(tmp_path / "warehouse"))
    lake.create_database("db")
    migrate(spark, lake.location, "db.t", folder, partitioned_by=[("dt", "DATE"), "part"])
    ours = lake.table("db.t").scan().to_arrow().sort_by("id")
    assert ours.num_rows == 12
    read = java_paimon.read(lake.location, "db.t")
    assert sorted(read, key=lambda row: row["id"]) == rows_of(ours)
    assert [row["id"] for row in java_paimon.read(lake.location, "db.t", filters=["id = 7"])] == [7]
    assert len(java_paimon.read(lake.location, "db.t", filters=["part = a:b"])) == 6
    theirs = pypaimon.read(lake.location, "db.t").sort_by("id").select(ours.schema.names)
    assert theirs.to_pylist() == ours.to_pylist()
