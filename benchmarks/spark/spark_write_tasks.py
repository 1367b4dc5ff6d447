"""Tasks on Spark: write tables, and the same rows as bare Parquet files.

The rows come from Parquet files on both sides. Where Lakelet sends rows to the tasks of their buckets the peer sends them there
as well, by the same expression, and writes what arrives; it does not sort.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

import lakelet
import lakelet.spark as ls
from benchmarks.contender import serve
from benchmarks.keyed.keyed_rows import KEYS, SCHEMA, half_new_ids, rows_of, scattered
from benchmarks.process_tree import python_worker_peak_bytes
from benchmarks.spark.spark_tables import KEYED, make_parquet
from benchmarks.spark.spark_turns import Turn, session, take_turns, write_parquet
from benchmarks.table_copies import linked
from lakelet.spark.route.hash_expression import channel_expression
from lakelet.table import Table

INPUT_FILES = 8
INPUT_SCHEMA = "id bigint, uuid string, order_no string, line int, price double, amount decimal(12, 2), \
ordered_at timestamp_ntz, paid boolean, note string"


def routed_write(folder: str, rows: int, key: str, buckets: int, rounds: int) -> dict[str, Any]:
    """A load of a new table with fixed buckets, with a primary key and without; the peers write Parquet after that shuffle."""
    make_input(f"{folder}/input", rows)
    keyed, unkeyed = f"{folder}/keyed", f"{folder}/unkeyed"
    schema = create(f"{folder}/model", key, buckets).schema
    with session(folder) as spark:

        def shuffled(_: int) -> DataFrame:
            frame = frame_of(spark, f"{folder}/input")
            return frame.repartitionById(buckets, channel_expression(schema, buckets))

        def sorted_rows(number: int) -> DataFrame:
            return shuffled(number).sortWithinPartitions(*KEYS[key])

        def parquet(frame_of: Callable[[int], DataFrame], number: int) -> None:
            write_parquet(frame_of(number), f"{folder}/parquet")

        def ours(place: str, _: int) -> None:
            ls.write(frame_of(spark, f"{folder}/input"), place, KEYED)

        turns = {
            "parquet": Turn(partial(parquet, shuffled)),
            "sorted parquet": Turn(partial(parquet, sorted_rows)),
            "keyed": Turn(partial(ours, keyed), lambda _: _fresh(keyed, key, buckets)),
            "unkeyed": Turn(partial(ours, unkeyed), lambda _: _fresh(unkeyed, key, buckets, primary=False)),
        }
        found = take_turns(rounds, turns)
        for place in (keyed, unkeyed):
            assert ls.table(spark, place, KEYED).count() == rows
    bytes_of = {"parquet": f"{folder}/parquet", "keyed": keyed, "unkeyed": unkeyed}
    for name, place in bytes_of.items():
        found[name]["bytes"] = sum(path.stat().st_size for path in Path(place).rglob("*.parquet"))
    return found


def plain_write(folder: str, rows: int, rounds: int) -> dict[str, Any]:
    """A load of an append table without buckets; the peer writes Parquet, neither shuffles."""
    make_input(f"{folder}/input", rows)
    place = f"{folder}/plain"
    with session(folder) as spark:
        turns = {
            "parquet": Turn(lambda _: write_parquet(frame_of(spark, f"{folder}/input"), f"{folder}/parquet")),
            "lakelet": Turn(
                lambda _: ls.write(frame_of(spark, f"{folder}/input"), place, KEYED),
                lambda _: _fresh(place, None, -1),
            ),
        }
        return take_turns(rounds, turns)


def large_upsert(folder: str, rows: int, count: int, buckets: int, rounds: int, by_spark: bool) -> dict[str, Any]:
    """As many rows as the table has, half of their keys known, into fixed and into dynamic buckets."""
    make_input(f"{folder}/first", rows)
    make_upsert(f"{folder}/input", rows, count)
    with session(folder) as spark:
        places = {"fixed": buckets, "dynamic": -1}
        for name, number in places.items():
            table = create(f"{folder}/{name}", "BIGINT", number)
            if by_spark:
                ls.write(frame_of(spark, f"{folder}/first"), f"{folder}/{name}", KEYED)
            else:
                table.write(scattered(rows, rows, 0))

        def ours(name: str, _: int) -> None:
            ls.write(frame_of(spark, f"{folder}/input"), f"{folder}/{name}-copy", KEYED, "upsert")

        turns = {name: Turn(partial(ours, name), partial(_copied, f"{folder}/{name}")) for name in places}
        found = take_turns(rounds, turns, warm_up=1)
        for name in places:
            assert ls.table(spark, f"{folder}/{name}-copy", KEYED).count() == rows + count // 2
    return found


def small_upsert(folder: str, rows: int, count: int, buckets: int, rounds: int) -> dict[str, Any]:
    """A few rows into many; the peer appends them to a folder of Parquet files."""
    make_input(f"{folder}/first", rows)
    make_upsert(f"{folder}/input", rows, count)
    with session(folder) as spark:
        places = {"fixed": buckets, "dynamic": -1}
        write_parquet(frame_of(spark, f"{folder}/first"), f"{folder}/parquet")
        for name, number in places.items():
            create(f"{folder}/{name}", "BIGINT", number)
            ls.write(frame_of(spark, f"{folder}/first"), f"{folder}/{name}", KEYED)

        def ours(name: str, _: int) -> None:
            ls.write(frame_of(spark, f"{folder}/input"), f"{folder}/{name}-copy", KEYED, "upsert")

        turns = {
            "parquet": Turn(lambda _: write_parquet(frame_of(spark, f"{folder}/input"), f"{folder}/parquet", "append")),
            **{name: Turn(partial(ours, name), partial(_copied, f"{folder}/{name}")) for name in places},
        }
        found = take_turns(rounds, turns, warm_up=4)
        for name in places:
            assert ls.table(spark, f"{folder}/{name}-copy", KEYED).count() == rows + count // 2
    return found


def write_memory(folder: str, rows: int, buckets: int) -> dict[str, Any]:
    """The most memory that a Python worker needs for a load of a new table, and for one of a dynamic-bucket table."""
    make_input(f"{folder}/input", rows)
    peaks = {}
    for name, number in (("fixed", buckets), ("dynamic", -1)):
        create(f"{folder}/{name}", "BIGINT", number)
        with session(f"{folder}/{name}-session") as spark:
            measured = take_turns(
                1,
                {
                    name: Turn(
                        lambda _, place=name: ls.write(frame_of(spark, f"{folder}/input"), f"{folder}/{place}", KEYED)
                    )
                },
                warm_up=0,
            )[name]
            peaks[name] = {**measured, "worker_peak_bytes": python_worker_peak_bytes()}
    return peaks


def make_input(folder: str, rows: int) -> None:
    """All rows with ids below a number, in no order, as Parquet files."""
    make_parquet(folder, scattered(rows, rows, 0), SCHEMA, -(-rows // INPUT_FILES))


def make_upsert(folder: str, rows: int, count: int) -> None:
    """Rows of which half have ids below `rows`."""
    batches = rows_of(half_new_ids(rows, count), 1).to_batches()
    make_parquet(folder, batches, SCHEMA, -(-count // INPUT_FILES))


def frame_of(spark: SparkSession, folder: str) -> DataFrame:
    """The rows of such files."""
    return spark.read.schema(INPUT_SCHEMA).parquet(folder)


def create(folder: str, key: str | None, buckets: int, primary: bool = True) -> Table:
    """A new table in a warehouse of its own; without `primary` the key only tells the bucket."""
    lake = lakelet.connect(folder)
    lake.create_database("bench")
    options = {"bucket": str(buckets)}
    if key is None:
        return lake.create_table(KEYED, SCHEMA, options=options)
    if not primary:
        return lake.create_table(KEYED, SCHEMA, options={**options, "bucket-key": ",".join(KEYS[key])})
    return lake.create_table(KEYED, SCHEMA, primary_key=KEYS[key], options=options)


def _fresh(folder: str, key: str | None, buckets: int, primary: bool = True) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    create(folder, key, buckets, primary)


def _copied(table: str, _: int) -> None:
    shutil.rmtree(f"{table}-copy", ignore_errors=True)
    linked(table, f"{table}-copy")


if __name__ == "__main__":
    serve(routed_write, plain_write, large_upsert, small_upsert, write_memory)
