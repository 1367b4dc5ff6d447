"""Choose the interpreter of Spark's Python workers, and check that it has Lakelet.

PySpark runs tasks by PYSPARK_PYTHON, and without it by whatever `python3` is on the path. On a local master the driver's own
interpreter is the right one, since it is there and has Lakelet. Elsewhere only the cluster's owner knows, so that one
small job checks before the first real one: a missing package would otherwise show after every task was tried four times.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakSet

from pyspark.sql import SparkSession

from lakelet.errors import InvalidError, LakeletError
from lakelet.spark.session import is_connect

_VARIABLE = "PYSPARK_PYTHON"
_ADVICE = (
    f"set {_VARIABLE} to a Python that has Lakelet before the session starts, or ship one with spark.archives "
    "(docs/spark.md, 'On a cluster')"
)
_LONGEST = 300
# Contexts, and sessions of Spark Connect, that were found to work.
_known: WeakSet[Any] = WeakSet()


def prepare_workers(spark: SparkSession) -> None:
    """Makes sure that tasks find Lakelet, once per context; InvalidError in one line where they will not."""
    holder: Any = spark if is_connect(spark) else spark.sparkContext
    if holder in _known:
        return
    if not is_connect(spark) and str(holder.master).startswith("local"):
        if not os.environ.get(_VARIABLE) and sys.executable:
            holder.pythonExec = sys.executable
        if os.path.abspath(holder.pythonExec) == os.path.abspath(sys.executable):
            _known.add(holder)
            return
    _look(spark)
    _known.add(holder)


def _look(spark: SparkSession) -> None:
    try:
        row = spark.range(0, 1, 1, 1).mapInArrow(_probe, "has boolean, python string").collect()[0]
    except Exception as error:
        reason = next((line.strip() for line in reversed(str(error).splitlines()) if line.strip()), "no reason given")
        raise InvalidError(f"tasks in Python do not run on the executors ({reason[:_LONGEST]}): {_ADVICE}") from None
    if not row[0]:
        raise InvalidError(f"executors run {row[1]}, which has no Lakelet: {_ADVICE}")


def _probe(batches: Iterable[Any]) -> Iterator[Any]:
    import importlib.util  # noqa: PLC0415 - this runs where Lakelet's modules, and what they import, may be missing.
    import sys  # noqa: PLC0415

    import pyarrow as pa  # noqa: PLC0415

    for _ in batches:
        has = importlib.util.find_spec("lakelet") is not None
        yield pa.RecordBatch.from_arrays([pa.array([has]), pa.array([sys.executable])], names=["has", "python"])


# Functions of this module are pickled by value, for workers without Lakelet could not import them.
_probe.__module__ = "__main__"


@contextmanager
def told_plainly() -> Iterator[None]:
    """In a worker that Spark runs for a data source, errors of Lakelet reach the user as a message without a traceback.

    Such a worker ends with its first error, so that no later error is affected.
    """
    try:
        yield
    except LakeletError:
        spec = getattr(sys.modules.get("__main__"), "__spec__", None)
        if spec is not None and str(spec.name).startswith("pyspark."):
            os.environ["SPARK_HIDE_TRACEBACK"] = "1"
        raise
