"""A server of Spark Connect that was too busy to start the process of the batches is asked again."""

from __future__ import annotations

from typing import Any
from unittest.mock import MagicMock

import pytest
from pyspark.errors import PySparkException

from lakelet.errors import UnavailableError
from lakelet.spark.stream.write.query_start import started

SLOW = PySparkException("Python worker failed to connect back.")


def frame(outcomes: list[Any]) -> tuple[MagicMock, MagicMock]:
    df, writer = MagicMock(), MagicMock()
    df.writeStream.foreachBatch.return_value = writer
    for setting in (writer.option, writer.trigger, writer.queryName):
        setting.return_value = writer
    writer.start.side_effect = outcomes
    return df, writer


def test_a_worker_that_came_up_too_late_is_started_again() -> None:
    df, writer = frame([SLOW, SLOW, "query"])
    assert started(df, lambda batch, batch_id: None, "/c", None, None) == "query"
    assert writer.start.call_count == 3


def test_a_server_that_stays_too_busy_is_unavailable() -> None:
    df, writer = frame([SLOW] * 9)
    with pytest.raises(UnavailableError, match=r"checkpoint '/c': .* 3 times"):
        started(df, lambda batch, batch_id: None, "/c", None, None)
    assert writer.start.call_count == 3


def test_other_failures_are_the_callers() -> None:
    df, writer = frame([PySparkException("no such column")])
    with pytest.raises(PySparkException, match="no such column"):
        started(df, lambda batch, batch_id: None, "/c", None, None)
    assert writer.start.call_count == 1
