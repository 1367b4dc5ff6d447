"""A program that runs all operations over Spark Connect, and prints the results as JSON.

It is run by test_connect: a process that has started a classic session cannot start one over Connect.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import lakelet
from lakelet.errors import LakeletError
from lakelet.pipeline import parse_pipeline
from lakelet.spark.cdc.batch import CdcCounts
from lakelet.spark.cdc.sync import sync_cdc
from lakelet.spark.iceberg.insert import insert_iceberg
from lakelet.spark.iceberg.table_frame import iceberg_table
from lakelet.spark.pipeline.run import run_pipeline
from lakelet.spark.read.table_frame import table
from lakelet.spark.session import is_connect
from lakelet.spark.source.registration import register
from lakelet.spark.sql.statement import sql
from lakelet.spark.sql.views import views
from lakelet.spark.stream.write.query import write_stream
from lakelet.spark.write.table_write import write
from tests.spark.cdc.sample_events import debezium, text


def main(warehouse: str) -> dict[str, object]:
    """Makes tables, then reads and writes them in every way there is."""
    lake = lakelet.connect(warehouse)
    lake.create_database("shop")
    orders = lake.create_table("shop.orders", [("id", "BIGINT"), ("dt", "STRING")], partitioned_by=["dt"])
    orders.write([{"id": i, "dt": "ab"[i % 2]} for i in range(4)])
    people = lake.create_table(
        "shop.people", [("id", "BIGINT NOT NULL"), ("name", "STRING")], primary_key=["id"], options={"bucket": 2}
    )
    people.write([{"id": 1, "name": "Ann"}, {"id": 2, "name": "Bob"}])
    people.write([{"id": 2, "name": "Bea"}])

    # Any free port, for another such session may run at the same time; the client asks for it only where SPARK_TESTING is set.
    builder = SparkSession.builder.remote("local[2]").config("spark.connect.grpc.binding.port", "0")
    spark = builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
    found: dict[str, object] = {"connect": is_connect(spark)}
    reader = spark.read.format("lakelet").option("warehouse", warehouse)
    found["format"] = reader.load("shop.orders").where("id > 1").count()
    register(spark)
    found["registered"] = reader.load("shop.people").count()
    found["table"] = sorted(row.name for row in table(spark, warehouse, "shop.people", columns=["name"]).collect())
    found["where"] = table(spark, warehouse, "shop.orders", where="dt = 'a'").count()
    found["views"] = views(spark, warehouse, "shop")
    found["view"] = spark.sql("SELECT name FROM people JOIN orders USING (id) WHERE dt = 'a'").collect()[0][0]

    spark.range(5).createOrReplaceTempView("some_ids")
    frame = sql(spark, warehouse, "SELECT p.name, '{x}' FROM shop.people p JOIN some_ids USING (id) WHERE p.id = 2")
    found["sql"] = [list(row) for row in frame.collect()]
    found["left over"] = [one.name for one in spark.catalog.listTables() if one.name.startswith("_pyspark")]
    found["insert"] = [
        list(row) for row in sql(spark, warehouse, "INSERT INTO shop.people VALUES (3, 'Cid')").collect()
    ]
    snapshot = write(spark.range(10, 13).selectExpr("id", "'z' AS dt"), warehouse, "shop.orders")
    found["write"] = [snapshot.id if snapshot else None, orders.scan(where="dt = 'z'").count()]
    spark.range(20, 25).selectExpr("id", "'y' AS dt").write.format("lakelet").option("warehouse", warehouse).mode(
        "append"
    ).save("shop.orders")
    found["source write"] = orders.scan(where="dt = 'y'").count()
    found["error"] = _message(lambda: sql(spark, warehouse, "SELECT * FROM shop.nope"))
    found["bad rows"] = _message(
        lambda: write(
            spark.range(2).selectExpr("id", "'x' AS name").unionAll(spark.sql("SELECT 1L, 'y'")),
            warehouse,
            "shop.people",
        )
    )
    found["iceberg"] = _iceberg(spark, lake)
    found["stream"] = _stream(spark, lake)
    found["pipeline"] = _pipeline(spark, lake)
    found["cdc"] = _cdc(spark, lake)
    spark.stop()
    return found


def _iceberg(spark: SparkSession, lake: lakelet.Lake) -> list[object]:
    """Rows into a bucketed Iceberg table, by function, by source and by SQL, and out of it again."""
    lake.sql("CREATE DATABASE iceberg.db")
    lake.sql("CREATE TABLE iceberg.db.t (id BIGINT, name STRING) USING iceberg PARTITIONED BY (bucket(3, name))")
    rows = spark.range(30).selectExpr("id", "concat('n', id % 7) AS name")
    made = insert_iceberg(rows, "iceberg", "db.t", warehouse=lake.location)
    rows.write.format("lakelet-iceberg").option("warehouse", lake.location).mode("append").save("db.t")
    inserted = sql(spark, lake.location, "INSERT INTO iceberg.db.t SELECT 99, 'x'").collect()[0][1]
    read = iceberg_table(spark, "iceberg", "db.t", warehouse=lake.location, where="id >= 29").count()
    return [made.added_rows if made else None, made.added_files if made else None, inserted, read]


def _stream(spark: SparkSession, lake: lakelet.Lake) -> list[object]:
    """A stream into two tables whose batch is sent again, by the driver and by tasks; what is there, and what is refused."""
    source, checkpoint = f"{lake.location}-in", f"{lake.location}-checkpoint"
    tables = [lake.create_table(f"shop.{name}", [("id", "BIGINT"), ("dt", "STRING")]) for name in ("all", "odd")]
    spark.range(6).selectExpr("id", "'s' AS dt").coalesce(1).write.parquet(source)
    stream = spark.readStream.schema("id bigint, dt string").parquet(source)
    functions = {"shop.all": None, "shop.odd": lambda batch: batch.where("id % 2 = 1")}

    def start(user: str | None, driver_rows: int) -> None:
        query = write_stream(
            stream,
            lake.location,
            functions,
            checkpoint=checkpoint,
            mode="append",
            commit_user=user,
            driver_rows=driver_rows,
        )
        query.awaitTermination()

    for driver_rows in (0, 100_000):
        start("job", driver_rows)
        for log in Path(checkpoint, "commits").iterdir():
            log.unlink()
    users = {snapshot.commit_user.partition("-")[0] for table in tables for snapshot in table.snapshots()}
    marks = [path.name for path in Path(checkpoint, "lakelet").iterdir()]
    return [[table.scan().count() for table in tables], sorted(users), marks, _message(lambda: start(None, 0))]


def _pipeline(spark: SparkSession, lake: lakelet.Lake) -> list[object]:
    """A stream with expectations, changes by key and a view, run twice with new files in between."""
    folder = Path(lake.location).parent
    definition = """\
name: shop
database: shop
sources: {raw: {format: json, path: raw, schema: "id BIGINT, name STRING, at INT"}}
tables:
  named: {source: raw, expectations: {named: {condition: name IS NOT NULL, action: quarantine}}}
  newest: {}
auto_cdc_flows: {newest: {target: newest, source: raw, keys: id, sequence_by: at, apply_as_deletes: name = 'gone'}}
materialized_views: {names: {sql: SELECT count(*) AS names FROM named}}
"""
    (folder / "raw").mkdir()
    found: list[object] = []
    for number, rows in enumerate(([(1, "a", 1), (1, None, 2), (2, "b", 5)], [(2, "gone", 6), (2, "late", 4)])):
        lines = [json.dumps({"id": id, "name": name, "at": at}) for id, name, at in rows]
        (folder / "raw" / f"{number}.json").write_text("\n".join(lines))
        made = run_pipeline(spark, parse_pipeline(definition, str(folder / "shop.yaml")), lake.location)
        found.append([str(one.error or one.outcome) for one in made.flows])
    for name in ("named", "named_quarantine", "newest", "names"):
        found.append(lake.table(f"shop.{name}").scan().count())
    return [*found, lake.table("shop.names").scan().to_arrow().to_pylist()]


def _cdc(spark: SparkSession, lake: lakelet.Lake) -> list[object]:
    """Change events of a frame, and of a stream."""
    folder = Path(lake.location).parent / "events"
    folder.mkdir()
    events = [text(debezium("c", None, {"id": number, "qty": 1}, lsn=number)) for number in (1, 2)]
    batch = spark.createDataFrame([(one,) for one in [*events, "no JSON"]], "value string")
    made = sync_cdc(batch, lake.location, table="shop.mirror", primary_key=["id"])
    (folder / "1").write_text(text(debezium("d", {"id": 1}, None, lsn=9)))
    stream = spark.readStream.text(str(folder))
    query = sync_cdc(
        stream, lake.location, table="shop.mirror", checkpoint=str(folder.parent / "checkpoint"), commit_user="cdc"
    )
    assert not isinstance(made, StreamingQuery)
    assert not isinstance(query, CdcCounts)
    query.awaitTermination()
    return [made.rows, made.quarantined, [row["id"] for row in lake.table("shop.mirror").scan().to_arrow().to_pylist()]]


def _message(work: Callable[[], object]) -> str:
    try:
        work()
    except LakeletError as error:
        return f"{type(error).__name__}: {error}"
    return "no error"


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1])))
