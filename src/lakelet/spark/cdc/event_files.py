"""Files with an event a line, as a frame or as a stream."""

from __future__ import annotations

import os

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from lakelet.errors import InvalidError, NotFoundError
from lakelet.spark.failures import readable

_NOT_FOUND = "PATH_NOT_FOUND"


def event_files(spark: SparkSession, source: str | os.PathLike[str], *, streaming: bool) -> DataFrame:
    """The lines of the files in a folder; NotFoundError where there is none, InvalidError where Spark cannot read it."""
    reader = spark.readStream if streaming else spark.read
    try:
        with readable(f"looking for events in {os.fspath(source)}"):
            return reader.text(os.fspath(source))
    except AnalysisException as error:
        text = str(error).strip()
        if _NOT_FOUND in text:
            raise NotFoundError(
                f"there is no {os.fspath(source)}: expected a folder of files with an event a line"
            ) from None
        raise InvalidError(f"{os.fspath(source)} cannot be read: {text.splitlines()[0]}") from None
