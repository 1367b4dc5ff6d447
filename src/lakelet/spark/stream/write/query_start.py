"""Start a query by foreachBatch: its checkpoint folder, its trigger and the commit user of its batches."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from lakelet.errors import InvalidError, UnavailableError
from lakelet.spark.session import is_connect
from lakelet.spark.stream.write.checkpoint_mark import CheckpointMark

# A server of Spark Connect gives the process that runs the batches ten seconds to come up, which a busy machine may not meet.
_SLOW_WORKER = "Python worker failed to connect back"
_START_ATTEMPTS = 3
# What `DataStreamWriter.trigger` takes.
_TRIGGERS = ("availableNow", "processingTime", "once", "continuous", "realTime")


def started(
    df: DataFrame,
    body: Callable[[DataFrame, int], None],
    folder: str,
    trigger: Mapping[str, Any] | None,
    query_name: str | None,
) -> StreamingQuery:
    """The running query; by default it takes what is there now and ends."""
    writer = df.writeStream.foreachBatch(body).option("checkpointLocation", folder)
    writer = writer.trigger(**checked_trigger(trigger))
    writer = writer if query_name is None else writer.queryName(query_name)
    for _ in range(_START_ATTEMPTS):
        try:
            return writer.start()
        except PySparkException as error:
            if _SLOW_WORKER not in str(error):
                raise
    raise UnavailableError(f"checkpoint {folder!r}: {_SLOW_WORKER}, {_START_ATTEMPTS} times: the server is too busy")


def checked_trigger(trigger: object) -> dict[str, Any]:
    """The arguments of Spark's trigger; InvalidError where they are none. Their values are Spark's to judge."""
    if trigger is None:
        return {"availableNow": True}
    if not isinstance(trigger, Mapping) or len(trigger) != 1 or not set(trigger) <= set(_TRIGGERS):
        known = ", ".join(_TRIGGERS)
        raise InvalidError(
            f'trigger {trigger!r}: expected one of {known} and its value, as in {{"processingTime": "10 seconds"}}'
        )
    return dict(trigger)


def check_user(spark: SparkSession, commit_user: str | None) -> None:
    """InvalidError where the user of the batches is neither named nor the query's id."""
    if commit_user == "" or (commit_user is None and is_connect(spark)):
        raise InvalidError(
            "commit_user: over Spark Connect the id of the query is not known to its batches; name a user"
        )


def batch_user(commit_user: str | None, mark: CheckpointMark | None, query_id: str | None) -> str:
    """The user of a query's batches: the name with the checkpoint's id, or the query's own id."""
    if commit_user is not None:
        return commit_user if mark is None else f"{commit_user}-{mark.id}"
    if query_id is None:
        raise InvalidError("commit_user: the id of the query is not known to its batches; name a user")
    return query_id


def default_scheme(spark: SparkSession) -> str:
    """The file system that paths without a scheme are of; "" over Spark Connect, where only the server knows."""
    if is_connect(spark):
        return ""
    found = spark.sparkContext._jsc.hadoopConfiguration().get("fs.defaultFS", "file:///")
    return str(found).partition(":")[0]


def checkpoint_folder(spark: SparkSession, checkpoint: object) -> str:
    """The checkpoint folder as Spark is given it; a relative one is of this process's folder, not of the JVM's."""
    folder = str(os.fspath(checkpoint)) if isinstance(checkpoint, (str, os.PathLike)) else ""
    if not folder:
        raise InvalidError(f"checkpoint {checkpoint!r}: expected the folder of the query's checkpoint")
    relative = ":" not in folder.split("/", 1)[0] and not folder.startswith("/")
    local = not is_connect(spark) and default_scheme(spark) == "file"
    return os.path.abspath(folder) if relative and local else folder
