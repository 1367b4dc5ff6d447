"""What a newcomer writes: a session without any setting, run as a plain script."""

import sys

from pyspark.sql import SparkSession

import lakelet
import lakelet.spark as ls


def main(warehouse: str) -> None:
    """Writes and reads a table, and prints what mistakes come to."""
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    lake = lakelet.connect(warehouse)
    lake.create_database("d")
    lake.create_table("d.t", [("id", "BIGINT"), ("v", "STRING")], primary_key=["id"], options={"bucket": "2"})
    ls.write(spark.sql("SELECT * FROM VALUES (1L, 'a'), (2L, 'b') AS t(id, v)"), warehouse, "d.t")
    ls.register(spark)
    source = spark.read.format("lakelet").option("warehouse", warehouse)
    print("rows", sorted(tuple(row) for row in source.load("d.t").collect()))
    spark.sql("SELECT 3L AS id, 'c' AS v").write.parquet(f"{warehouse}-in")
    for driver_rows in (100, 0):
        stream = spark.readStream.schema("id bigint, v string").parquet(f"{warehouse}-in")
        checkpoint = f"{warehouse}-checkpoint-{driver_rows}"
        ls.write_stream(stream, warehouse, "d.t", checkpoint=checkpoint, driver_rows=driver_rows).awaitTermination()
    print("streamed", sorted(tuple(row) for row in source.load("d.t").collect()), lake.table("d.t").snapshots()[-1].id)
    for name, load in (
        ("option", lambda: source.option("bogus", "1").load("d.t")),
        ("table", lambda: spark.read.format("lakelet").option("warehouse", warehouse).load("d.nope")),
        (
            "write",
            lambda: spark.range(1).write.format("lakelet").mode("append").options(warehouse=warehouse).save("d.t"),
        ),
    ):
        try:
            load()
        except Exception as error:
            print(name, repr(str(error)))


if __name__ == "__main__":
    main(sys.argv[1])
