"""Starting a query: arguments that are none are refused, a server of Spark Connect that was too busy is asked again."""

from __future__ import annotations

from typing import Any
from unittest.mock import MagicMock

import pytest
from pyspark.errors import PySparkException

from lakelet.errors import InvalidError, UnavailableError
from lakelet.spark.stream.write.query_start import checkpoint_folder, started

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


@pytest.mark.parametrize("trigger", ["1 second", {}, {"every": "1 second"}, {"once": True, "availableNow": True}])
def test_what_is_no_trigger_is_told(trigger: Any) -> None:
    df, writer = frame(["query"])
    with pytest.raises(InvalidError, match=r"trigger .*: expected one of availableNow, processingTime"):
        started(df, lambda batch, batch_id: None, "/c", trigger, None)
    assert writer.start.call_count == 0


@pytest.mark.parametrize("checkpoint", [None, "", 5])
def test_what_is_no_folder_is_told(checkpoint: Any) -> None:
    with pytest.raises(InvalidError, match="expected the folder of the query's checkpoint"):
        checkpoint_folder(MagicMock(), checkpoint)
