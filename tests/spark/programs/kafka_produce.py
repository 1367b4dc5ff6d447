"""Sends events to a topic of Kafka: lines of JSON with `key` and `value`, each to the partition of its key."""

import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

if __name__ == "__main__":
    file, bootstrap, topic, jars = sys.argv[1:]
    spark = SparkSession.builder.master("local[1]").config("spark.jars", jars).config("spark.ui.enabled", "false")
    session = (
        spark.config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1").getOrCreate()
    )
    lines = session.read.text(file, wholetext=False).coalesce(1)
    parts = lines.select(F.from_json("value", "key string, value string").alias("e"))
    sink = parts.select("e.key", "e.value").write.format("kafka").option("kafka.bootstrap.servers", bootstrap)
    sink.option("topic", topic).save()
    session.stop()
