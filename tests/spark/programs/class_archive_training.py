"""A driver that loads the classes which most tests of Spark load: frames, SQL, JSON, Python tasks, files and a stream."""

import tempfile
from pathlib import Path

from lakelet.spark.session import local_session


def main(folder: Path) -> None:
    config = {
        "spark.driver.memory": "768m",
        "spark.local.dir": str(folder / "local"),
        "spark.log.level": "ERROR",
        "spark.sql.shuffle.partitions": "2",
    }
    spark = local_session("classes", config=config)
    rows = spark.range(0, 100, 1, 2).selectExpr(
        "id", "id % 3 AS k", "cast(id AS STRING) AS v", "current_timestamp() AS t"
    )
    rows.groupBy("k").agg({"v": "max", "id": "sum"}).orderBy("k").collect()
    given = spark.createDataFrame([(1, '{"a": 1}'), (2, None)], "k INT, j STRING")
    given.selectExpr("k", "from_json(j, 'a INT') AS x").join(rows, "k").toArrow()
    rows.repartition(2, "k").mapInArrow(lambda batches: batches, rows.schema).count()
    rows.write.parquet(str(folder / "rows"))
    stream = spark.readStream.schema(rows.schema).parquet(str(folder / "rows"))
    writer = stream.writeStream.foreachBatch(lambda batch, _: print(batch.persist().count()))
    query = writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True).start()
    query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        main(Path(temporary))
