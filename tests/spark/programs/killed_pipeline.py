"""Run a pipeline and be killed on the way: `killed_pipeline.py FILE WAREHOUSE POINT [full refresh]`.

POINT is a number, the snapshot of the pipeline's tables after whose creation the process ends, or the name of a step of a
refresh: `marked`, after the record that announces it, or `emptied`, before the record that ends it.
"""

import os
import signal
import sys
from typing import Any

from lakelet.pipeline import load
from lakelet.spark import local_session, run_pipeline
from lakelet.spark.pipeline.target.table_target import TableTarget
from lakelet.storage.disk.local_store import LocalStore
from tests.spark.java import PATIENT


def end() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def end_after_snapshot(number: int) -> None:
    made = LocalStore.put_if_absent
    seen = 0

    def counted(self: LocalStore, path: str, data: bytes, **how: Any) -> bool:
        nonlocal seen
        found = made(self, path, data, **how)
        if found and "/snapshot/snapshot-" in path and "pipeline_events" not in path:
            seen += 1
            if seen == number:
                end()
        return found

    LocalStore.put_if_absent = counted  # type: ignore[method-assign]


def main(file: str, warehouse: str, point: str, *refreshed: str) -> None:
    if point.isdigit():
        end_after_snapshot(int(point))
    elif point == "marked":
        TableTarget.reset = lambda self, frame: end()  # type: ignore[method-assign,assign,return-value]
    else:
        assert point == "emptied"
        reset = TableTarget.reset

        def emptied(self: TableTarget, frame: Any) -> None:
            reset(self, frame)
            end()

        TableTarget.reset = emptied  # type: ignore[method-assign,assign]
    spark = local_session(
        "killed pipeline", config={**PATIENT, "spark.log.level": "ERROR", "spark.sql.shuffle.partitions": "2"}
    )
    run_pipeline(spark, load(file), warehouse, full_refresh=refreshed)


if __name__ == "__main__":
    main(*sys.argv[1:])
