"""Properties of a Spark session, classic or Connect, and scoped session settings."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from pyspark.sql import SparkSession

_FEW = 2


def is_connect(spark: SparkSession) -> bool:
    """Whether the session talks to a Spark Connect server, where neither JVM nor SparkContext can be reached."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def default_parallelism(spark: SparkSession) -> int:
    """About how many tasks run at once."""
    if is_connect(spark):
        return max(_FEW, min(shuffle_partitions(spark), os.cpu_count() or _FEW))
    return max(_FEW, int(spark.sparkContext.defaultParallelism))


def shuffle_partitions(spark: SparkSession) -> int:
    """The default number of shuffle partitions."""
    return int(spark.conf.get("spark.sql.shuffle.partitions", "200") or 200)


@dataclass(slots=True)
class _Changed:
    """What a setting was before the first of the blocks that change it, and how many of these there are."""

    before: str | None
    blocks: int = 0


_changed: WeakKeyDictionary[SparkSession, dict[str, _Changed]] = WeakKeyDictionary()
_changing = threading.Lock()


@contextmanager
def settings(spark: SparkSession, values: Mapping[str, str]) -> Iterator[None]:
    """Session settings for the duration of a block; after the last of concurrent blocks they are restored."""
    with _changing:
        changed = _changed.setdefault(spark, {})
        for key, value in values.items():
            changed.setdefault(key, _Changed(spark.conf.get(key, None))).blocks += 1
            spark.conf.set(key, value)
    try:
        yield
    finally:
        with _changing:
            for key in values:
                changed[key].blocks -= 1
                if not changed[key].blocks:
                    _set_back(spark, key, changed.pop(key).before)


def _set_back(spark: SparkSession, key: str, before: str | None) -> None:
    if before is None:
        spark.conf.unset(key)
    else:
        spark.conf.set(key, before)


def local_session(name: str = "lakelet", *, cores: int = 2, config: Mapping[str, str] | None = None) -> SparkSession:
    """A session on this machine that retries failed tasks and runs the same Python as the caller."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master(f"local[{cores},4]").appName(name)
    chosen = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.session.timeZone": "UTC",
        **(config or {}),
    }
    for key, value in chosen.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()
