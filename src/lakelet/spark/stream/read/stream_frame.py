"""A table's changes as a streaming DataFrame.

    ls.read_stream(spark, "./warehouse", "shop.orders", changelog=True)

The same as `spark.readStream.format("lakelet")` with these options; what is wrong with them is reported at once, on the driver.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame, SparkSession

from lakelet.errors import InvalidError
from lakelet.spark.source.options import SourceOptions
from lakelet.spark.source.registration import register
from lakelet.spark.stream.read.stream_reader import stream_settings


def read_stream(
    spark: SparkSession,
    warehouse: str | os.PathLike[str],
    table: str,
    *,
    scan_mode: str | None = None,
    changelog: bool = False,
    consumer_id: str | None = None,
    columns: Sequence[str] | None = None,
    where: str | None = None,
    branch: str | None = None,
    merge_schema: bool = False,
    on_expired: str = "error",
    options: Mapping[str, object] | None = None,
) -> DataFrame:
    """A streaming frame of a table's rows and changes: by default those of the newest version, then those of every commit.

    `scan_mode` says where it begins. With `changelog` rows have their kind in a first column `_row_kind`; without it come the
    inserted and updated rows. `consumer_id` holds back the snapshots that the stream still needs. With `merge_schema` it goes on
    past added columns. `on_expired` is "error" or "restart". `options` are those of streams, of the connection, and of this job.
    """
    given = {str(key): str(value) for key, value in (options or {}).items()}
    named: dict[str, str | None] = {
        "scan.mode": scan_mode,
        "read.changelog": str(changelog).lower(),
        "consumer-id": consumer_id,
        "columns": None if columns is None else ", ".join(columns),
        "where": where,
        "branch": branch,
        "merge-schema": str(merge_schema).lower(),
        "on-expired": on_expired,
        "warehouse": os.path.abspath(warehouse) if _is_folder(warehouse) else os.fspath(warehouse),
        "table": table,
    }
    own = {key: text for key, text in named.items() if text is not None}
    twice = sorted(key for key in given if key.lower() in own)
    if twice:
        raise InvalidError(f"option {twice[0]!r} is given as an argument of read_stream, too")
    everything = {**given, **own}
    stream_settings(SourceOptions.of(everything))
    register(spark)
    return spark.readStream.format("lakelet").options(**everything).load()


def _is_folder(warehouse: str | os.PathLike[str]) -> bool:
    """Whether a warehouse is a path of this machine: the planning process may run in another folder."""
    return "://" not in os.fspath(warehouse)
