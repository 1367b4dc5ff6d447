"""Streams files into two tables and is killed right before, or right after, the n-th snapshot that its process makes.

killed_sink.py '{"warehouse": …, "source": …, "checkpoint": …, "driver_rows": 0, "moment": "before", "number": 3}'
"""

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import lakelet.spark as ls
from lakelet.spark.stream.write import table_sink
from lakelet.storage.decorated import DecoratedStore
from lakelet.storage.store import ObjectStore
from tests.spark.faults import OnDriver, opening_with
from tests.spark.stream.sink_tables import file_stream, two_tables

T = TypeVar("T")
_made = [0]


class KilledAtSnapshot(DecoratedStore):
    """The process dies, as by `kill -9`, around the n-th snapshot of all tables."""

    def __init__(self, store: ObjectStore, number: int, *, after: bool) -> None:
        super().__init__(store)
        self._number = number
        self._after = after

    def _around(self, call: str, path: str, action: Callable[[], T]) -> T:
        if call != "put_if_absent" or "/snapshot/snapshot-" not in path:
            return action()
        _made[0] += 1
        if _made[0] == self._number:
            if self._after:
                action()
            os.kill(os.getpid(), signal.SIGKILL)
        return action()


def main(arguments: dict[str, Any]) -> None:
    spark = ls.local_session(config={"spark.driver.memory": "768m", "spark.log.level": "ERROR"})
    number, after = arguments["number"], arguments["moment"] == "after"
    table_sink.open_table = opening_with(lambda store: OnDriver(KilledAtSnapshot(store, number, after=after), store))
    two_tables(file_stream(spark, Path(arguments["source"])), arguments).awaitTermination()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
