"""The Spark session of a process that runs for long: of a master, or of a Spark Connect server."""

from __future__ import annotations

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from lakelet.errors import UnavailableError
from lakelet.spark.jobs.quiet_session import check_java
from lakelet.spark.session import local_session

_REMOTE = "sc://"
_LONGEST = 300


def service_session(address: str) -> SparkSession:
    """A session at a master's address, or at that of a Spark Connect server; UnavailableError where there is none to be had."""
    try:
        if address.startswith(_REMOTE):
            return SparkSession.builder.remote(address).appName("lakelet service").getOrCreate()
        check_java()
        return local_session("lakelet service", config={"spark.master": address, "spark.log.level": "ERROR"})
    except (PySparkException, ImportError, OSError) as error:
        shown = " ".join(str(error).split())[:_LONGEST]
        raise UnavailableError(f"Spark at {address} cannot be reached: {shown}") from None
